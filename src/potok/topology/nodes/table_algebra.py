"""Tables derived from the rows of a table under other keys."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.aggregates import Aggregation
from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class TableGroup(Node):
    """The rows of a table by group: `function` returns the group of a row or, with `pairs`, its group and its
    value.

    A change removes the old row from its old group and adds the new row to its new one.
    """

    upstream: Node
    function: Function
    pairs: bool = False
    key_schema: Schema | None = None
    schema: Schema | None = None
    every_update: bool = False
    """Whether a group also receives a row that existed only between two changes of one batch."""


@dataclass(frozen=True, slots=True, eq=False)
class TableAggregate(Node):
    """A table of one aggregate per group. A row that leaves its group is retracted: by `subtractor` if the
    aggregate is the user's. A group without rows has no aggregate or, with `keeps_empty`, that of no rows, once
    it has had a row.
    """

    upstream: TableGroup
    aggregation: Aggregation
    subtractor: Function | None = None
    keeps_empty: bool = False
    every_update: bool = False
    """Whether every update is emitted, as in Kafka Streams, including one that does not change the row."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        return self.aggregation.kind

    @property
    def cells(self) -> str:
        """Return what the cells of its groups store: those of another aggregate are not compatible."""
        return f"groups with their {self.aggregation.kind}"

    @property
    def gathers(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True
