"""Arithmetic and casts."""

from __future__ import annotations

from dataclasses import dataclass, field

from potok.sql.expressions.typed import Typed
from potok.sql.types import type_name


@dataclass(frozen=True, slots=True)
class CastTo(Typed):
    """An explicit or implicit cast. If it `contains` failures, a failure inside makes only the cast NULL."""

    operand: Typed
    contains: bool = field(default=True, compare=False)

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {type_name(self.type)})"


@dataclass(frozen=True, slots=True)
class Arithmetic(Typed):
    """`+ - * / %` of two numbers of one kind (decimals may differ in precision and scale), or `+` of two strings."""

    op: str
    left: Typed
    right: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.left, self.right

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Negate(Typed):
    operand: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"(-{self.operand})"
