"""Convert a topology to the drawing of the web page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FAMILIES = {"source": "source", "sink": "sink", "table": "stateful", "step": "stateless"}
"""The four colours of the drawing, by the role of a step."""


def draw(description: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the description of a topology to boxes with two lines of text."""
    steps = description["steps"]
    return {
        "query": description["name"],
        "nodes": [_box(step) for step in steps],
        "tables": [
            {"name": step["name"], "kind": _what(step), "windowed": _is_windowed(step)}
            for step in steps
            if step["name"] in description["tables"]
        ],
    }


def _box(step: Mapping[str, Any]) -> dict[str, Any]:
    family = "sink" if step["kind"] == "foreach" else FAMILIES[step["role"]]
    is_topic = step["role"] in ("source", "sink")
    return {
        "name": step["name"],
        "kind": step["kind"],
        "family": family,
        "label": _label(step),
        "detail": _what(step),
        "upstreams": step["upstreams"],
        "mode": "" if is_topic and not step["reason"] else step["runs"],
        "why": step["reason"],
        "at": step["at"] or "",
    }


def _label(step: Mapping[str, Any]) -> str:
    """Return the topic or the table of a step; for an unnamed step, its verb."""
    if step["topic"]:
        return str(step["topic"])
    name: str = step["name"]
    for upstream in step["upstreams"]:
        if name.startswith(f"{upstream}."):
            return name.removeprefix(f"{upstream}.")
    return name


def _what(step: Mapping[str, Any]) -> str:
    if step["role"] == "source":
        return "topic as a table" if step["kind"] == "table_source" else "topic"
    if step["role"] == "sink" and step["topic"]:
        return "topic"
    detail: str = step["detail"] or ", ".join(step["expressions"])
    if step["kind"] == "aggregate":
        return detail.replace("fold", "aggregate", 1)
    return detail or step["kind"].replace("_", " ")


def _is_windowed(step: Mapping[str, Any]) -> bool:
    return step["kind"] == "aggregate" and "," in step["detail"]
