"""The rows of a step of the topology, and where their columns are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from potok.expressions.expr import Column
from potok.sql.analysis.scope import Field, Rows
from potok.topology.nodes import Node

NOW = "ROWNOW"
"""The slot of the processing time."""


@dataclass(frozen=True, slots=True)
class LocatedRows:
    """Rows of a query as records: the node, the names of the columns, and their positions."""

    node: Node
    rows: Rows
    at: Mapping[str, Column]
    """The position of each column in a record, by slot. Columns that the query does not read are left out."""

    @property
    def fields(self) -> list[Field]:
        """The columns of the records."""
        return [field for field in self.rows.fields if field.slot in self.at]

    @property
    def key_slots(self) -> list[str]:
        """The key columns of the records in order, followed by the window bounds."""
        return [field.slot for field in self.fields if self.at[field.slot].name == "key"]

    def with_node(self, node: Node) -> LocatedRows:
        return replace(self, node=node)
