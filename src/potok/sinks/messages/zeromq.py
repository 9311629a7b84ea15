"""Send records over a ZeroMQ socket."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Literal

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.retry_policy import GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.json_bodies import json_bodies
from potok.sinks.key_texts import keys_as_texts
from potok.sinks.sink_spec import Batch, Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types

ZeroMqPattern = Literal["push", "pub"]
ZeroMqFrame = Literal["key", "sender", "number", "value"]

FRAMES = ("key", "sender", "number", "value")
LINGER_S = 5.0
"""How long an orderly end waits until the peers have read what is queued."""

_ENDPOINT = re.compile(r"(tcp|ipc)://.+")


@dataclass(frozen=True, slots=True)
class ZeroMqTarget(SinkSpec):
    """A PUSH or PUB socket that connects to an endpoint, or binds it."""

    verb: ClassVar[str] = "to_zeromq"

    endpoint: str
    pattern: ZeroMqPattern
    bind: bool
    frames: tuple[ZeroMqFrame, ...]
    high_water_mark: int
    give_up_after_ms: int | None
    with_key: bool

    @property
    def label(self) -> str:
        return f"{self.pattern.upper()} socket at {self.endpoint}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_zeromq", "zeromq")
        if not _ENDPOINT.fullmatch(self.endpoint):
            raise TopologyError(f'"{self.endpoint}" is not an endpoint', hint='write "tcp://127.0.0.1:5555"')
        if self.pattern not in ("push", "pub"):
            raise TopologyError(f'there is no pattern "{self.pattern}"', hint='use "push" or "pub"')
        unknown = [each for each in self.frames if each not in FRAMES]
        if unknown or "value" not in self.frames:
            text = f'there is no frame "{unknown[0]}"' if unknown else "a message needs a frame with the value"
            raise TopologyError(text, hint=f"use some of {', '.join(FRAMES)}, for example frames=('key', 'value')")
        if self.high_water_mark < 1:
            raise TopologyError("high_water_mark is too small", hint="write 1 or more")

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare keys as text, if there is a frame for them, and bodies as values."""
        keys = keys_as_texts(rows.key, required="key" in self.frames)
        bodies = json_bodies(rows, with_key=self.with_key)
        return Prepared(keys.values, bodies.values, {**bodies.errors, **(keys.errors if "key" in self.frames else {})})

    def open(self, opening: Opening) -> SinkWriter:
        return ZeroMqWriter(self, opening)


class ZeroMqWriter(SinkWriter):
    """Hands messages to the socket, after the commit. A PUSH socket without room waits; a PUB socket drops.

    What finds no room for too long becomes a dead letter: it was not sent.
    """

    def __init__(self, target: ZeroMqTarget, opening: Opening) -> None:
        import zmq

        self._target = target
        self._sender = f"{opening.query}/{opening.step}/{opening.epoch}".encode()
        self._number = 0
        self._context: Any = zmq.Context()
        self._socket: Any = self._context.socket(zmq.PUSH if target.pattern == "push" else zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, int(LINGER_S * 1_000))
        self._socket.setsockopt(zmq.SNDHWM, target.high_water_mark)
        # Messages wait here until there is a connection, so that the wait is seen.
        self._socket.setsockopt(zmq.IMMEDIATE, int(target.pattern == "push"))
        try:
            (self._socket.bind if target.bind else self._socket.connect)(target.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise DeliveryFailed(opening.step, target.label, opening.committed + 1, str(error)) from error

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        made = self._frames(rows)
        for row in range(len(rows)):
            if not self._sent(made(row)):
                # Only what was sent has a number, so that a gap means a loss.
                why = f"not sent: nobody reads from {self._target.label}"
                return dict.fromkeys(range(row, len(rows)), why)
        return {}

    def _frames(self, rows: Rows) -> Callable[[int], list[bytes]]:
        """Return a function that makes the frames of a message, which has the next number."""
        values = rows.values
        keys = rows.keys if "key" in self._target.frames else repeat("", len(rows))
        texts = [key.encode() for key in keys]

        def frames(row: int) -> list[bytes]:
            parts = {"key": texts[row], "sender": self._sender, "number": b"%d" % (self._number + 1)}
            return [values[row] if name == "value" else parts[name] for name in self._target.frames]

        return frames

    def _sent(self, frames: list[bytes]) -> bool:
        import zmq

        retry: Retry | None = None
        while True:
            try:
                self._socket.send_multipart(frames, zmq.NOBLOCK)
                self._number += 1
                return True
            except zmq.Again:
                retry = retry or Retry(self._target.give_up_after_ms or GIVE_UP_MS)
                pause_s = retry.pause()
                if pause_s is None:
                    return False
                self._socket.poll(int(pause_s * 1_000), zmq.POLLOUT)

    def close(self) -> None:
        self._socket.close()
        self._context.term()
