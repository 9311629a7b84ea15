"""The columns of a captured table at one time, and how each is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa

UNAVAILABLE_TEXT = "__debezium_unavailable_value"
"""What stands for a value that the database did not send because the change did not touch it."""

Render = Callable[[pa.Array], pa.Array]
"""Turns the texts of the database into JSON; null stays null."""


Read = Callable[[Sequence[Any]], pa.Array]
"""Turns values as the stream of changes has them into texts of the database."""


def as_text(values: Sequence[Any]) -> pa.Array:
    """Return values that are texts already."""
    return pa.array(values, pa.string())


@dataclass(frozen=True, slots=True)
class Kind:
    """How a type of the database is written: its Kafka Connect type, the semantic name, and the JSON of a value."""

    type: str
    render: Render
    semantic: str | None = None
    unavailable: str = f'"{UNAVAILABLE_TEXT}"'
    parameters: tuple[tuple[str, str], ...] = ()
    details: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    """What else its schema has: the items of an array, the fields of a struct."""

    def schema(self, *, optional: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.type, **dict(self.details), "optional": optional}
        if self.semantic is not None:
            found |= {"name": self.semantic, "version": 1}
        if self.parameters:
            found["parameters"] = dict(self.parameters)
        return found


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """The type as the database spells it."""
    kind: Kind
    key: bool
    read: Read = field(default=as_text, compare=False)

    def described(self) -> list[Any]:
        return [self.name, self.type, self.key]


@dataclass(frozen=True)
class Shape:
    """A table with its columns. Two shapes with the same `described()` are the same."""

    schema: str
    table: str
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @cached_property
    def key_indexes(self) -> tuple[int, ...]:
        return tuple(index for index, column in enumerate(self.columns) if column.key)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.columns[index] for index in self.key_indexes)

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([row[index] for index in self.key_indexes])

    def described(self) -> list[list[Any]]:
        return [column.described() for column in self.columns]


def differences(before: list[list[Any]], after: list[list[Any]]) -> list[str]:
    """Describe what has changed between two versions of a table, as `Shape.described` gives them."""
    old = {name: (type_, key) for name, type_, key in before}
    new = {name: (type_, key) for name, type_, key in after}
    found = [f"column {name} {type_} added" for name, (type_, _) in new.items() if name not in old]
    found += [f"column {name} dropped" for name in old if name not in new]
    for name in new.keys() & old.keys():
        if old[name][0] != new[name][0]:
            found.append(f"column {name} changed from {old[name][0]} to {new[name][0]}")
    was, now = [name for name, (_, key) in old.items() if key], [name for name, (_, key) in new.items() if key]
    if was != now:
        found.append(f"key changed from ({', '.join(was)}) to ({', '.join(now)})")
    return sorted(found)


def json_text(value: object) -> str:
    return orjson.dumps(value).decode()
