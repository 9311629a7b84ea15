"""Traverse and transform parsed statements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from potok.sql.syntax import ast

T = TypeVar("T")


def parts_of(node: Any) -> Iterator[Any]:
    """Return the children of a node."""
    for field in dataclasses.fields(node):
        yield from _nodes(getattr(node, field.name))


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all its descendants."""
    yield node
    for part in parts_of(node):
        yield from walk(part)


def names_of(node: Any) -> list[ast.Name]:
    """Return the columns that an expression or a query refers to, excluding lambda parameters."""
    return list(_names(node, frozenset()))


def _names(node: Any, bound: frozenset[str]) -> Iterator[ast.Name]:
    if isinstance(node, ast.Lambda):
        bound |= frozenset(node.parameters)
    if isinstance(node, ast.Name) and (node.source or node.name not in bound):
        yield node
    for part in parts_of(node):
        yield from _names(part, bound)


def calls_of(node: Any) -> list[ast.Call]:
    return [part for part in walk(node) if isinstance(part, ast.Call)]


def rewritten(node: T, change: Callable[[Any], Any]) -> T:
    """Replace nodes top-down: `change` returns the replacement of a node, or None to keep it and continue below."""
    changed = change(node)
    if changed is not None:
        return changed  # type: ignore[no-any-return]
    if not dataclasses.is_dataclass(node):
        return node
    values = {}
    for field in dataclasses.fields(node):
        before = getattr(node, field.name)
        after = _rewritten_value(before, change)
        if after is not before:
            values[field.name] = after
    return dataclasses.replace(node, **values) if values else node  # type: ignore[type-var]


def _rewritten_value(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, ast.Node):
        return rewritten(value, change)
    if isinstance(value, tuple):
        items = tuple(_rewritten_value(item, change) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value
