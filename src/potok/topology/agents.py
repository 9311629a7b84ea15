"""What the agents of an app are made of, as the topology keeps it: functions, tables and topics, ready to travel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from potok.topology.nodes.windows import FixedWindow

Thaw = Callable[[Any], Any]
"""From data as a cell holds it to what an agent sees, or back."""


class Revive(Protocol):
    """Makes of a column what agents see. Those that make the same are equal."""

    def several(self, column: Any, count: int) -> list[list[Any]]:
        """The objects, for each of several agents its own, to change as it likes."""


@dataclass(frozen=True, slots=True)
class TopicPart:
    """A topic that agents may send to."""

    name: str


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table of agents.

    `make_default` gives the value of a key that has none; `thaw` and `freeze` are the ways from the data of a cell to
    a value and back. The windows of a table are those of `window`, whose retention is how long they live after their
    end; None stands for ever. `instant` tells the time whose window is meant from the value of a record, where that
    is not the time of the record; with `wall` it is the clock on the wall.
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

    `begin` calls its function with a stream over an inlet, and returns the coroutine to be driven. `inputs` are the
    numbers of the upstreams whose records it takes, each with what makes of a column what the agent sees.
    """

    name: str
    begin: Callable[[Any], Any]
    inputs: tuple[tuple[int, Revive], ...]
    on_error: Callable[[Any, BaseException], Any] | None = None
    timeout_s: float | None = 30.0
    channel: str = ""
    """In place of inputs, the channel whose values it takes."""
    concurrency: int = 1
    """How many records it may have at once, each of another key."""
    on_failed: Callable[[str, str], None] | None = None
    """Called at the end of a batch with the name of the agent and what went wrong, for each record that is a dead
    letter by it; for those who wait for an answer."""


@dataclass(frozen=True, slots=True)
class AgentGroup:
    """Agents that run in one task, on the tables they share. A crew that is `spread` runs on every shard, and may
    touch no row but that of the record's key. `notes` say why agents that might be spread are not."""

    app: str
    agents: tuple[AgentPart, ...]
    tables: tuple[TablePart, ...]
    topics: tuple[TopicPart, ...]
    spread: bool = False
    notes: tuple[str, ...] = ()
    elsewhere: tuple[tuple[str, str], ...] = field(default=())
    """Tables of the app that another crew has, with what to say to who asks for them here."""
