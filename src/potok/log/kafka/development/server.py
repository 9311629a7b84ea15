"""A single-node Kafka server for development and tests: a separate process, without Docker and without installation."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from potok.errors import LogError
from potok.java_runtime import find_java
from potok.log.kafka.development.ivy import Progress
from potok.log.kafka.development.jars import KAFKA_VERSION, server_jars
from potok.log.kafka.development.server_files import HOST, ServerFiles
from potok.log.kafka.errors import PortTaken, ServerNotStarted
from potok.permissions import private_directory

DEFAULT_PORT = 9092

_JVM_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A mostly idle server should start fast and leave the processors to others."""

_LOOK_SECONDS = 0.02

_INTRODUCED = 'echo $$ > "$1.draft" && mv "$1.draft" "$1" && shift && exec "$@"'
"""A shell that writes its pid and becomes the server."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of the server in a directory. `pid` and `port` are 0 if none is running; a running one may still be
    starting."""

    directory: Path
    pid: int = 0
    port: int = 0
    version: str = ""

    @property
    def is_up(self) -> bool:
        return self.pid != 0

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}" if self.is_up else ""

    @property
    def url(self) -> str:
        """The URL for `open_broker`."""
        return f"kafka://{self.bootstrap}" if self.is_up else ""


class KafkaServer:
    """The server whose records, log and settings are in `directory`. It outlives the process that starts it."""

    def __init__(self, directory: str | Path, cache: Path) -> None:
        self.files = ServerFiles(Path(directory).resolve())
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None

    def status(self) -> ServerStatus:
        """Return the status. A running server holds a lock on a file, so files of a stopped one are ignored."""
        try:
            with self.files.lock.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass
        except BlockingIOError:
            return self._recorded()
        return ServerStatus(self.files.directory)

    def start(
        self,
        port: int = DEFAULT_PORT,
        *,
        advertised_port: int = 0,
        timeout_s: float = 60,
        progress: Progress | None = None,
    ) -> ServerStatus:
        """Start the server and wait until it responds; also wait for one that is already running or starting.

        Args:
            port: The port, on this machine only; 0 chooses a free one.
            advertised_port: The port announced to clients, for a proxy; 0 for the same port.
            progress: Called with progress messages.
        """
        found = self.status()
        if not found.is_up:
            jars = server_jars(self._cache, progress)
            free, controller_port = free_ports(2)
            if port:
                check_port(port)
            if progress is not None:
                progress(f"starting Kafka {KAFKA_VERSION}")
            with self._taken_lock() as lock:
                self.files.write(port or free, controller_port, advertised_port)
                if not self.files.is_formatted:
                    self._format(jars, lock)
                self._launch(jars, port or free, lock, timeout_s)
            return self.status()
        self._wait_until_ready(found.port, 0, timeout_s, lambda: not self.status().is_up)
        return found

    def accepts_connections(self) -> bool:
        """Return whether a running server is ready."""
        found = self.status()
        return found.is_up and _accepts_connections(found.port)

    def stop(self, *, timeout_s: float = 30) -> bool:
        """Stop the server that was started here, and no other process; return whether there was one."""
        found = self.status()
        if not found.is_up:
            return False
        os.kill(found.pid, signal.SIGTERM)
        if not self._is_gone(timeout_s):
            os.kill(found.pid, signal.SIGKILL)
            self._is_gone(timeout_s)
        if self._process is not None:
            self._process.wait()
        for left in (self.files.state, self.files.pid):
            left.unlink(missing_ok=True)
        return True

    def _recorded(self) -> ServerStatus:
        """Return the recorded status: the holder of the lock records itself as soon as it has started."""
        try:
            known = json.loads(self.files.state.read_text())
            pid = int(self.files.pid.read_text())
        except FileNotFoundError:
            raise ServerNotStarted("another process is starting it", self.files.log) from None
        return ServerStatus(self.files.directory, pid, known["port"], known["version"])

    def _taken_lock(self) -> TextIO:
        private_directory(self.files.directory)
        lock = self.files.lock.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ServerNotStarted("another process is starting it", self.files.log) from None
        self.files.pid.unlink(missing_ok=True)
        return lock

    def _format(self, jars: Sequence[Path], lock: TextIO) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [
            *(*self._java(jars), "kafka.tools.StorageTool", "format"),
            # Written with =, since a cluster id may start with a dash.
            *(f"--cluster-id={cluster}", "--config", str(self.files.properties)),
        ]
        # It keeps the lock until it is done, even if this process ends before.
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, pass_fds=(lock.fileno(),), umask=0o077
        )
        if done.returncode != 0:
            self.files.log.write_text(done.stdout + done.stderr)
            raise ServerNotStarted("its directory could not be formatted", self.files.log)

    def _launch(self, jars: Sequence[Path], port: int, lock: TextIO, timeout_s: float) -> None:
        self.files.write_state({"port": port, "version": KAFKA_VERSION})
        server = [*self._java(jars), "kafka.Kafka", str(self.files.properties)]
        with self.files.log.open("ab") as log:
            began = log.tell()
            process = self._process = subprocess.Popen(
                ["/bin/sh", "-c", _INTRODUCED, "potok", str(self.files.pid), *server],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The server shares the lock, and keeps it when this process closes it.
                pass_fds=(lock.fileno(),),
                # Protect it from Ctrl-C in the terminal that started it.
                start_new_session=True,
                umask=0o077,
            )
        try:
            self._wait_until_ready(port, began, timeout_s, lambda: process.poll() is not None)
        except BaseException:
            process.kill()
            process.wait()
            raise

    def _wait_until_ready(self, port: int, began: int, timeout_s: float, has_ended: Callable[[], bool]) -> None:
        """Wait until the server responds; `began` is where its output starts in the log."""
        deadline = time.monotonic() + timeout_s
        while not _accepts_connections(port):
            if has_ended():
                raise ServerNotStarted(self.files.complaint(since=began), self.files.log)
            if time.monotonic() > deadline:
                raise ServerNotStarted(f"it was not ready after {timeout_s:.0f} seconds", self.files.log)
            time.sleep(_LOOK_SECONDS)

    def _java(self, jars: Sequence[Path]) -> list[str]:
        logging = f"-Dlog4j.configuration={self.files.logging.as_uri()}"
        classes = os.pathsep.join(map(str, jars))
        return [str(find_java().executable), *_JVM_OPTIONS, logging, "-cp", classes]

    def _is_gone(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.status().is_up:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


def _accepts_connections(port: int) -> bool:
    """Check the port first: a client that cannot connect prints to the terminal."""
    if not is_listening(port):
        return False
    try:
        return bool(AdminClient({"bootstrap.servers": f"{HOST}:{port}"}).list_topics(timeout=5).brokers)
    except KafkaException:
        return False


def check_port(port: int) -> None:
    """Raise if the port cannot be used."""
    with socket.socket() as probe:
        # Connections in TIME_WAIT of a stopped server do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(port) from error
            raise LogError(f"cannot listen on port {port}: {error.strerror}", hint="use one above 1023") from error


def free_ports(count: int) -> list[int]:
    """Return distinct free ports; another program may still take them meanwhile."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
