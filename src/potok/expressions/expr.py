"""The expression tree: frozen, picklable nodes with an Arrow type, printed like the code they came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Expr:
    """A computation over the columns of a batch."""

    type: pa.DataType

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """An argument of the lambda ("key", "value", "agg", ...), or a struct field inside it."""

    name: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.name, *self.path))


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant. Literals are the only nodes that evaluate to a scalar."""

    value: object

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """A field of a computed struct, such as `items[0].price`."""

    operand: Expr
    name: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{_operand(self.operand)}.{self.name}"


@dataclass(frozen=True, slots=True)
class Item(Expr):
    """`operand[index]`: an element of a list, a character of a string, the value under a map's key."""

    operand: Expr
    index: int | str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{_operand(self.operand)}[{self.index!r}]"


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """`operand[start:stop]` of a string, by code points."""

    operand: Expr
    start: int | None
    stop: int | None

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        start, stop = ("" if bound is None else bound for bound in (self.start, self.stop))
        return f"{_operand(self.operand)}[{start}:{stop}]"


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`-x`, `+x`, and `~x` of an integer."""

    op: str
    operand: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{self.op}{_operand(self.operand)}"


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """Arithmetic, concatenation, and `&`, `|`, `^`, which are logical on booleans."""

    op: str
    left: Expr
    right: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """A comparison. `==` and `!=` treat null as Python treats None; the order comparisons do not accept it."""

    op: str
    left: Expr
    right: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


CallStyle = OneOf["function", "method", "attribute"]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """An operation by name: a Potok function, a method, or a computed attribute such as `at.hour`.

    In Python it is `name(*args, *options)`, `args[0].name(*args[1:], *options)` or `args[0].name`.
    """

    name: str
    style: CallStyle
    args: tuple[Expr, ...]
    options: tuple[object, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def __str__(self) -> str:
        if self.style == "attribute":
            return f"{_operand(self.args[0])}.{self.name}"
        args = self.args if self.style == "function" else self.args[1:]
        rendered = ", ".join([*map(str, args), *map(repr, self.options)])
        before = "" if self.style == "function" else f"{_operand(self.args[0])}."
        return f"{before}{self.name}({rendered})"


@dataclass(frozen=True, slots=True)
class StructExpr(Expr):
    """A dict display: builds a struct from its fields."""

    items: tuple[tuple[str, Expr], ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return tuple(expr for _, expr in self.items)

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {expr}" for name, expr in self.items) + "}"


@dataclass(frozen=True, slots=True)
class ListExpr(Expr):
    """A list display whose items share one type."""

    items: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.items

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


@dataclass(frozen=True, slots=True)
class TupleExpr(Expr):
    """A tuple, only as the whole result of a lambda: `(key, value)` for `map`.

    Evaluate `items` one by one for the key and the value; the whole is a struct with fields "0", "1", ...
    """

    items: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.items

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ("," if len(self.items) == 1 else "") + ")"


def _operand(expr: Expr) -> str:
    return f"({expr})" if isinstance(expr, Binary | Compare | Unary) else str(expr)


class All(Enum):
    """All fields, as a result of `fields`."""

    ALL = "all"


ALL: Final = All.ALL


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the node itself and all its descendants."""
    yield expr
    for child in expr.children:
        yield from walk(child)


def fields(expr: Expr, column: str = "value") -> frozenset[str] | All:
    """Return the top-level fields of `column` that the expression reads and a decoder must include.

    The column as a whole, or a column that is not a struct, is `ALL`.
    """
    used: set[str] = set()
    for node in walk(expr):
        if isinstance(node, Column) and node.name == column:
            if not node.path:
                return ALL
            used.add(node.path[0])
    return frozenset(used)
