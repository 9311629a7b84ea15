"""Joins of two tables: changes of both sides update the result."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.joins import JoinKind
from potok.topology.nodes.node import Node
from potok.topology.nodes.windows import Window


def windows_of(node: Node) -> list[Window]:
    """Return the windows of the rows of a table: those of an aggregate, or of the tables that it is derived from
    row by row.
    """
    window = getattr(node, "window", None)
    if window is not None:
        return [window]
    return [window for upstream in node.upstreams if upstream.is_table for window in windows_of(upstream)]


@dataclass(frozen=True, slots=True, eq=False)
class TableJoin(Node):
    """Join the rows of two tables with the same key. Stored as a table if named."""

    left: Node
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    kept: bool = False
    every_update: bool = False
    """Whether every update is emitted, as in Kafka Streams, including one that does not change the row."""

    @property
    def stateful(self) -> bool:
        return self.kept

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return bool(windows_of(self))

    @property
    def gathers(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        return f"{self.how} join of {self.left.name} and {self.right.name} by key"


@dataclass(frozen=True, slots=True, eq=False)
class ForeignKey(Node):
    """Sends the rows of a table to the rows that they refer to: `function` returns the foreign key of a row."""

    upstream: Node
    function: Function
    how: JoinKind

    @property
    def step(self) -> str:
        return self.name.removesuffix(".foreign_key")


@dataclass(frozen=True, slots=True, eq=False)
class ForeignMatch(Node):
    """Stores which rows refer to which, on the shard of the referenced row, and sends results to the shard of the
    referring row. A batch may send two results for one row: for the reference that it left and for the one it
    now has.
    """

    left: ForeignKey
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    every_update: bool = False
    """Whether every update is emitted, as in Kafka Streams, including one that does not change the row."""

    @property
    def step(self) -> str:
        return self.name.removesuffix(".match")

    @property
    def keeps(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ForeignJoin(Node):
    """Join the rows of a table with the rows that they refer to, under their own keys. Stored as a table if
    named.
    """

    upstream: ForeignMatch
    kept: bool = False

    @property
    def stateful(self) -> bool:
        return self.kept

    @property
    def gathers(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        match = self.upstream
        of = match.left.upstream.name
        return f"{match.how} join of {of} and {match.right.name} on {match.left.function.name}"
