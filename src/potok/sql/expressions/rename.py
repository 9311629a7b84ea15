"""The same expression over columns that are called otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from potok.sql.expressions.typed import ColumnRef, Typed


def rename(expression: Typed, name: Callable[[str], str]) -> Typed:
    if isinstance(expression, ColumnRef):
        return dataclasses.replace(expression, column=name(expression.column))
    values = {}
    for field in dataclasses.fields(expression):
        before = getattr(expression, field.name)
        after = _renamed(before, name)
        if after is not before:
            values[field.name] = after
    return dataclasses.replace(expression, **values) if values else expression


def _renamed(value: Any, name: Callable[[str], str]) -> Any:
    if isinstance(value, Typed):
        return rename(value, name)
    if isinstance(value, tuple):
        items = tuple(_renamed(item, name) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value
