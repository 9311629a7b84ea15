"""The rows of a step of the topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from potok.expressions.expr import Column
from potok.sql.analysis.scope import Field, Rows
from potok.topology.nodes import Node

NOW = "ROWNOW"
"""The slot of the processing time."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of a query as records: the node they come from, what their columns are called, and where each of them is."""

    node: Node
    rows: Rows
    at: Mapping[str, Column]
    """Where the columns are in a record, by slot. Columns that the query does not read are left out."""

    @property
    def fields(self) -> list[Field]:
        """The columns that the records have."""
        return [field for field in self.rows.fields if field.slot in self.at]

    @property
    def key_slots(self) -> list[str]:
        """The columns in the key of the records, in its order, with the bounds of a window behind them."""
        return [field.slot for field in self.fields if self.at[field.slot].name == "key"]

    def with_node(self, node: Node) -> Placed:
        return replace(self, node=node)
