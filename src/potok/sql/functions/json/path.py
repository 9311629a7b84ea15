"""Paths into JSON documents: `$.a.b[0]["c d"]`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from potok.sql.functions.json.documents import MISSING

NOTHING: Any = object()
"""The result of a path that does not exist. A JSON null exists."""


LONGEST_PATH = 1_000


@lru_cache(maxsize=1000)
def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path; raises ValueError.

    >>> steps_of("$.log['cloud'][0]")
    ('log', 'cloud', '0')
    """
    if not path.startswith("$") or len(path) > LONGEST_PATH:
        raise _invalid(path[:LONGEST_PATH])
    steps, at = [], 1
    while at < len(path):
        if path[at] == ".":
            step, at = _plain(path, at + 1, ":@_")
        elif path[at] == "[":
            step, at = _quoted(path, at + 1) if path[at + 1 : at + 2] in ("'", '"') else _plain(path, at + 1, "_")
            if path[at : at + 1] != "]":
                raise _invalid(path)
            at += 1
        else:
            raise _invalid(path)
        steps.append(step)
    return tuple(steps)


def _plain(path: str, at: int, allowed: str) -> tuple[str, int]:
    end = at
    while end < len(path) and (path[end].isalpha() or path[end].isdigit() or path[end] in allowed):
        end += 1
    if end == at:
        raise _invalid(path)
    return path[at:end], end


def _quoted(path: str, at: int) -> tuple[str, int]:
    quote, at = path[at : at + 1], at + 1
    step = ""
    while at < len(path) and path[at] != quote:
        if path[at] == "\\":
            at += 1
            if not quote or path[at : at + 1] not in (quote, "\\"):
                raise _invalid(path)
        step += path[at]
        at += 1
    if at >= len(path) or not quote:
        raise _invalid(path)
    return step, at + 1


def _invalid(path: str) -> ValueError:
    return ValueError(f"invalid JSON path: '{path}'")


def follow(node: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at a path, or `NOTHING`."""
    for step in steps:
        if isinstance(node, dict):
            node = node.get(step, NOTHING)
        elif isinstance(node, list):
            digits = step.removeprefix("+")
            index = int(digits) if digits.isascii() and digits.isdigit() else len(node)
            node = node[index] if index < len(node) else NOTHING
        else:
            return NOTHING
        if node is NOTHING:
            return NOTHING
    return "" if node is MISSING else node
