"""Constructors of arrays, maps and structs, and access to their elements."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sql.expressions.typed import Typed
from potok.sql.types import quoted


@dataclass(frozen=True, slots=True)
class Item(Typed):
    """`items[i]`: counted from 1, or from the end if negative."""

    operand: Typed
    index: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.operand, self.index

    def __str__(self) -> str:
        return f"{self.operand}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Lookup(Typed):
    """`by_name['x']`."""

    operand: Typed
    key: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.operand, self.key

    def __str__(self) -> str:
        return f"{self.operand}[{self.key}]"


@dataclass(frozen=True, slots=True)
class Field(Typed):
    operand: Typed
    name: str

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{self.operand}->{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class MakeArray(Typed):
    items: tuple[Typed, ...]

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.items

    def __str__(self) -> str:
        return f"ARRAY[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class MakeMap(Typed):
    items: tuple[tuple[Typed, Typed], ...]

    @property
    def children(self) -> tuple[Typed, ...]:
        return tuple(part for item in self.items for part in item)

    def __str__(self) -> str:
        return f"MAP({', '.join(f'{key} := {value}' for key, value in self.items)})"


@dataclass(frozen=True, slots=True)
class MakeStruct(Typed):
    items: tuple[Typed, ...]

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.items

    def __str__(self) -> str:
        fields = zip(self.type, self.items, strict=True)
        return f"STRUCT({', '.join(f'{quoted(field.name)} := {value}' for field, value in fields)})"
