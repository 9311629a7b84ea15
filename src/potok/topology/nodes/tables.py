"""Steps on tables. A table is a stream of changes: before and after, per key."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node
from potok.topology.nodes.retention import FOREVER, Lifetime


@dataclass(frozen=True, slots=True, eq=False)
class ToTable(Node):
    """Store the latest value of each key: by position if keys stay in their partition, by event time after a
    change of key or if versions are stored.
    """

    upstream: Node
    lifetime: Lifetime = FOREVER

    @property
    def stateful(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return self.lifetime.timed

    @property
    def cells(self) -> str:
        return self.lifetime.cells

    @property
    def detail(self) -> str:
        return str(self.lifetime)

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class TableFilter(Node):
    """Keep the rows that satisfy `predicate`; a row that no longer does so is deleted. Stored as a table if
    named.
    """

    upstream: Node
    predicate: Function
    negate: bool = False
    kept: bool = False

    @property
    def stateful(self) -> bool:
        return self.kept

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class TableMapValues(Node):
    """Replace the value of each row. Stored as a table if named."""

    upstream: Node
    function: Function
    schema: Schema | None = None
    kept: bool = False

    @property
    def stateful(self) -> bool:
        return self.kept

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ToStream(Node):
    """The changes of a table as records: the value after the change, null for a delete; or, with `changes`, a
    value with the row before and after.
    """

    upstream: Node
    changes: bool = False
