"""What ZeroMQ and NNG have in common: a socket without acknowledgements, read by a thread."""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from potok.errors import TopologyError
from potok.records.log_record import LogRecord
from potok.sources.listener import Address, Listener, ListenerContext, ListenerSpec, option
from potok.sources.messages.intake import Intake, Message
from potok.sources.messages.parts import part_of
from potok.sources.messages.sequence import Sequence as Numbers

AT_ONCE = 1_000
_FULL_S = 0.005
_MOST_DIGITS = 18
"""A longer number is none that a sender counts to."""

_PART = re.compile(r"frame:\d+|body:\w+(\.\w+)*")
_ENDPOINT = re.compile(r"(tcp|ipc|inproc|ws|tls\+tcp)://.+")

Frames = Sequence[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketSpec(ListenerSpec):
    """The options of sockets that pull or subscribe."""

    pattern: Literal["pull", "sub"] = option(
        "`pull` shares the messages of PUSH sockets, `sub` subscribes to PUB sockets."
    )
    listen: str | None = option("The endpoint to bind, such as tcp://127.0.0.1:5555.", default=None)
    connect: tuple[str, ...] = option("The endpoints to connect to.", default=())
    subscribe: tuple[str, ...] = option("`sub`: prefixes of the messages to receive.", default=("",))
    key: str | None = option("What becomes the key of a record: `frame:NUMBER` or `body:FIELD.FIELD`.", default=None)
    sequence: str | None = option(
        "Where a message has the number that its sender gave it, in the same form. Gaps are counted as `missing`.",
        default=None,
    )
    sender: str | None = option(
        "What identifies a sender that numbers its messages, in the same form; without it, there is one.", default=None
    )
    high_water_mark: int = option("Maximum number of messages that the socket holds.", default=10_000)
    max_message: int = option(
        "Maximum size of a message in bytes; a connection that sends more is closed.", default=1 << 20
    )

    def check(self) -> None:
        ListenerSpec.check(self)
        if self.pattern not in ("pull", "sub"):
            raise TopologyError(f'there is no pattern "{self.pattern}"', hint='use "pull" or "sub"')
        endpoints = [*([self.listen] if self.listen is not None else []), *self.connect]
        if not endpoints:
            raise TopologyError("there is no endpoint", hint='write listen = "tcp://127.0.0.1:5555", or connect')
        for each in endpoints:
            if not _ENDPOINT.fullmatch(each):
                raise TopologyError(f'"{each}" is not an endpoint', hint="write tcp://127.0.0.1:5555")
        for name in ("key", "sequence", "sender"):
            part = getattr(self, name)
            if part is not None and not _PART.fullmatch(part):
                hint = f'write {name} = "frame:0" or {name} = "body:FIELD"'
                raise TopologyError(f'{name} = "{part}" names no part of a message', hint=hint)
        for name in ("high_water_mark", "max_message"):
            if getattr(self, name) < 1:
                raise TopologyError(f"{name} is too small", hint="write 1 or more")
        self.overload.allow(("block", "drop_newest", "drop_oldest"), "the protocol cannot reject a message")


class SocketListener(Listener):
    """A thread that reads one socket. While the buffer is full, it does not read."""

    def __init__(self, spec: SocketSpec, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._intake = Intake(context)
        self._numbers = None if spec.sequence is None else Numbers(context.counters)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"potok-{spec.kind}-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def receive(self) -> list[Frames]:
        """Wait a moment for a message, and return those that are there, at most `AT_ONCE`."""

    def _run(self) -> None:
        while not self._stopping.is_set():
            messages = [self._message(frames) for frames in self.receive()]
            while messages and not self._intake.offer(messages):
                if self._stopping.wait(_FULL_S) and not self._intake.offer(messages):
                    self._context.lose([each.record.value or b"" for each in messages], "stopped", "the buffer is full")
                    break

    def _message(self, frames: Frames) -> Message:
        key = self._part(self._spec.key, frames)
        if self._numbers is not None and self._spec.sequence is not None:
            number = self._part(self._spec.sequence, frames)
            if number is not None and number.isdigit() and len(number) <= _MOST_DIGITS:
                sender = self._part(self._spec.sender, frames) or b""
                self._numbers.arrived(sender.decode(errors="replace"), int(number))
        return Message(LogRecord(key, frames[-1]))

    def _part(self, name: str | None, frames: Frames) -> bytes | None:
        if name is None:
            return None
        kind, _, which = name.partition(":")
        if kind == "frame":
            return frames[int(which)] if int(which) < len(frames) else None
        text = part_of(name, frames[-1])
        return None if text is None else text.encode()


def address_of(endpoint: str) -> Address | None:
    """Return the address of a bound TCP endpoint."""
    kind, _, rest = endpoint.partition("://")
    return Address.of(rest) if kind == "tcp" else None
