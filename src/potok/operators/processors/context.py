"""The context of a processor while it handles a record or a timer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from potok.duration import Duration, to_ms
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.dead_letters import InputPartition
from potok.operators.processors.key_timers import KeyTimers, Timer, instant_ms
from potok.operators.processors.stores import frozen
from potok.topology.processor import Position, TimerClock

SAME_KEY: Any = object()
"""The key of output under the current key."""

MAIN = -1
"""The default output."""

NO_ROW = -1
"""The row of output sent by a timer."""

CLOCKS = ("event", "wall")


class Forwarded(NamedTuple):
    """An output value. `row` is its input record, `turn` and `at` define its order."""

    channel: int
    row: int
    turn: int
    at: int
    key: Any
    value: Any
    timestamp: int
    stream_time: int
    headers: tuple[tuple[str, bytes], ...] | None = None
    """Instead of those of the input record."""


class Context:
    """One for all calls of a batch: the operator sets it to the current record or timer."""

    def __init__(
        self,
        chunk: Chunk | None,
        input_partitions: list[InputPartition],
        channels: tuple[str, ...],
        processing_time_ms: int,
        *,
        fixed_key: bool,
        has_timers: bool,
    ) -> None:
        self._chunk, self._input_partitions, self._has_timers = chunk, input_partitions, has_timers
        self._channels = {name: number for number, name in enumerate(channels)}
        self._fixed_key = fixed_key
        self._headers: list[Any] | None = None
        self.processing_time = processing_time_ms
        self.timestamp = self.stream_time = 0
        self.timer = ""
        self.row = self.turn = NO_ROW
        self.at = 0
        self.firing: int | None = None
        self.timers = KeyTimers()
        self.sent: list[Forwarded] = []
        self.stores: dict[str, Any] = {}
        self.report = ""

    def at_record(self, row: int, timestamp: int, stream_time: int) -> None:
        self.row = self.turn = row
        self.timestamp, self.stream_time = timestamp, stream_time
        self.timer, self.firing, self.at = "", None, 0

    def at_timer(self, timer: Timer, turn: int, timestamp: int, stream_time: int, *, wall: bool) -> None:
        self.row, self.turn, self.at = NO_ROW, turn, timer.at
        self.timestamp, self.stream_time = timestamp, stream_time
        self.timer, self.firing = timer.name, None if wall else timer.at

    @property
    def position(self) -> Position | None:
        if self.row == NO_ROW or self._chunk is None:
            return None
        input_partition = int(self._chunk.input_partition[self.row])
        if input_partition == NO_INPUT_PARTITION:
            return None
        return Position(
            self._input_partitions[input_partition].topic,
            self._input_partitions[input_partition].partition,
            int(self._chunk.offset[self.row]),
        )

    @property
    def source(self) -> str:
        position = self.position
        return "" if position is None else position.topic

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        if self.row == NO_ROW or self._chunk is None or self._chunk.headers is None:
            return ()
        if self._headers is None:
            self._headers = self._chunk.headers.to_pylist()
        return tuple((header["name"], header["value"]) for header in self._headers[self.row] or ())

    def forward(
        self,
        value: Any,
        key: Any = None,
        timestamp: int | None = None,
        to: str | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        if key is not None and self._fixed_key:
            raise ValueError("process_values keeps the key; use process to forward under another key")
        channel = MAIN if to is None else self._channel(to)
        self.sent.append(
            Forwarded(
                channel,
                self.row,
                self.turn,
                self.at,
                SAME_KEY if key is None else frozen(key),
                frozen(value),
                self.timestamp if timestamp is None else instant_ms(timestamp),
                self.stream_time,
                None if headers is None else tuple(headers.items()),
            )
        )

    def report_dead_letter(self, error: str) -> None:
        self.report = error

    def _channel(self, name: str) -> int:
        if name not in self._channels:
            known = ", ".join(self._channels) or "none"
            raise ValueError(f'there is no output "{name}"; declared are: {known}')
        return self._channels[name]

    def schedule(
        self, at: int | None = None, *, after: Duration | None = None, name: str = "", clock: TimerClock = "event"
    ) -> None:
        if not self._has_timers:
            raise ValueError("a timer needs an on_timer to call")
        if clock not in CLOCKS:
            raise ValueError(f"unknown clock {clock!r}; use event or wall")
        if (at is None) == (after is None):
            raise ValueError("pass either at=milliseconds or after=duration")
        if not isinstance(name, str):
            raise TypeError("the name of a timer must be text")
        wall = clock == "wall"
        now = self.processing_time if wall else self.timestamp
        due = instant_ms(at if after is None else now + to_ms(after))
        if self.firing is not None and not wall and due <= self.firing:
            raise ValueError(f"a timer that is set by the timer of {self.firing} must be later than it")
        self.timers.add(Timer(due, name, self.stream_time), wall=wall)

    def cancel(self, name: str = "") -> None:
        self.timers.cancel(name)

    def store(self, name: str) -> Any:
        if name not in self.stores:
            raise ValueError(f'there is no store "{name}"; declared are: {", ".join(self.stores) or "none"}')
        return self.stores[name]
