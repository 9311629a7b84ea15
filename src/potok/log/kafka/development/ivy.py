"""Run Ivy: its arguments, its progress, and the meaning of its errors."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from potok.java_runtime import find_java
from potok.log.kafka.errors import JarsNotFound

Progress = Callable[[str], None]
"""Called with progress messages."""

_SILENCE = 120.0
"""Ivy waits forever for a server that does not respond; it is killed after this many seconds without output."""

_ARRIVED = re.compile(r"\[SUCCESSFUL \].*!([^\s(]+)")
_SIZE = re.compile(r"\((\d+)kB\)")
_MISSING = re.compile(r"module not found: (\S+)#(\S+);(\S+)")
_UNREACHABLE = ("UnknownHost", "ConnectException", "SocketTimeout", "NoRouteToHost", "Connection reset")


def retrieve(
    title: str,
    ivy_file: str,
    target: Path,
    ivy: Path,
    progress: Progress | None,
    # Many jars of Maven Central have the type bundle.
    types: tuple[str, ...] = ("jar", "bundle"),
) -> None:
    """Fetch the artifacts of `ivy_file` into `target`; raise `JarsNotFound` if one of them is unavailable."""
    target.mkdir(parents=True)
    wanted = target.parent / "ivy.xml"
    wanted.write_text(ivy_file)
    command = [
        *(str(find_java().executable), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(target.parent / "cache"), "-ivy", str(wanted)),
        *("-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"),
        *("-types", *types),
    ]
    code, output = _run(command, _Counter(title, progress))
    if code != 0:
        raise _explained(title, output)


class _Counter:
    """Counts the jars and bytes that Ivy reports."""

    def __init__(self, title: str, progress: Progress | None) -> None:
        self._title, self._progress = title, progress
        self._jars, self._kilobytes = 0, 0
        if progress is not None:
            progress(f"fetching {title} from Maven Central: resolving its dependencies")

    def hear(self, line: str) -> None:
        if size := _SIZE.search(line):
            self._kilobytes += int(size.group(1))
        if (jar := _ARRIVED.search(line)) and self._progress is not None:
            self._jars += 1
            fetched = f"{self._jars} jars, {self._kilobytes / 1024:.1f} MB"
            self._progress(f"fetching {self._title} from Maven Central: {fetched} ({jar.group(1)})")


def _run(command: list[str], counter: _Counter) -> tuple[int, str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    assert process.stdout is not None
    output: list[str] = []
    watch = _Watch(process)
    try:
        for line in process.stdout:
            watch.heard()
            counter.hear(line)
            output.append(line)
        return process.wait(), "".join(output) + ("SocketTimeout" if watch.fired else "")
    finally:
        watch.end()
        process.kill()
        process.wait()
        process.stdout.close()


class _Watch:
    """Kills a process without output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._heard_at = time.monotonic()
        self._ended = threading.Event()
        self.fired = False
        threading.Thread(target=self._look, name="potok-ivy", daemon=True).start()

    def heard(self) -> None:
        self._heard_at = time.monotonic()

    def end(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(1):
            if time.monotonic() - self._heard_at > _SILENCE:
                self.fired = True
                self._process.kill()
                return


def _explained(title: str, output: str) -> JarsNotFound:
    if "SSLHandshakeException" in output:
        why = "Java does not trust the certificate of the server"
        hint = "behind a proxy with its own certificate, import that into Java: keytool -importcert -cacerts -file ..."
        return JarsNotFound(title, why, hint)
    if any(word in output for word in _UNREACHABLE):
        hint = (
            "connect to the internet and try again; behind a proxy: "
            'export JAVA_TOOL_OPTIONS="-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT"'
        )
        return JarsNotFound(title, "Maven Central did not answer", hint)
    if missing := _MISSING.search(output):
        named = ":".join(missing.groups())
        return JarsNotFound(title, f"Maven Central has no {named}", "a mirror may be out of date; try again later")
    tail = " / ".join(output.strip().splitlines()[-2:])
    return JarsNotFound(title, f"Ivy said: {tail}", "try again; free some space if the disk is full")
