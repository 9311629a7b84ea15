"""What changed between two versions of a topology, and whether the new one can use the state of the old one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, NoneType
from typing import Any

from potok.duration import show_ms
from potok.errors import TopologyError
from potok.expressions.computed import Computed
from potok.expressions.expr import StructExpr
from potok.expressions.function import Function
from potok.topology.graph import Topology
from potok.topology.inference.infer import Inferred
from potok.topology.inference.joins import join_layout
from potok.topology.nodes import (
    Aggregate,
    Deliver,
    ForeignKey,
    HistoryLookup,
    Node,
    Process,
    Saga,
    Session,
    Sink,
    StreamJoin,
    StreamSource,
    TableAggregate,
    TableFilter,
    TableGroup,
    TableLookup,
    TableMapValues,
    TableSource,
    ToTable,
)
from potok.topology.source_shape import source_differences, source_shape

Shape = dict[str, Any]
"""A topology as plain data: its state, in which layout, and what it reads and writes."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. A difference that is not compatible stops the query from starting.

    For a table, `part` is the part of its layout that `was` one value and is another `now`, or its `function`.
    """

    step: str
    what: str
    fits: bool
    part: str = field(default="", compare=False)
    was: str = field(default="", compare=False)
    now: str = field(default="", compare=False)


class StateDoesNotFit(TopologyError):
    """The state of a query was written by a topology with another layout."""

    def __init__(self, query: str, changes: list[Change]) -> None:
        reasons = "; ".join(f'"{change.step}": {change.what}' for change in changes)
        super().__init__(
            f'the state of query "{query}" does not fit this topology: {reasons}',
            hint="give the changed step another name=, or the query another name, to rebuild its state",
        )


def shape_of(topology: Topology, inferred: Inferred) -> Shape:
    return {
        "tables": {node.name: _layout(node, inferred) for node in topology.keepers} | _stores(topology),
        "steps": {node.name: _step(node) | _retracts(topology, node) for node in topology},
        "reads": topology.source_topics,
        "writes": topology.sink_topics,
    }


def _retracts(topology: Topology, node: Node) -> dict[str, str]:
    """Whether the function of a step decides what is retracted from a table, so that the results of another
    function would remain.
    """
    if not isinstance(node, TableFilter | TableGroup | TableAggregate | ForeignKey):
        return {}
    return {"takes back": "yes"} if node.keeps or _feeds_a_keeper(topology, node) else {}


def _feeds_a_keeper(topology: Topology, node: Node) -> bool:
    return any(down.keeps or _feeds_a_keeper(topology, down) for down in topology.downstreams(node))


def _stores(topology: Topology) -> dict[str, dict[str, str]]:
    """Return the stores of processors, which can be added and removed individually."""
    processes = topology.of_type(Process)
    return {f"{node.name}/{name}": {"kind": f"{store.kind} store"} for node in processes for name, store in node.stores}


def _layout(node: Node, inferred: Inferred) -> dict[str, str]:
    """Return what decides the layout of the cells of a table."""
    step = inferred[node]
    layout = {"kind": node.kind, "key": _type(step.key)}
    if isinstance(node, StreamJoin | TableLookup | HistoryLookup):
        return join_layout(node, inferred.steps)
    if isinstance(node, Process):
        # A processor may change the type of its output; its state is found by the input key.
        return layout | {"key": _type(inferred[node.upstream].key)}
    if isinstance(node, Aggregate):
        plan = step.plan
        assert plan is not None
        layout["kind"] = node.aggregation.kind
        layout["window"] = node.window.layout if node.window else "none"
        slots = ", ".join(f"{slot.op} {slot.type}" for slot in plan.slots)
        layout["cells"] = f"columns ({slots})" if plan.native else "objects"
        if plan.fields:
            layout["cells"] += f" as {', '.join(plan.fields)}"
        if not plan.native:
            layout["value"] = _type(plan.result)
    else:
        by_time = isinstance(node, ToTable) and inferred[node.upstream].rekeyed
        layout["cells"] = getattr(node, "cells", "objects") + (" by event time" if by_time else "")
        layout["value"] = _type(step.value)
        layout["window"] = step.window.layout if step.window else "none"
        if _may_lack_columns(node):
            layout["nulls"] = "in any column"
    return layout


def _may_lack_columns(node: Node) -> bool:
    """Whether the table stores SQL columns, all nullable, computed from a row of a topic and from no state.

    A lambda that reads such columns may not expect NULL, and the columns of an aggregate describe its
    accumulator.
    """
    if not isinstance(node, TableMapValues):
        return False
    row, above = node.function.expr, node.upstream
    while isinstance(above, TableMapValues | TableFilter):
        above = above.upstream
    of_sql = isinstance(row, StructExpr) and all(isinstance(column, Computed) for column in row.children)
    return of_sql and isinstance(above, TableSource)


def _step(node: Node) -> dict[str, Any]:
    shape: dict[str, Any] = {"kind": node.kind, "code": " ".join(map(_code, functions_of(node)))}
    if isinstance(node, Sink | Deliver) and node.guarantee.note:
        shape["guarantee"] = node.guarantee.note
    if isinstance(node, Deliver):
        shape["target"] = node.target.label
    if isinstance(node, StreamSource | TableSource):
        shape["source"] = source_shape(node)
    if isinstance(node, Saga):
        shape["versions"] = {str(version): structure for version, structure in node.versions}
    return shape


def functions_of(node: Node) -> list[Function]:
    """Return the user's functions in a node."""
    found = [getattr(node, name, None) for name in ("function", "predicate", "action", "subtractor", "stamp", "setup")]
    if isinstance(node, StreamSource | TableSource):
        found.append(node.timestamps.function)
    found += [*getattr(node, "predicates", ()), *getattr(node, "functions", ())]
    if isinstance(node, Aggregate | TableAggregate):
        found += [node.aggregation.function, node.aggregation.make_initial]
        found += [part.function for part in node.aggregation.parts]
    if isinstance(node, Aggregate) and isinstance(node.window, Session):
        found += [node.window.opens, node.window.closes]
    return [function for function in found if isinstance(function, Function)]


def _code(function: Function) -> str:
    """Identify a version of a function: its code and the constants that it captures."""
    if function.expr is not None:
        return str(function.expr)
    code = getattr(function.callable, "__code__", None)
    if code is None:
        return function.name
    cells = [cell.cell_contents for cell in getattr(function.callable, "__closure__", None) or ()]
    around = [value for value in cells if isinstance(value, str | int | float | bytes | NoneType)]
    return f"{code.co_code.hex()} {_constants(code)} {code.co_names!r} {around!r}"


def _constants(code: CodeType) -> str:
    """Return the constants of the code; nested code by its bytes, because its repr contains a memory address."""
    return repr([item.co_code.hex() if isinstance(item, CodeType) else item for item in code.co_consts])


def _type(type_: object) -> str:
    return "dynamic" if type_ is None else str(type_)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return all differences, those of tables first."""
    changes: list[Change] = []
    for name in sorted({*old["tables"], *new["tables"]}):
        changes += _table_changes(name, old["tables"].get(name), new["tables"].get(name))
    tables = {*old["tables"], *new["tables"]}
    for name in sorted({*old["steps"], *new["steps"]}):
        before, after = old["steps"].get(name), new["steps"].get(name)
        if before is None and name not in tables:
            changes.append(Change(name, "is new", True))
        elif after is None and name not in tables:
            changes.append(Change(name, "is gone", True))
        if before and after:
            changes += _source_changes(name, before, after) if "source" in after else _code_changes(name, before, after)
            changes += _sink_changes(name, before, after) + _version_changes(name, before, after)
    for topic in sorted(set(new["reads"]) - set(old["reads"])):
        changes.append(Change(topic, "is a topic that was not read before; it is read from its beginning", True))
    return changes


def _code_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    if old["code"] == new["code"]:
        return []
    if new.get("takes back"):
        why = "its function decides what is retracted, and the results of the old one would remain"
        return [Change(name, why, False, "function")]
    return [Change(name, "its function changed; records from now on go through the new one", True)]


def _source_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    if "source" not in old:
        return []  # stored by a version without this field
    differences = list(source_differences(old["source"], new["source"]))
    if old["code"] != new["code"] and old["source"]["time"] == new["source"]["time"]:
        differences.append("the function that extracts its event time changed")
    return [Change(name, difference, True) for difference in differences]


def _sink_changes(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    guarantees = [shape.get("guarantee", "exactly_once") for shape in (old, new)]
    targets = [shape.get("target", "") for shape in (old, new)]
    changes: list[Change] = []
    if guarantees[0] != guarantees[1]:
        changes.append(Change(name, f"its guarantee was {guarantees[0]} and is {guarantees[1]}", True))
    if targets[0] != targets[1]:
        changes.append(Change(name, f"it delivered to {targets[0]} and delivers to {targets[1]}", True))
    return changes


def _version_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return what changed in the definitions of a saga: running instances keep the version that they began with."""
    before, after = old.get("versions", {}), new.get("versions", {})
    what = "its steps changed, and instances of version {} may be running: declare another version, and pass earlier="
    changed = [version for version in before if after.get(version, before[version]) != before[version]]
    changes = [Change(name, what.format(version), False, "version") for version in changed]
    gone = [version for version in before if version not in after]
    what = "version {} is missing; its instances process no events until it is passed as earlier="
    return changes + [Change(name, what.format(version), True) for version in gone]


def _table_changes(name: str, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> list[Change]:
    if old is None:
        return [Change(name, "is a new table; it starts empty, with the next records", True)]
    if new is None:
        return [Change(name, "is no longer a table; its state is deleted", True)]
    changes = []
    for part in ("kind", "key", "value", "window", "cells"):
        if part == "value" and _only_adds_columns(old, new):
            what = "its value has new columns; existing rows have no value in them"
            changes.append(Change(name, what, True, part))
        elif old.get(part) != new.get(part):
            was, now = (_render(layout.get(part, "none")) for layout in (old, new))
            are = ("were", "are") if part == "cells" else ("was", "is")
            changes.append(Change(name, f"its {part} {are[0]} {was} and {are[1]} {now}", False, part, was, now))
    return changes


def _only_adds_columns(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether the new rows only have additional columns at the end. Rows are stored by column name."""
    if "nulls" not in new or old["kind"] != new["kind"] or old.get("cells") != new["cells"]:
        return False
    was = old["value"].removesuffix(">")
    return was.startswith("struct<") and new["value"].startswith(f"{was}, ")


def _render(layout: str) -> str:
    """Return a layout for display: 3600000 ms is 1h."""
    return re.sub(r"\b([0-9]+) ms\b", lambda found: show_ms(int(found[1])), layout)
