"""Joins of two tables: both sides keep the result current."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schema import Schema
from potok.topology.nodes.joins import JoinKind
from potok.topology.nodes.node import Node


def has_windows(node: Node) -> bool:
    """Whether the rows of a table are windows: those of an aggregate, or made of such rows one by one."""
    if getattr(node, "window", None) is not None:
        return True
    return any(upstream.is_table and has_windows(upstream) for upstream in node.upstreams)


@dataclass(frozen=True, slots=True, eq=False)
class TableJoin(Node):
    """The rows of two tables that have one key. Kept as a table of its own if named."""

    left: Node
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    kept: bool = False

    @property
    def stateful(self) -> bool:
        return self.kept

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return has_windows(self)

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
    """The rows of a table on their way to the rows of another: `function` tells the key that a row has there."""

    upstream: Node
    function: Function
    how: JoinKind


@dataclass(frozen=True, slots=True, eq=False)
class ForeignMatch(Node):
    """Keeps which rows refer to which, on the shard of the one that is referred to. What becomes of a row is told to
    its own shard: there may be two tales of it in a batch, of the row it left and of the row it came to."""

    left: ForeignKey
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None

    @property
    def keeps(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ForeignJoin(Node):
    """The rows of a table with the rows that they refer to, under their own keys. Kept as a table if named."""

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
