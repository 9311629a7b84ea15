"""The agents of an app as the topology stores them: functions, tables and topics that can be pickled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from potok.topology.nodes.windows import FixedWindow

Thaw = Callable[[Any], Any]
"""Converts between the data of a cell and the object that an agent sees."""


class Revive(Protocol):
    """Converts a column to the objects that agents see. Converters with the same result are equal."""

    def several(self, column: Any, count: int) -> list[list[Any]]:
        """Return the objects separately for each of several agents, so that each may modify its own."""


@dataclass(frozen=True, slots=True)
class TopicPart:
    """A topic that agents may send to."""

    name: str


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table of agents.

    `make_default` returns the value of a missing key; `thaw` and `freeze` convert the data of a cell to a value
    and back. `window` assigns the windows of the table and its retention says how long they stay after their
    end; None means forever. `instant` extracts the time that selects the window from the value of a record, if
    it is not the timestamp of the record; with `wall` it is the processing time.
    """

    name: str
    key_type: pa.DataType | None = None
    make_default: Callable[[], Any] | None = None
    thaw: Thaw | None = None
    freeze: Thaw | None = None
    window: FixedWindow | None = None
    expires_ms: int | None = None
    wall: bool = False
    instant: Callable[[Any], int] | None = None
    on_close: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class AgentPart:
    """One agent.

    `begin` calls its function with a stream over an inlet and returns the coroutine to drive. `inputs` are the
    numbers of the upstreams whose records it receives, each with the converter of its column.
    """

    name: str
    start: Callable[[Any], Any]
    inputs: tuple[tuple[int, Revive], ...]
    on_error: Callable[[Any, BaseException], Any] | None = None
    timeout_s: float | None = 30.0
    channel: str = ""
    """The channel whose values it receives, instead of inputs."""
    concurrency: int = 1
    """How many records it may process concurrently, each with a different key."""
    on_failed: Callable[[str, str], None] | None = None
    """Called at the end of a batch with the name of the agent and the error, for each record that it turned into a dead
    letter; for callers that wait for an answer."""


@dataclass(frozen=True, slots=True)
class AgentGroup:
    """Agents that run in one task, on the tables they share. A group that is `spread` runs on every shard and may
    access only the row of the record's key. `notes` say why agents that could be spread are not.
    """

    app: str
    agents: tuple[AgentPart, ...]
    tables: tuple[TablePart, ...]
    topics: tuple[TopicPart, ...]
    spread: bool = False
    notes: tuple[str, ...] = ()
    elsewhere: tuple[tuple[str, str], ...] = field(default=())
    """Tables of the app that belong to another group, with the error message for an access from here."""
