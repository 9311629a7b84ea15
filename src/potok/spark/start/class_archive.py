"""A class-data archive: Spark's classes in the form in which a JVM maps them, so that it starts in half the time.

The first run with a version of Java and Spark lists the classes that it loads. When it has ended, a process in the
background dumps them into an archive in the user's cache, and every later start maps it. A JVM checks that an archive
fits its class path, and starts without it otherwise.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from potok.java_runtime import Java
from potok.permissions import private_directory, private_opener

UNUSED_FOR_S = 30 * 24 * 3600
"""Archives of versions that have not been started for this long are deleted."""

_CHOSEN = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "DumpLoadedClassList", "-XX:AOT")
"""A user who sets one of these options has their own archive."""

_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")

_UNSAFE = set(" \t\n\"'\\:,*")
"""Characters with a meaning in the options of a JVM, or in Spark's list of them."""

_NEW_LOG_NAME = 25
"""Java 25 logs about archives under another name; a JVM does not start with a name it does not know."""

_DUMP = """
count=0
while kill -0 "$JVM" 2>/dev/null && [ $count -lt 120 ]; do sleep 0.5; count=$((count + 1)); done
nice -n 19 "$@" >/dev/null 2>&1 && mv -f "$DRAFT" "$ARCHIVE"
rm -f "$DRAFT" "$CLASSES"
"""


@dataclass(slots=True)
class ClassArchive:
    """The archive for one JVM: it is used if it exists; otherwise one process at a time creates it."""

    java: Java
    path: Path | None
    """None if an archive is not possible."""
    _lock: TextIO | None = None
    _arguments: list[str] = field(default_factory=list)
    _jvm: int = 0

    @classmethod
    def of(cls, java: Java, cache: Path, options: str) -> ClassArchive:
        """Return the archive for a JVM that is started with these options."""
        given = " ".join([options, *(os.environ.get(name, "") for name in _VARIABLES)])
        if any(word in given for word in _CHOSEN) or _UNSAFE.intersection(str(cache)):
            return cls(java, None)
        found = cls(java, cache / f"spark-classes-{_key(java, options)}.jsa")
        found._prepare()
        return found

    def _prepare(self) -> None:
        """Record that the archive is in use, or try to become the process that creates it."""
        assert self.path is not None
        with contextlib.suppress(OSError):
            if self.path.exists():
                os.utime(self.path)
                return
            private_directory(self.path.parent)
            lock = open(self.path.with_suffix(".lock"), "a", opener=private_opener)  # noqa: SIM115 - held until the end
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return
            self._lock = lock

    @property
    def is_recording(self) -> bool:
        return self._lock is not None

    @property
    def options(self) -> list[str]:
        """Return the options to start the JVM with."""
        if self.path is None:
            return []
        if self._lock is not None:
            return [f"-XX:DumpLoadedClassList={self._classes}"]
        if not self.path.exists():
            return []
        logs = ["cds*", "class+path", *(["aot*"] if self.java.major >= _NEW_LOG_NAME else [])]
        return [f"-XX:SharedArchiveFile={self.path}", *(f"-Xlog:{name}=off" for name in logs)]

    def started(self, jvm: Any, pid: int) -> None:
        """Remember how the JVM was started: an archive fits JVMs with the same options."""
        runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        given = [str(argument) for argument in runtime.getInputArguments()]
        kept = [word for word in given if not word.startswith(("-D", "-XX:DumpLoadedClassList"))]
        self._arguments, self._jvm = [*kept, "-cp", str(runtime.getClassPath())], pid

    def dump(self) -> subprocess.Popen[bytes] | None:
        """Create the archive of the classes that the JVM has loaded, in the background, after it has ended."""
        if self._lock is None or self.path is None:
            return None
        _drop_unused(self.path)
        if not self._jvm:
            self._classes.unlink(missing_ok=True)
            self.close()
            return None
        draft = self.path.with_suffix(f".{os.getpid()}")
        environment = {"JVM": self._jvm, "DRAFT": draft, "ARCHIVE": self.path, "CLASSES": self._classes}
        lists = [f"-XX:SharedClassListFile={self._classes}", f"-XX:SharedArchiveFile={draft}"]
        dump = [str(self.java.executable), "-Xshare:dump", *lists, *self._arguments]
        with self._lock:
            # The process inherits the lock, and holds it until the archive exists.
            return subprocess.Popen(
                ["sh", "-c", _DUMP, "sh", *dump],
                env={**os.environ, **{name: str(value) for name, value in environment.items()}},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[self._lock.fileno()],
                cwd="/",
            )

    def close(self) -> None:
        """Let another process create the archive."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def _classes(self) -> Path:
        assert self.path is not None
        return self.path.with_suffix(".classes")


def _key(java: Java, options: str) -> str:
    """Hash what an archive depends on: Java, the jars of Spark, and options other than sizes."""
    flags = [word for word in shlex.split(options) if word.startswith("-X") and word[:4] not in ("-Xms", "-Xmx")]
    with contextlib.suppress(OSError):
        flags.append(str(java.executable.stat().st_mtime_ns))
    return _digest([str(java.executable), java.version, *flags, *_jars()])


def _jars() -> Iterator[str]:
    found = importlib.util.find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (Path(found.origin).parent if found and found.origin else "")
    for jar in sorted(Path(home, "jars").glob("*.jar")):
        yield f"{jar} {jar.stat().st_size}"


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _drop_unused(path: Path) -> None:
    for other in path.parent.glob("spark-classes-*.*"):
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > UNUSED_FOR_S:
                other.unlink()
