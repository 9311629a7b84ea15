"""Conditions, and CASE."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sql.expressions.nodes.constants import shown
from potok.sql.expressions.typed import Typed


@dataclass(frozen=True, slots=True)
class Compare(Typed):
    """`= <> < <= > >=`, `IS DISTINCT FROM`, `IS NOT DISTINCT FROM` of two comparable values."""

    op: str
    left: Typed
    right: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.left, self.right

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Ranged(Typed):
    """BETWEEN, with inclusive bounds."""

    operand: Typed
    low: Typed
    high: Typed
    negated: bool = False

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.operand, self.low, self.high

    def __str__(self) -> str:
        return f"({self.operand} {'NOT ' * self.negated}BETWEEN {self.low} AND {self.high})"


@dataclass(frozen=True, slots=True)
class Listed(Typed):
    """IN."""

    operand: Typed
    items: tuple[Typed, ...]
    negated: bool = False

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.operand, *self.items

    def __str__(self) -> str:
        return f"({self.operand} {'NOT ' * self.negated}IN ({', '.join(map(str, self.items))}))"


@dataclass(frozen=True, slots=True)
class Matches(Typed):
    """LIKE."""

    operand: Typed
    pattern: Typed
    escape: str = ""
    negated: bool = False

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.operand, self.pattern

    def __str__(self) -> str:
        escape = f" ESCAPE {shown(self.escape)}" if self.escape else ""
        return f"({self.operand} {'NOT ' * self.negated}LIKE {self.pattern}{escape})"


@dataclass(frozen=True, slots=True)
class Logic(Typed):
    """AND and OR, three-valued."""

    op: str
    left: Typed
    right: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.left, self.right

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Not(Typed):
    operand: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"(NOT {self.operand})"


@dataclass(frozen=True, slots=True)
class NullTest(Typed):
    operand: Typed
    negated: bool = False

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"({self.operand} IS {'NOT ' * self.negated}NULL)"


@dataclass(frozen=True, slots=True)
class Choice(Typed):
    """CASE: the result of the first condition that is true."""

    whens: tuple[tuple[Typed, Typed], ...]
    otherwise: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return *(part for when in self.whens for part in when), self.otherwise

    def __str__(self) -> str:
        whens = " ".join(f"WHEN {condition} THEN {result}" for condition, result in self.whens)
        return f"CASE {whens} ELSE {self.otherwise} END"
