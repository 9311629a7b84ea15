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
    """Which records without a match are emitted: none, those of the left side, or those of both."""

    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """A right record r matches a left record l if `l - before <= r <= l + after`, by their timestamps.

    A left record is late once the stream time of its partition is past `l + after + grace`, a right one once it
    is past `r + before + grace`: everything that it could match is older by then. Both ends belong to the
    window, so a record that arrives in order is never late, not even for a window of length zero.

    Rows of both sides close when the watermark C is past their time + before + after + grace, because a record
    that arrives later has a stream time of at least C, and so, if it is accepted:

    - a right one has r >= C - before - grace, so with C > l + before + after + grace it has r > l + after;
    - a left one has l >= C - after - grace, so with C > r + before + after + grace it has l > r + before.

    Neither matches a closed row.

    A row without a match is emitted when the watermark is past its time by `wait_ms`. That is also the furthest
    that an accepted record can be behind the watermark. So downstream of a join that delays rows, the watermark
    is held back by it, and every result has its own timestamp as stream time, or less if it was ahead of its
    partition.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @property
    def wait_ms(self) -> int:
        """Return how far the watermark may have passed the time of a row that still waits."""
        return self.before_ms + self.after_ms + self.grace_ms

    @property
    def keep_ms(self) -> int:
        """Return how long after its own time a row of either side is stored: the watermark that closes it has
        passed the end.
        """
        return self.wait_ms + 1

    def reach_ms(self, side: int) -> tuple[int, int]:
        """Return how much earlier and later than a record of a side its matches may be."""
        return (self.before_ms, self.after_ms) if side == 0 else (self.after_ms, self.before_ms)

    def __str__(self) -> str:
        if self.before_ms == self.after_ms:
            reach = f"within {show_ms(self.before_ms)}"
        else:
            reach = f"from {show_ms(self.before_ms)} before to {show_ms(self.after_ms)} after"
        return f"{reach}, grace {show_ms(self.grace_ms)}"


@dataclass(frozen=True, slots=True, eq=False)
class StreamJoin(Node):
    """Emit each pair of a left and a right record that have the same key and match by time, once."""

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
        """Pairs are emitted when they match; only rows without a match have waited."""
        return 0 if self.how is JoinKind.INNER else self.window.wait_ms

    @property
    def detail(self) -> str:
        return f"{self.how}, {self.window}"


@dataclass(frozen=True, slots=True, eq=False)
class LookupKey(Node):
    """Gives records another key for a lookup; the join restores their own key."""

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
    """Join each record of a stream with the row that its key had at the record's own time.

    A record waits until the watermark C is past its time + grace. A table record v that arrives later has a
    stream time of at least C and, if it is not late, v >= C - grace, so it is after the time that was looked
    up. A late record of either side counts as if it had the least time that is not late: its stream time -
    grace. So the result does not depend on the order in which the two sides arrive. The watermark of downstream
    steps is held back by the grace, and the time that was looked up is the stream time of the result.

    Without a grace no record waits, and a record is joined with the current version of the row at the record's
    time. `history_ms` is how far back a versioned table goes: it does not accept older records.
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
    """All records that a table is read from, before later ones replace earlier ones."""

    upstream: TableSource


@dataclass(frozen=True, slots=True, eq=False)
class HistoryFilter(Node):
    """A filter of a table, applied to each of its records: a record that does not pass becomes a delete."""

    upstream: Node
    predicate: Function
    negate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class HistoryMapValues(Node):
    """`map_values` of a table, applied to each of its records: a delete stays a delete."""

    upstream: Node
    function: Function
    schema: Schema | None = None
