"""Make the archive of Spark's classes before the tests: they start dozens of drivers only to kill them.

`python tests/class_archive.py` runs a small query, and waits for the archive that it leaves.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from potok.java_runtime import find_java
from potok.settings import Settings
from potok.spark.session import spark_conf
from potok.spark.start.class_archive import ClassArchive

_ROOT = Path(__file__).parents[1]
_TIMEOUT_S = 300


def make() -> None:
    if _is_there():
        return
    with tempfile.TemporaryDirectory(prefix="potok-classes-") as directory:
        _write_orders(directory)
        subprocess.run(
            [sys.executable, "-m", "tests.kill.orders_program", f"file:{directory}", "100"],
            cwd=_ROOT,
            timeout=_TIMEOUT_S,
            capture_output=True,
            check=False,
        )
    end = time.monotonic() + _TIMEOUT_S
    # A Java that cannot make one is no reason to test nothing.
    while not _is_there() and time.monotonic() < end:
        time.sleep(0.5)


def _is_there() -> bool:
    """Whether it is there, or cannot be."""
    settings = Settings.load()
    options = spark_conf(settings)["spark.driver.extraJavaOptions"]
    archive = ClassArchive.of(find_java(), settings.cache_path, options)
    found = archive.path is None or archive.path.exists()
    archive.close()
    return found


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
