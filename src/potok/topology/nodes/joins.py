"""Joins of a stream: with another stream, and with a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from potok.duration import show_ms
from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node
from potok.topology.nodes.sources import TableSource


class JoinKind(StrEnum):
    """Which records come out that found no partner: none, those of the left side, or those of both."""

    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """A right record r is in reach of a left record l if `l - before <= r <= l + after`, by their times.

    A left record is late once the stream time of its partition is past `l + after + grace`, a right one once it is
    past `r + before + grace`: all that it could meet lies behind by then. Both ends belong to the window, so a record
    that comes in order is never late, not even for a window without a length.

    Rows of both sides close when the closing clock C is past their time + before + after + grace, for a record that
    comes later has a stream time of C at least, and so, if it is accepted:

    - a right one has r >= C - before - grace, so with C > l + before + after + grace it has r > l + after;
    - a left one has l >= C - after - grace, so with C > r + before + after + grace it has l > r + before.

    Neither is in reach of what has closed.

    A row that met nobody comes out when the clock is past its time by `wait_ms`. That is also the furthest that a
    record which is accepted can be behind its clock. So behind a join that lets rows wait, the clock is held back by
    it, and all that comes out has its own time as stream time, or less if it was ahead of its partition.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @property
    def wait_ms(self) -> int:
        """How far the clock may have passed the time of a row that still waits."""
        return self.before_ms + self.after_ms + self.grace_ms

    @property
    def keep_ms(self) -> int:
        """How long after its own time a row of either side is kept: the clock that closes it has passed the end."""
        return self.wait_ms + 1

    def reach_ms(self, side: int) -> tuple[int, int]:
        """How much earlier and later than a record of a side what it meets may be."""
        return (self.before_ms, self.after_ms) if side == 0 else (self.after_ms, self.before_ms)

    def __str__(self) -> str:
        if self.before_ms == self.after_ms:
            reach = f"within {show_ms(self.before_ms)}"
        else:
            reach = f"from {show_ms(self.before_ms)} before to {show_ms(self.after_ms)} after"
        return f"{reach}, grace {show_ms(self.grace_ms)}"


@dataclass(frozen=True, slots=True, eq=False)
class StreamJoin(Node):
    """Each pair of a left and a right record with one key that are in reach of each other, once."""

    left: Node
    right: Node
    how: JoinKind
    window: JoinWindow
    function: Function | None = None
    schema: Schema | None = None
    keeps_headers: bool = False
    """Whether a pair has the headers of its later record, and an unmatched record its own."""

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True

    @property
    def holds_back_ms(self) -> int:
        """Pairs go on when they meet; only rows that come out alone have waited."""
        return 0 if self.how is JoinKind.INNER else self.window.wait_ms

    @property
    def detail(self) -> str:
        return f"{self.how}, {self.window}"


@dataclass(frozen=True, slots=True, eq=False)
class LookupKey(Node):
    """Lets records look something up under another key; their own key comes back behind the join."""

    upstream: Node
    function: Function
    key_schema: Schema | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TableLookup(Node):
    """Join each record of a stream with the row of its key, in the timestamp order of the inputs."""

    stream: Node
    table: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    wait_for_table: bool = False

    @property
    def keeps(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        return f"{self.how}, the row as of the record's turn in timestamp order{_gate(self.wait_for_table)}"


@dataclass(frozen=True, slots=True, eq=False)
class HistoryLookup(Node):
    """Each record of a stream with the row that its key had at the record's own time.

    A record waits until the closing clock C is past its time + grace. A table record v that comes later has a stream
    time of C at least and, if it is not late, v >= C - grace, so it lies behind the time that was looked up. What is
    late, a stream record or a table record alike, counts as if it had the least time that is not: its stream time -
    grace. So the result does not depend on the order in which the two sides come. The clock of the steps behind is held
    back by the grace, and the time that was looked up is the stream time of what goes on.

    Without a grace nothing waits, and a record meets what the table knows by then of the record's time. `history_ms` is
    how far back a table goes that keeps versions: it does not accept older records.
    """

    stream: Node
    table: Node
    how: JoinKind
    grace_ms: int | None
    history_ms: int | None = None
    function: Function | None = None
    schema: Schema | None = None
    wait_for_table: bool = False

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True

    @property
    def holds_back_ms(self) -> int:
        return self.grace_ms or 0

    @property
    def detail(self) -> str:
        wait = "whichever came first" if self.grace_ms is None else f"grace {show_ms(self.grace_ms)}"
        return f"{self.how}, the row as of the record's time, {wait}{_gate(self.wait_for_table)}"


def _gate(waits: bool) -> str:
    return "; waits until the table is loaded" if waits else ""


@dataclass(frozen=True, slots=True, eq=False)
class TableRecords(Node):
    """The records that a table is read from, each of them, before they replace each other."""

    upstream: TableSource


@dataclass(frozen=True, slots=True, eq=False)
class HistoryFilter(Node):
    """A filter of a table, on each of its records: one that does not pass deletes."""

    upstream: Node
    predicate: Function
    negate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class HistoryMapValues(Node):
    """`map_values` of a table, on each of its records: a delete stays one."""

    upstream: Node
    function: Function
    schema: Schema | None = None
