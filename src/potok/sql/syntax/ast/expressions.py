"""Parsed expressions and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from potok.sql.errors import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`at` is ignored when nodes are compared: the same text in another position is equal."""

    at: SourceLocation = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column: `AMOUNT` or `O.AMOUNT`. Fields of structs are `FieldOf`."""

    name: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """NULL, a boolean, a string, or a number: int, Decimal (`1.5`) or float (`1.5e0`)."""

    value: bool | int | Decimal | float | str | None


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x`, `+x`, `NOT x`."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`+ - * / %`, `= <> < <= > >=`, `AND OR`, `IS DISTINCT FROM`, `IS NOT DISTINCT FROM`. `!=` is `<>` here."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    operand: Expression
    pattern: Expression
    escape: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Node):
    """`CASE WHEN a THEN b ... ELSE c END`; with an operand, each `when` is compared to it."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    operand: Expression
    type: TypeName


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """`items[1]`, `items[-1]`, `by_name['x']`."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class FieldOf(Node):
    """`address->city`."""

    operand: Expression
    field: str


@dataclass(frozen=True, slots=True)
class ArrayOf(Node):
    """`ARRAY[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    """`MAP(k := v, ...)`."""

    items: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class StructOf(Node):
    """`STRUCT(name := v, ...)`."""

    items: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`x => x + 1`, `(k, v) => v`."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class AnyRow(Node):
    """The star of `COUNT(*)`, or with a row pattern variable of `COUNT(a.*)`."""

    source: str = ""


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function call by name; `COUNT(DISTINCT x)` is not supported, `COUNT_DISTINCT(x)` is."""

    name: str
    arguments: tuple[Expression, ...]


Expression = (
    Name
    | Literal
    | Unary
    | Binary
    | IsNull
    | Between
    | In
    | Like
    | Case
    | Cast
    | Subscript
    | FieldOf
    | ArrayOf
    | MapOf
    | StructOf
    | Lambda
    | AnyRow
    | Call
)


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A parsed type; `syntax/type_names.py` resolves it to an Arrow type."""

    name: str
    """`VARCHAR`, `DECIMAL`, `ARRAY`, `MAP`, `STRUCT`, or the name of a custom type."""
    arguments: tuple[TypeName, ...] = ()
    """The types in ARRAY<..> and MAP<.., ..>."""
    numbers: tuple[int, ...] = ()
    """Precision and scale of DECIMAL(p, s); the length of VARCHAR(n) is ignored."""
    fields: tuple[tuple[str, TypeName], ...] = ()
    """Names and types in STRUCT<..>."""


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
