"""Describe a topology: as text, as a Mermaid flow chart, and as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from potok.duration import show_ms
from potok.errors import TopologyError
from potok.topology.graph import Topology
from potok.topology.inference.infer import Inferred, infer
from potok.topology.nodes import (
    Aggregate,
    AggregateRoot,
    Deliver,
    HistoryLookup,
    Node,
    Ordered,
    Process,
    Saga,
    Sink,
    StreamJoin,
    StreamSource,
    TableLookup,
    TableSource,
)

DescribeForm = Literal["text", "mermaid", "json"]

Description = Mapping[str, Any]
"""A topology as plain data: the result of `description_of`, which a query stores next to its ledger."""

_SHAPES = {"source": ("([", "])"), "sink": ("[/", "/]"), "table": ("[(", ")]"), "step": ("[", "]")}


def description_of(topology: Topology, inferred: Inferred | None = None) -> dict[str, Any]:
    """Return the topology as plain data, ready for JSON."""
    inferred = inferred or infer(topology)
    aggregates = [json.loads(node.description) for node in topology.of_type(AggregateRoot) if node.description]
    return {
        "name": topology.name,
        "dead_letters": topology.dead_letter_topic,
        "reads": topology.source_topics,
        "writes": topology.sink_topics,
        "tables": [node.name for node in topology.tables],
        "steps": [_step(node, inferred) for node in topology],
        **({"aggregates": aggregates} if aggregates else {}),
    }


def _step(node: Node, inferred: Inferred) -> dict[str, Any]:
    step = inferred[node]
    return {
        "name": node.name,
        "kind": node.kind,
        "role": role_of(node),
        "upstreams": [upstream.name for upstream in node.upstreams],
        "topic": getattr(node, "topic", None),
        "detail": detail_of(node) + _moved_sides(node, inferred),
        "key": _type(step.key),
        "value": _type(step.value),
        "runs": "native" if step.native else "python",
        "reason": step.reason,
        "expressions": [str(expr) for expr in step.exprs if expr is not None],
        "order_dependent": step.order_dependent,
        "guarantee": node.guarantee.value if isinstance(node, Sink | Deliver) else None,
        "at": str(node.at) if node.at else None,
        **({"saga": {"by": node.by, "clock": node.clock, "grace_ms": node.grace_ms}} if isinstance(node, Saga) else {}),
    }


def role_of(node: Node) -> str:
    if isinstance(node, StreamSource | TableSource):
        return "source"
    if isinstance(node, Sink | Deliver):
        return "sink"
    return "table" if node.stateful else "step"


def detail_of(node: Node) -> str:
    """Return what the name and the kind of a step do not show."""
    if isinstance(node, Aggregate):
        return f"{node.aggregation.kind}, {node.window}" if node.window else node.aggregation.kind
    if isinstance(node, StreamSource | TableSource):
        details = f"value {node.value}; time: {node.timestamps.text}"
        lifetime = str(getattr(node, "lifetime", ""))
        return f"{details}; {lifetime}" if lifetime else details
    if isinstance(node, Saga | AggregateRoot):
        return node.detail
    if isinstance(node, Process):
        stores = ", ".join(f"{name} ({store})" for name, store in node.stores)
        outputs = ", ".join(name for name, _ in node.channels)
        return "; ".join(f"{what} {names}" for what, names in (("stores", stores), ("outputs", outputs)) if names)
    if isinstance(node, Ordered):
        return f"by event time, grace {show_ms(node.grace_ms)}"
    if isinstance(node, Sink | Deliver):
        destination = f"to topic {node.topic}{node.kept}" if isinstance(node, Sink) else f"to {node.target.label}"
        if isinstance(node, Sink) and node.stamp is not None:
            destination += f"; time: {node.stamp}"
        return f"{destination}, {node.guarantee.note}" if node.guarantee.note else destination
    return str(getattr(node, "detail", ""))


def _moved_sides(node: Node, inferred: Inferred) -> str:
    """Return which sides of a join come from other shards."""
    if not isinstance(node, StreamJoin | TableLookup | HistoryLookup):
        return ""
    moved = dict.fromkeys(upstream.name for upstream in node.upstreams if not inferred[upstream].sharded)
    return f"; re-keyed by the join: {', '.join(moved)}" if moved else ""


def _type(type_: object) -> str:
    return "dynamic" if type_ is None else str(type_)


def describe(topology: Topology, form: str = "text") -> str:
    """Return the topology as `text`, as a `mermaid` flow chart, or as `json`."""
    forms: dict[str, Callable[[Description], str]] = {"text": as_text, "mermaid": as_mermaid, "json": as_json}
    if form not in forms:
        raise TopologyError(f'a topology cannot be described as "{form}"', hint=f"choose {', '.join(forms)}")
    return forms[form](description_of(topology))


def as_json(description: Description) -> str:
    return json.dumps(description, indent=2)


def as_text(description: Description) -> str:
    """Return indented lines. A step with two upstreams appears under both, and its downstream only under the
    first.
    """
    steps = description["steps"]
    rendered: set[str] = set()

    def show(step: Mapping[str, Any], depth: int) -> Iterator[str]:
        name, detail = step["name"], step["detail"]
        arrow = "-> " if depth > 1 else ""
        again = " (see above)" if name in rendered else ""
        yield f"{'  ' * depth}{arrow}{step['kind']} {name}{f': {detail}' if detail else ''}{again}"
        if name not in rendered:
            rendered.add(name)
            for other in steps:
                if name in other["upstreams"]:
                    yield from show(other, depth + 1)

    lines = [f"topology {description['name']}"]
    for step in steps:
        if not step["upstreams"]:
            lines += show(step, 1)
    return "\n".join([*lines, f"  dead letters: topic {description['dead_letters']}"])


def as_mermaid(description: Description) -> str:
    """Return a Mermaid flow chart."""
    steps = description["steps"]
    ids = {step["name"]: f"n{index}" for index, step in enumerate(steps)}
    lines = ["flowchart LR"]
    for step in steps:
        left, right = _SHAPES[step["role"]]
        label = f"{step['name']}<br/><i>{step['kind']}</i>".replace('"', "'")
        lines.append(f'    {ids[step["name"]]}{left}"{label}"{right}')
    lines += [f"    {ids[upstream]} --> {ids[step['name']]}" for step in steps for upstream in step["upstreams"]]
    return "\n".join(lines)
