"""Joins of two tables: both sides keep the result current."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.joins import JoinKind
from potok.topology.nodes.node import Node
from potok.topology.nodes.windows import Window


def windows_of(node: Node) -> list[Window]:
    """The windows that the rows of a table are: those of an aggregate, or of the tables that they are made of one by
    one."""
    window = getattr(node, "window", None)
    if window is not None:
        return [window]
    return [window for upstream in node.upstreams if upstream.is_table for window in windows_of(upstream)]


@dataclass(frozen=True, slots=True, eq=False)
class TableJoin(Node):
    """The rows of two tables that have one key. Kept as a table of its own if named."""

    left: Node
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    kept: bool = False
    every_update: bool = False
    """Whether every update is emitted, as in Kafka Streams: also one that leaves the row as it was."""

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
    """The rows of a table on their way to the rows of another: `function` tells the key that a row has there."""

    upstream: Node
    function: Function
    how: JoinKind

    @property
    def step(self) -> str:
        return self.name.removesuffix(".foreign_key")


@dataclass(frozen=True, slots=True, eq=False)
class ForeignMatch(Node):
    """Keeps which rows refer to which, on the shard of the one that is referred to. What becomes of a row is told to
    its own shard: there may be two tales of it in a batch, of the row it left and of the row it came to."""

    left: ForeignKey
    right: Node
    how: JoinKind
    function: Function | None = None
    schema: Schema | None = None
    every_update: bool = False
    """Whether every update is emitted, as in Kafka Streams: also one that leaves the row as it was."""

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
