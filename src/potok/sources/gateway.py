"""The gateway: listeners whose input cannot be replayed, each with its buffer, in front of a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.snapshots.source_status import GATEWAY
from potok.sources.appender import Appender
from potok.sources.buffer import Buffer
from potok.sources.counters import Counters, Counts
from potok.sources.listener import Listener, ListenerContext, ListenerSpec
from potok.sources.overload import Overload
from potok.sources.status_report import StatusReport

_DEAD_LETTERS = Overload(max_records=10_000, max_bytes=16 << 20, when_full="drop_newest")


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """What a listener has received, and whether something is wrong."""

    name: str
    kind: str
    topic: str
    address: str | None
    counts: Counts
    dead_letters: Counts | None
    problem: str | None
    state: dict[str, Any]


class _Running:
    """A listener with its buffers and their appenders."""

    def __init__(self, spec: ListenerSpec, broker: Broker) -> None:
        self.spec, self.counters = spec, Counters()
        self._buffer = Buffer(spec.overload, self.counters)
        self._appenders = [Appender(spec.name, broker, spec.topic, self._buffer)]
        self._letters: Counters | None = None
        letters = None
        if spec.dead_letters is not None:
            self._letters = Counters()
            letters = Buffer(_DEAD_LETTERS, self._letters)
            self._appenders.append(Appender(f"{spec.name}-dead-letters", broker, spec.dead_letters, letters))
        context = ListenerContext(spec.name, broker, self._buffer, self.counters, letters)
        self.listener: Listener = spec.open(context)

    def start(self) -> None:
        for appender in self._appenders:
            appender.start()
        self.listener.start()

    def stop(self, timeout_s: float) -> None:
        self.listener.stop()
        for appender in self._appenders:
            appender.stop(timeout_s)
        self.listener.close()

    def status(self) -> ListenerStatus:
        address = self.listener.address
        return ListenerStatus(
            self.spec.name,
            self.spec.kind,
            self.spec.topic,
            None if address is None else str(address),
            self.counters.read(),
            None if self._letters is None else self._letters.read(),
            self.listener.problem or self._appenders[0].error,
            self.listener.state(),
        )


class Gateway:
    """Listeners in front of a log, from `start()` to `stop()`.

    >>> with Gateway("file:./data", [Udp(name="metrics", topic="metrics", listen="127.0.0.1:8125")]) as gateway:
    ...     gateway.wait()

    Args:
        broker: A log or its URL.
        listeners: What to listen to.
        stop_timeout_s: How long `stop` waits for a log that does not answer; after that, buffered records are lost and
            counted.
    """

    def __init__(
        self, broker: Broker | str | Path, listeners: Sequence[ListenerSpec], *, stop_timeout_s: float = 30.0
    ) -> None:
        check_listeners(listeners)
        self._stop_timeout_s = stop_timeout_s
        self._report: StatusReport | None = None
        self._stopped = threading.Event()
        self._log = ExitStack()
        if isinstance(broker, Broker):
            self.broker = broker
        else:
            self.broker = open_broker(broker)
            self._log.callback(self.broker.close)
        with self._log.pop_all() as opening:
            self._running: list[_Running] = []
            for spec in listeners:
                for topic in filter(None, (spec.topic, spec.dead_letters)):
                    self.broker.create_topic(topic, spec.partitions, exist_ok=True)
                running = _Running(spec, self.broker)
                opening.callback(running.listener.close)
                self._running.append(running)
            opening.pop_all()

    def start(self) -> None:
        for running in self._running:
            running.start()
        self._report = StatusReport(
            self.broker, GATEWAY, lambda: {one.name: status_as_object(one) for one in self.status()}
        )
        self._report.start()

    def stop(self) -> None:
        """Stop receiving, append what is buffered, and close the log."""
        end = time.monotonic() + self._stop_timeout_s
        for running in self._running:
            running.stop(max(0.0, end - time.monotonic()))
        if self._report is not None:
            self._report.stop()
        self._log.close()
        self._stopped.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until another thread stops the gateway; return whether it has stopped."""
        return self._stopped.wait(timeout)

    def status(self) -> list[ListenerStatus]:
        return [running.status() for running in self._running]

    def counts(self, name: str) -> Counts:
        """Return the counts of one listener."""
        return next(running.counters.read() for running in self._running if running.spec.name == name)

    def address(self, name: str) -> str:
        """Return where a listener listens, for example after port 0."""
        listener = next(running.listener for running in self._running if running.spec.name == name)
        return str(listener.address)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def status_as_object(status: ListenerStatus) -> dict[str, Any]:
    """Return a status as plain data, ready for JSON."""
    found = asdict(status)
    counts, letters = status.counts, status.dead_letters
    found["counts"] = {**asdict(counts), "buffered": counts.buffered}
    found["dead_letters"] = None if letters is None else {**asdict(letters), "buffered": letters.buffered}
    return found


def check_listeners(listeners: Sequence[ListenerSpec]) -> None:
    """Raise for listeners that cannot work together, or whose packages are missing."""
    if not listeners:
        raise TopologyError("a gateway needs a listener", hint="see docs/gateway.md for the kinds of listeners")
    names: set[str] = set()
    for spec in listeners:
        spec.check()
        if spec.name in names:
            raise TopologyError(f'there are two listeners "{spec.name}"', hint="give each a name of its own")
        names.add(spec.name)
        if spec.extra is not None:
            need_extra(f'listener "{spec.name}" ({spec.kind})', spec.extra)
