"""Run a capture: sessions one after another, with growing pauses while the database or the log is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Protocol, Self

from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError
from potok.extras import need_extra
from potok.log.broker import Broker
from potok.retry_policy import Retry, brief_calls
from potok.snapshots.source_status import CAPTURE
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.errors import CaptureStopped
from potok.sources.cdc.landing.landing import Landing
from potok.sources.cdc.progress import CaptureStatus, Progress
from potok.sources.status_report import StatusReport
from potok.topology.capture import Capture
from potok.topology.graph import Topology

_logger = logging.getLogger("potok.sources.cdc")


class Session(Protocol):
    """One connection to a database."""

    def run(self, stopping: threading.Event) -> None: ...

    def close(self) -> None: ...


class CaptureRunner:
    """A capture from `start()` to `stop()`, in a thread of its own.

    >>> with CaptureRunner(capture, broker) as runner:
    ...     runner.wait()
    """

    def __init__(self, capture: Capture, broker: Broker) -> None:
        need_extra(f'capture "{capture.name}"', "cdc")
        self.capture = capture
        self._broker = broker
        self._landing = Landing(broker, capture.name)
        self._progress = Progress()
        self._report = StatusReport(broker, CAPTURE, lambda: {capture.name: asdict(self.status())})
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"potok-cdc-{capture.name}", daemon=True)
        self.error: PotokError | None = None
        """Why it has stopped by itself."""

    def start(self) -> None:
        self._thread.start()
        self._report.start()

    def stop(self) -> None:
        """Land what was read, and end."""
        self._stopping.set()
        self._thread.join()
        self._report.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it ends; return whether it has."""
        return self._ended.wait(timeout)

    def status(self) -> CaptureStatus:
        return self._progress.read()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        retry = Retry(0, self._stopping)
        try:
            while not self._stopping.is_set():
                before = self.status().changes
                try:
                    self._run_session()
                except CaptureStopped as error:
                    self.error = error
                    _logger.error('capture "%s" has stopped: %s', self.capture.name, error)
                    return
                except (PotokError, OSError) as error:
                    self._progress.update(state="waiting", problem=str(error))
                    _logger.warning('capture "%s" waits: %s', self.capture.name, error)
                    if self.status().changes > before:
                        retry = Retry(0, self._stopping)
                    retry.wait()
        except Exception as error:
            self.error = CaptureStopped(f"an unexpected error: {type(error).__name__}: {error}")
            _logger.exception('capture "%s" has stopped', self.capture.name)
        finally:
            self._progress.update(state="stopped", problem=None if self.error is None else str(self.error))
            self._ended.set()

    def _run_session(self) -> None:
        with brief_calls():
            session = open_session(self.capture, self._broker, self._landing, self._progress)
            try:
                session.run(self._stopping)
            finally:
                session.close()


def open_session(capture: Capture, broker: Broker, landing: Landing, progress: Progress) -> Session:
    if capture.kind == "mysql":
        from potok.sources.cdc.mysql.session import MysqlSession

        return MysqlSession(capture, broker, landing, progress)
    from potok.sources.cdc.postgres.session import PostgresSession

    return PostgresSession(capture, broker, landing, progress)


class Database(Protocol):
    """The statements of a capture on its database."""

    def check(self) -> None: ...

    def shape(self, table: str) -> Shape: ...

    def close(self) -> None: ...


def open_database(capture: Capture) -> Database:
    if capture.kind == "mysql":
        from potok.sources.cdc.mysql.server import Server as MysqlServer

        return MysqlServer(capture)
    from potok.sources.cdc.postgres.server import Server

    return Server(capture)


def check_database(capture: Capture) -> None:
    """Raise unless the database can be captured, with the statements to run there."""
    with closing(open_database(capture)) as server:
        server.check()
        for table in capture.tables:
            server.shape(table)


def remove(capture: Capture, broker: Broker, *, drop: bool) -> None:
    """Forget the position of a capture, so that its next start takes a new snapshot; or remove it from the database."""
    landing = Landing(broker, capture.name)
    if capture.kind == "mysql":
        # The server keeps nothing for a capture.
        landing.load()
        landing.delete()
        return
    from potok.sources.cdc.postgres.server import Server
    from potok.sources.cdc.postgres.start import reset

    with closing(Server(capture)) as server:
        reset(capture, server, landing)
        if drop:
            server.drop()


@contextmanager
def captured(program: Topology | StreamsBuilder, broker: Broker) -> Iterator[list[CaptureRunner]]:
    """Run the captures of a program while its query runs.

    >>> with captured(builder, open_broker("file:./data")):
    ...     potok.run(builder, broker="file:./data")
    """
    topology = program.build() if isinstance(program, StreamsBuilder) else program
    with ExitStack() as running:
        yield [running.enter_context(CaptureRunner(capture, broker)) for capture in topology.captures]
