"""The nodes of checked expressions. Each prints as SQL; computation is separate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Overload
from potok.sql.types import BOOLEAN, VARCHAR, quoted, type_name


@dataclass(frozen=True, slots=True)
class Constant(Typed):
    """A constant; None is NULL."""

    value: Any

    def __str__(self) -> str:
        if self.value == ():
            return f"CAST({'MAP()' if pa.types.is_map(self.type) else 'ARRAY[]'} AS {type_name(self.type)})"
        return render_literal(self.value)


TRUE = Constant(BOOLEAN, True)


def text(value: str) -> Constant:
    return Constant(VARCHAR, value)


def null(type_: pa.DataType) -> Constant:
    return Constant(type_, None)


def render_literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return _render_double(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"TO_BYTES('{value.hex()}', 'hex')"
        case datetime():
            return f"'{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}'"
        case date() | time():
            return f"'{value.isoformat()}'"
        case _:
            return str(value)


def _render_double(value: float) -> str:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity"
        return f"CAST('{'-' * (value < 0)}{name}' AS DOUBLE)"
    return repr(value) if "e" in repr(value) else f"{value!r}E0"


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
        escape = f" ESCAPE {render_literal(self.escape)}" if self.escape else ""
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


@dataclass(frozen=True, slots=True)
class Parameter(Typed):
    """A parameter of a lambda, in its body."""

    name: str

    def __str__(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class LambdaOf(Typed):
    """A lambda; its type is that of its body."""

    parameters: tuple[str, ...]
    body: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.body,)

    def __str__(self) -> str:
        names = ", ".join(quoted(name) for name in self.parameters)
        return f"{names if len(self.parameters) == 1 else f'({names})'} => {self.body}"


@dataclass(frozen=True, slots=True)
class FunctionCall(Typed):
    """A call of a scalar or table function. Built-in functions are pickled by name and overload number; a user-defined
    function is pickled with the call, because other processes do not have it."""

    name: str
    arguments: tuple[Typed, ...]
    number: int = 0
    overload: Overload | None = None

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"
