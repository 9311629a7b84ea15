"""The interface of all listeners: a spec says what to receive, a listener receives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from potok.errors import LogError, SetupError, TopologyError
from potok.log.broker import Broker
from potok.log.embedded.catalog import check_topic_name
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival, Done
from potok.sources.buffer import Buffer
from potok.sources.counters import MALFORMED, STOPPED, Counters
from potok.sources.overload import Overload

REASON = "potok-reason"
SOURCE = "potok-source"


def option(text: str, **arguments: Any) -> Any:
    """Declare an option of a listener with its documentation."""
    return field(metadata={"doc": text}, **arguments)


class NotAnAddress(TopologyError):
    """The text is not an address to listen on."""

    def __init__(self, text: str) -> None:
        hint = "write HOST:PORT, for example 127.0.0.1:8125, or [::1]:8125"
        super().__init__(f'"{text}" is not an address to listen on', hint=hint)


class CannotListen(SetupError):
    """The address is not available on this machine, or in use."""

    def __init__(self, name: str, address: Address | str, why: str) -> None:
        hint = "choose another address, or port 0 for any free port"
        super().__init__(f'listener "{name}" cannot listen on {address}: {why}', hint=hint)


class Address(NamedTuple):
    """An address to listen on."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """Parse `0.0.0.0:8125` or `[::1]:8125`.

        >>> Address.of("127.0.0.1:8125").port
        8125
        """
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise NotAnAddress(text)
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ListenerContext:
    """What a listener reports to: its buffer and its counters."""

    def __init__(
        self, name: str, broker: Broker, buffer: Buffer, counters: Counters, dead_letters: Buffer | None
    ) -> None:
        self.name, self.broker, self.buffer, self.counters = name, broker, buffer, counters
        self._dead_letters = dead_letters

    def lose(self, data: Sequence[bytes], reason: str, why: str, done: Done | None = None) -> None:
        """Count input that cannot become a record; if the listener has a topic for dead letters, write it there.

        `done` is called once, when the dead letters are durable or lost too: the sender need not keep its input.
        """
        self.counters.received_in_vain(len(data), reason)
        if self._dead_letters is None:
            if done is not None:
                done(None)
            return
        headers = ((REASON, f"{reason}: {why}".encode()), (SOURCE, self.name.encode()))
        records = [LogRecord(None, each, headers=headers) for each in data]
        settled = None if done is None else lambda problem: done(problem if problem == STOPPED else None)
        if not self._dead_letters.offer(Arrival.of(records, settled)) and done is not None:
            done(STOPPED)

    def malformed(self, data: Sequence[bytes], why: str) -> None:
        self.lose(data, MALFORMED, why)


class Listener(ABC):
    """Receives input between `start` and `stop`, in threads of its own."""

    address: Address | None = None
    """Where it listens, once it was created."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None:
        """Receive nothing more. What was handed over is still appended, and acknowledged."""

    @abstractmethod
    def close(self) -> None:
        """Release the address, and what acknowledgements need, after the last one."""

    @property
    def problem(self) -> str | None:
        """Why it receives nothing at present, if something is wrong."""
        return None

    def state(self) -> dict[str, Any]:
        """What else is worth showing."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec(ABC):
    """The options that all listeners have."""

    kind: ClassVar[str]
    extra: ClassVar[str | None] = None
    """The extra of the package that it needs."""

    name: str = option("Names the listener in metrics and messages.")
    topic: str = option("The topic of the records; created if it does not exist.")
    partitions: int = option("Number of partitions of a topic that is created.", default=1)
    overload: Overload = option("The buffer, and what happens when it is full.", default=Overload())
    dead_letters: str | None = option(
        "A topic for input that cannot become a record, with the reason in a header. Without it, such input is counted "
        "and dropped.",
        default=None,
    )

    def check(self) -> None:
        """Raise for options that cannot work."""
        if not self.name or not self.topic:
            raise TopologyError("a listener needs a name and a topic", hint='write topic = "metrics"')
        for topic in filter(None, (self.topic, self.dead_letters)):
            try:
                check_topic_name(topic)
            except LogError as error:
                raise TopologyError(error.message, hint=error.hint) from error
        if self.topic == self.dead_letters:
            hint = f'write dead_letters = "{self.topic}-dead-letters"'
            raise TopologyError(f'listener "{self.name}" writes dead letters to its own topic', hint=hint)
        if self.partitions < 1:
            raise TopologyError(f"partitions = {self.partitions} is too small", hint="write 1 or more")

    @abstractmethod
    def open(self, context: ListenerContext) -> Listener:
        """Create the listener; it binds its address, and receives nothing before `start`."""
