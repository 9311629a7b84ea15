"""Parsed queries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from potok.sql.syntax.ast.expressions import Expression, Node, OrderItem
from potok.sql.syntax.ast.row_patterns import MatchRecognize


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    expression: Expression
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Everything(Node):
    """`*`, or `t.*` with a source."""

    source: str = ""


@dataclass(frozen=True, slots=True)
class EveryField(Node):
    """`address->*`: each field of a struct as a column."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A stream or table by name, under its alias if it has one. `as_of` is for pull queries on versioned tables.

    With MATCH_RECOGNIZE, the alias is the name of the result, and `row_alias` that of the rows that are matched.
    """

    name: str
    alias: str = ""
    as_of: Expression | None = None
    match: MatchRecognize | None = None
    row_alias: str = ""


@dataclass(frozen=True, slots=True)
class Within(Node):
    """The maximum time difference of the records of a stream-stream join, in milliseconds."""

    before_ms: int
    after_ms: int
    grace_ms: int | None = None


class JoinKind(Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class Join(Node):
    kind: JoinKind
    relation: Relation
    condition: Expression
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class WindowClause(Node):
    """`WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAY, GRACE PERIOD 10 MINUTES)`, in milliseconds. For SESSION the size
    is the gap."""

    kind: str
    """TUMBLING, HOPPING or SESSION."""
    size_ms: int
    advance_ms: int | None = None
    retention_ms: int | None = None
    grace_ms: int | None = None


class Emit(Enum):
    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A query. Without `emit` it is a pull query, unless a statement around it says otherwise."""

    items: tuple[SelectItem | Everything | EveryField, ...]
    relation: Relation
    joins: tuple[Join, ...] = ()
    window: WindowClause | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    emit: Emit | None = None
