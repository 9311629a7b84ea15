"""Groups of the rows of a table: a group is recomputed from the rows that are in it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from potok.topology.graph import Topology
from potok.topology.nodes import Node, TableAggregate, TableGroup
from tests.oracle.call import UserError, call, call_aggregator
from tests.oracle.canonical import canonical
from tests.oracle.tables import Change

Made = list[tuple[Node, Change]]


class GroupRows:
    """The tables that are made of one grouping."""

    def __init__(self, topology: Topology, group: TableGroup) -> None:
        self.group = group
        self.tables = [AggregatedRows(node) for node in topology.of_type(TableAggregate) if node.upstream is group]

    def take(self, upstream: Node, change: Change) -> Made:
        # That a window is dropped because it is over does not take it out of the groups it was counted in.
        if change.dropped:
            return []
        before, after = (self.place(change.key, value) for value in (change.before, change.after))
        return [made for table in self.tables for made in table.move(change, before, after)]

    def place(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        """The group of a row, and the value it has there."""
        if value is None:
            return None
        try:
            found = call(self.group.function, key, value)
        except UserError as error:
            raise NotImplementedError(f"{self.group.name} raised; what is promised says nothing of that") from error
        if not self.group.pairs:
            return None if found is None else (found, value)
        return None if found[0] is None or found[1] is None else tuple(found)


class AggregatedRows:
    """One aggregate per group. `members` has the rows of each group by their own keys."""

    def __init__(self, node: TableAggregate) -> None:
        self.node = node
        self.members: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, Any] = {}
        self.folded: dict[str, Any] = {}

    def move(self, change: Change, before: tuple[Any, Any] | None, after: tuple[Any, Any] | None) -> Made:
        row = canonical(change.key)
        touched = {canonical(side[0]): side[0] for side in (before, after) if side is not None}
        was = {text: self.result(text) for text in touched}
        self.keys |= touched
        if before is not None:
            self.leave(canonical(before[0]), row, *before)
        if after is not None:
            self.come(canonical(after[0]), row, *after)
        made = [replace(change, key=key, before=was[text], after=self.result(text)) for text, key in touched.items()]
        return [(self.node, one) for one in made if canonical(one.before) != canonical(one.after)]

    def leave(self, text: str, row: str, key: Any, value: Any) -> None:
        members = self.members.get(text, {})
        if row in members:
            del members[row]
            if members and self.node.subtractor is not None:
                self.folded[text] = self.combine(self.node.subtractor, text, key, value)
            if not members:
                self.folded.pop(text, None)

    def come(self, text: str, row: str, key: Any, value: Any) -> None:
        self.members.setdefault(text, {})[row] = self.selected(key, value)
        if self.node.subtractor is not None:
            assert self.node.aggregation.function is not None
            self.folded[text] = self.combine(self.node.aggregation.function, text, key, value)

    def selected(self, key: Any, value: Any) -> Any:
        function = self.node.aggregation.function
        if function is None or self.node.subtractor is not None:
            return value
        return call(function, key, value)

    def combine(self, function: Any, text: str, key: Any, value: Any) -> Any:
        """What a function of the user's makes of the aggregate."""
        aggregation = self.node.aggregation
        if aggregation.kind == "reduce":
            if text not in self.folded:
                return value
            return function.callable(copy.deepcopy(self.folded[text]), value)
        make = aggregation.make_initial
        started = make.callable() if make else aggregation.initial
        return call_aggregator(function, key, value, copy.deepcopy(self.folded.get(text, started)))

    def result(self, text: str) -> Any:
        members = self.members.get(text)
        if not members:
            return None
        if self.node.subtractor is not None:
            return self.folded[text]
        values = list(members.values())
        there = [value for value in values if value is not None]
        kind = self.node.aggregation.kind
        if kind == "count":
            return len(values)
        if kind == "collect_list":
            return in_order(there) + [None] * (len(values) - len(there))
        if kind == "count_distinct":
            return len({canonical(value) for value in there})
        if not there:
            return None
        if kind in ("min", "max"):
            return in_order(there)[0 if kind == "min" else -1]
        return sum(there) if kind == "sum" else sum(there) / len(there)

    def rows(self) -> dict[str, Any]:
        found = {text: self.result(text) for text in self.members}
        return {text: value for text, value in found.items() if value is not None}


def in_order(values: list[Any]) -> list[Any]:
    """From the least to the greatest; 1 and 1.0 are equal, but not the same."""
    return sorted(values, key=lambda value: (value, canonical(value)))
