"""A topology for people: as text, as a Mermaid drawing, and as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from potok.errors import TopologyError
from potok.topology.graph import Topology
from potok.topology.infer import Inferred, infer
from potok.topology.nodes import Aggregate, Node, Sink, StreamSource, TableSource

_SHAPES = {"source": ("([", "])"), "sink": ("[/", "/]"), "table": ("[(", ")]"), "step": ("[", "]")}


def description_of(topology: Topology, inferred: Inferred | None = None) -> dict[str, Any]:
    """The topology as plain data, ready for JSON."""
    inferred = inferred or infer(topology)
    return {
        "name": topology.name,
        "dead_letters": topology.dead_letter_topic,
        "reads": topology.source_topics,
        "writes": topology.sink_topics,
        "tables": [node.name for node in topology.tables],
        "steps": [_step(node, inferred) for node in topology],
    }


def _step(node: Node, inferred: Inferred) -> dict[str, Any]:
    step = inferred[node]
    return {
        "name": node.name,
        "kind": node.kind,
        "role": role_of(node),
        "upstreams": [upstream.name for upstream in node.upstreams],
        "topic": getattr(node, "topic", None),
        "detail": detail_of(node),
        "key": _type(step.key),
        "value": _type(step.value),
        "runs": "native" if step.native else "python",
        "reason": step.reason,
        "expressions": [str(expr) for expr in step.exprs if expr is not None],
        "order_dependent": step.order_dependent,
        "at": str(node.at) if node.at else None,
    }


def role_of(node: Node) -> str:
    if isinstance(node, StreamSource | TableSource):
        return "source"
    if isinstance(node, Sink):
        return "sink"
    return "table" if node.stateful else "step"


def detail_of(node: Node) -> str:
    """What the name and the kind of a step do not say."""
    if isinstance(node, Aggregate):
        return f"{node.aggregation.kind}, {node.window}" if node.window else node.aggregation.kind
    if isinstance(node, StreamSource | TableSource):
        return f"value {node.value}; time: {node.timestamps.text}"
    if isinstance(node, Sink):
        return f"to topic {node.topic}"
    return ""


def _type(type_: object) -> str:
    return "dynamic" if type_ is None else str(type_)


def describe(topology: Topology, form: str = "text") -> str:
    """The topology as `text`, as a `mermaid` flow chart, or as `json`."""
    forms: dict[str, Callable[[Topology], str]] = {"text": as_text, "mermaid": mermaid, "json": as_json}
    if form not in forms:
        raise TopologyError(f'a topology cannot be described as "{form}"', hint=f"choose {', '.join(forms)}")
    return forms[form](topology)


def as_json(topology: Topology) -> str:
    return json.dumps(description_of(topology), indent=2)


def as_text(topology: Topology) -> str:
    """The topology as indented text, each step under the one that feeds it."""
    lines = [f"topology {topology.name}"]
    shown: set[Node] = set()

    def show(node: Node, depth: int) -> None:
        detail = detail_of(node)
        note = " (see above)" if node in shown else ""
        lines.append(f"{'  ' * depth}{_arrow(depth)}{node.kind} {node.name}{f': {detail}' if detail else ''}{note}")
        if node in shown:
            return
        shown.add(node)
        for downstream in topology.downstreams(node):
            show(downstream, depth + 1)

    for source in topology.sources:
        show(source, 1)
    lines.append(f"  dead letters: topic {topology.dead_letter_topic}")
    return "\n".join(lines)


def _arrow(depth: int) -> str:
    return "" if depth == 1 else "-> "


def mermaid(topology: Topology) -> str:
    """The topology as a Mermaid flow chart."""
    ids = {node: f"n{index}" for index, node in enumerate(topology)}
    lines = ["flowchart LR"]
    for node, id_ in ids.items():
        left, right = _SHAPES[role_of(node)]
        label = f"{node.name}<br/><i>{node.kind}</i>".replace('"', "'")
        lines.append(f'    {id_}{left}"{label}"{right}')
    lines += [f"    {ids[upstream]} --> {ids[node]}" for node in topology for upstream in node.upstreams]
    return "\n".join(lines)
