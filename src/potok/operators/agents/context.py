"""The context that the handles of an app use while its agents run: the current record, open tables, and output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from potok.errors import QueryError
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.dead_letters import InputPartition
from potok.topology.processor import Position

if TYPE_CHECKING:
    from potok.operators.agents.row_changes import Entry
    from potok.operators.agents.tables import OpenTable
    from potok.operators.agents.values import Watched

NO_RECORD = -1
"""The turn of work without a record, such as the close of a window."""

Headers = tuple[tuple[str, bytes], ...]


class NotSentFromHere(QueryError):
    """A topic that was not declared as output of agents."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'no agent is declared to send to topic "{topic}"',
            hint=f'declare it where the agent is defined: @app.agent(..., sends=["{topic}"])',
        )


class Unfit(NamedTuple):
    """A value that does not have the type that its agent expects."""

    why: str


Sent = tuple[int, int, bytes | None, bytes | None, int | None, Headers | None]
"""An output record: the number of its topic, that of the record that led to it, key, value, time and headers."""

Undo = tuple["Entry", Any, int, bool | None]
"""An entry of a table with the value, the time and the version that it had before the current record."""


class Running:
    """One for all agents of a group in a task: the operator sets it to the current record.

    `turn` numbers what the agents are given; two agents that get the same record have different turns, so that the
    work of each can be undone on its own.
    """

    def __init__(
        self, app: str, topics: Mapping[str, int], processing_time_ms: int, input_partitions: list[InputPartition]
    ) -> None:
        self.app, self.processing_time_ms = app, processing_time_ms
        self.tables: dict[str, OpenTable] = {}
        self.elsewhere: dict[str, str] = {}
        self.sent: list[Sent] = []
        self.undo: list[Undo] = []
        self.posted: list[tuple[str, Any]] = []
        """Values put into channels in this turn."""
        self.held: list[Callable[[], None]] = []
        """Objects to notify at the end of the turn."""
        self.watched: list[Watched] = []
        """Values that were handed out in this turn and must not be changed in place."""
        self.copies_all = False
        """Whether large rows are also copied before they are changed."""
        self.turn = NO_RECORD
        self.record = NO_RECORD
        self.timestamp = self.stream_time = 0
        self.chunk: Chunk | None = None
        self.row = 0
        self.key: Any = None
        self.value: Any = None
        self.agent = ""
        self.stand_in: Any = None
        """Used by handles while there is no current record."""
        self._topics, self._input_partitions = topics, input_partitions

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        number = self._topics.get(topic)
        if number is None:
            raise NotSentFromHere(topic)
        if timestamp is None and self.record == NO_RECORD:
            timestamp = self.timestamp
        self.sent.append((number, self.record, key, value, timestamp, headers))

    @property
    def position(self) -> Position | None:
        if self.chunk is None:
            return None
        input_partition = int(self.chunk.input_partition[self.row])
        if input_partition == NO_INPUT_PARTITION:
            return None
        return Position(
            self._input_partitions[input_partition].topic,
            self._input_partitions[input_partition].partition,
            int(self.chunk.offset[self.row]),
        )

    @property
    def headers(self) -> Headers:
        if self.chunk is None or self.chunk.headers is None:
            return ()
        return tuple((header["name"], header["value"]) for header in self.chunk.headers[self.row].as_py() or ())

    def begin_turn(self) -> int:
        """Start to record changes; return how much was sent before."""
        self.turn += 1
        self.undo = []
        self.watched.clear()
        if self.held:
            self.let_go()
        return len(self.sent)

    def let_go(self) -> None:
        held, self.held = self.held, []
        for let_go in held:
            let_go()

    def forget(self) -> None:
        """Release the last record, and everything that was open."""
        self.tables, self.sent, self.undo, self.watched = {}, [], [], []
        self.chunk = self.key = self.value = None

    def take_back(self, sent: int, *, apart: bool = False) -> None:
        """Undo what was done since the last turn started; `sent` is how much had been sent by then. Rows are restored
        in place or, if they are kept `apart` for later, replaced by others.
        """
        del self.sent[sent:]
        self.posted = []
        for entry, value, time, changed in reversed(self.undo):
            entry.time, entry.changed = time, changed
            if apart:
                entry.value = value
            else:
                entry.restore(value)
        self.undo = []
        self.watched.clear()
        if self.held:
            self.let_go()


_driving: ContextVar[Running | None] = ContextVar("potok_agents", default=None)
"""Inherited by the tasks and threads that agents start, and by nothing else in the process."""


@contextmanager
def driving(running: Running) -> Iterator[None]:
    """Let the handles of an app use `running` inside this block."""
    token = _driving.set(running)
    try:
        yield
    finally:
        _driving.reset(token)


def drive(running: Running | None) -> None:
    """Let the handles of an app use `running` from here on."""
    _driving.set(running)


def current() -> Running | None:
    """Return the agent group that runs here, or its stand-in; None outside of agents."""
    running = _driving.get()
    return running if running is None or running.stand_in is None else running.stand_in
