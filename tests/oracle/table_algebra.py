"""Tables that are made of tables under other keys, or of two tables."""

from __future__ import annotations

from typing import Any, Protocol

from potok.topology.graph import Topology
from potok.topology.nodes import ForeignJoin, Node, TableGroup, TableJoin
from tests.oracle.foreign_keys import ForeignRows
from tests.oracle.table_groups import GroupRows, Made
from tests.oracle.table_joins import JoinRows
from tests.oracle.tables import Change


class Algebra(Protocol):
    """What keeps one or several tables current: a change of an upstream becomes changes of its own tables."""

    def take(self, upstream: Node, change: Change) -> Made: ...


def algebra_of(topology: Topology) -> dict[Node, Algebra]:
    """By the node that takes the changes in."""
    algebra: dict[Node, Algebra] = {group: GroupRows(topology, group) for group in topology.of_type(TableGroup)}
    algebra |= {join: JoinRows(join) for join in topology.of_type(TableJoin)}
    for join in topology.of_type(ForeignJoin):
        algebra[join.upstream] = algebra[join.upstream.left] = ForeignRows(join)
    return algebra


def rows_of(algebra: dict[Node, Algebra]) -> dict[str, dict[str, Any]]:
    """The final rows of the tables that can be read."""
    found: dict[str, dict[str, Any]] = {}
    for part in algebra.values():
        if isinstance(part, GroupRows):
            found |= {table.node.name: table.rows() for table in part.tables}
        elif isinstance(part, JoinRows | ForeignRows) and part.node.stateful:
            found[part.node.name] = part.rows()
    return found
