"""Definitions of functions: parameters, result types, and computation over columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from potok.sql.budget import LARGEST_VALUE, PIECE, Ints, TimeIsOver, TooLarge, check_time, reserve_objects
from potok.sql.types import BIGINT, DOUBLE, INT, MAX_PRECISION, NULL, decimal

Types = Sequence["pa.DataType | LambdaShape"]


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """Represents a lambda among argument types. `body` is its result type, or None while its parameter types are
    unknown."""

    parameters: int
    body: pa.DataType | None = None


@dataclass(slots=True)
class Context:
    """The context of a computation. A row that cannot be computed is null and reported here."""

    now_ms: int = 0
    """The processing time of the batch; functions never read a clock, so that a replay computes the same."""
    failures: dict[int, str] = field(default_factory=dict)
    contained: dict[int, str] = field(default_factory=dict)
    """Failures that made only a part of the expression NULL; they are reported, without failing the row."""

    @property
    def reported(self) -> dict[int, str]:
        """All failures, one reason per row."""
        return {**self.contained, **self.failures}


Compute = Callable[[Sequence[Any], int, pa.DataType, Context], pa.Array]
"""Arguments, the number of rows, the result type. An argument is an array of that many values, or a lambda: a function
of columns of elements and of their record numbers, because a lambda may also read columns of its record."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types that arguments are cast to before the call, and the result type."""

    arguments: Types
    result: pa.DataType


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function."""

    signature: str
    """As DESCRIBE FUNCTION shows it: `SUBSTRING(text VARCHAR, start INT[, length INT])`."""
    accept: Callable[[Types], Accepted | None]
    """Returns None if it cannot be called with these types. NULL is the type of an untyped NULL."""
    compute: Compute
    lambda_types: Callable[[Types, int], Sequence[pa.DataType]] | None = None
    """For a function with lambdas: the parameter types of the lambda at this position."""
    size: Callable[[Sequence[Any]], Ints | None] | None = None
    """Returns the bytes of each result, or None if small; for results that can be much larger than the arguments."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """Returns a value per record."""

    name: str
    family: str
    """The section of the reference page: math, text, ..."""
    summary: str
    overloads: tuple[Overload, ...]
    deterministic: bool = True
    example: str = ""


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Returns several rows per record: its overloads return arrays, and each element becomes a row."""

    name: str
    family: str
    summary: str
    overloads: tuple[Overload, ...]
    example: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One mergeable part of an aggregate: `op` is count, sum, min or max of the non-null values of `compute`, whose
    type is BIGINT or DOUBLE."""

    op: str
    type: pa.DataType
    compute: Callable[[Sequence[pa.Array], int], pa.Array] | None = None
    """Computes the input from the arguments; None counts records."""
    initial: int | float | None = None
    """The initial value of a group; without it, a group without values is NULL."""


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate computed record by record. States are plain data that can be stored (numbers, strings, lists, dicts
    with string keys). Arguments are Python values, None for NULL."""

    start: Callable[[], Any]
    add: Callable[..., Any]
    """(state, *arguments) -> state; may modify the given state."""
    result: Callable[[Any], Any]
    undo: Callable[..., Any] | None = None
    """(state, *arguments) -> state without a removed row; None if tables are not supported."""
    merge: Callable[[Any, Any], Any] | None = None
    """(left, right) -> merged state, for merging sessions; None to aggregate the records again."""
    order_dependent: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate with resolved types: `parts` and `finish` if it is mergeable, and the record-by-record form."""

    arguments: Sequence[pa.DataType]
    result: pa.DataType
    fold: Fold
    parts: tuple[Part, ...] = ()
    finish: Callable[[Sequence[pa.Array], int, pa.DataType], pa.Array] | None = None
    """Computes the result from the merged parts, in order; None casts the only part to the result."""


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    signature: str
    accept: Callable[[Sequence[pa.DataType], Sequence[Any]], AggregateCall | None]
    """Resolves argument types, and the values of the arguments after the first `columns` ones, which must be literals.
    """
    columns: int = 1
    """How many arguments are columns; the others are literals, such as the 3 of TOPK(x, 3). -1 is all, -2 all but the
    last."""

    def columns_among(self, arguments: int) -> int:
        """Return how many of this many arguments are columns."""
        return self.columns if self.columns >= 0 else arguments + self.columns + 1


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    name: str
    summary: str
    overloads: tuple[AggregateOverload, ...]
    family: str = "aggregate"
    example: str = ""


SqlFunction = ScalarFunction | TableFunction | AggregateFunction

_RANKS = {INT: 1, BIGINT: 2, DOUBLE: 4}


def widens(from_: pa.DataType, to: pa.DataType) -> bool:
    """Return whether a value of one type is accepted as another: INT, BIGINT, DECIMAL, DOUBLE in this order."""
    if from_ in (to, NULL):
        return True
    if pa.types.is_decimal(to):
        whole = {INT: 10, BIGINT: 19}.get(from_, 0)
        if pa.types.is_decimal(from_):
            whole = from_.precision - from_.scale
            return bool(whole <= to.precision - to.scale and from_.scale <= to.scale)
        return bool(0 < whole <= to.precision - to.scale)
    rank = 3 if pa.types.is_decimal(from_) else _RANKS.get(from_, 0)
    return 0 < rank < _RANKS.get(to, 0)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the narrowest type that all widen to; None if there is none."""
    found: pa.DataType = NULL
    for type_ in types:
        if widens(type_, found):
            continue
        if widens(found, type_):
            found = type_
        elif pa.types.is_decimal(found) or pa.types.is_decimal(type_):
            merged = _common_decimal(found, type_)
            if merged is None:
                return None
            found = merged
        else:
            return None
    return found


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    digits = [_digits(left), _digits(right)]
    if None in digits:
        return None
    scale = max(d[1] for d in digits if d)
    return decimal(min(MAX_PRECISION, max(d[0] - d[1] for d in digits if d) + scale), scale)


def _digits(type_: pa.DataType) -> tuple[int, int] | None:
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    return {INT: (10, 0), BIGINT: (19, 0)}.get(type_)


def takes(*parameters: pa.DataType, result: pa.DataType, optional: int = 0) -> Callable[[Types], Accepted | None]:
    """Fixed parameter types, the last `optional` of which may be omitted; narrower numbers widen."""

    def accept(types: Types) -> Accepted | None:
        if not len(parameters) - optional <= len(types) <= len(parameters):
            return None
        wanted = parameters[: len(types)]
        fits = all(not isinstance(t, LambdaShape) and widens(t, w) for t, w in zip(types, wanted, strict=True))
        return Accepted(wanted, result) if fits else None

    return accept


def takes_many(*parameters: pa.DataType, result: pa.DataType, least: int = 1) -> Callable[[Types], Accepted | None]:
    """Fixed parameter types, the last of which may be repeated, at least `least` times."""
    first, last = parameters[:-1], parameters[-1]

    def accept(types: Types) -> Accepted | None:
        if len(types) < len(first) + least:
            return None
        wanted = [*first, *[last] * (len(types) - len(first))]
        fits = all(not isinstance(t, LambdaShape) and widens(t, w) for t, w in zip(types, wanted, strict=True))
        return Accepted(wanted, result) if fits else None

    return accept


def large_value() -> ValueError:
    return ValueError(f"the value would be larger than {LARGEST_VALUE >> 20} MB")


def each_row(function: Callable[..., Any], *, nulls: bool = False) -> Compute:
    """Return a computation by a Python function, row by row. NULL in any argument gives NULL, unless the function
    accepts `nulls`; a row for which it raises is NULL and reported."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        values: list[Any] = []
        reserve_objects(arguments)
        columns = [argument.to_pylist() for argument in arguments]
        for row in range(rows):
            if row % PIECE == 0:
                check_time()
            given = [column[row] for column in columns]
            if not nulls and any(value is None for value in given):
                values.append(None)
                continue
            try:
                values.append(function(*given))
            except (TimeIsOver, TooLarge):
                raise
            except Exception as error:  # noqa: BLE001 - recorded, and reported with the query
                expected = isinstance(error, ValueError | ArithmeticError)
                context.failures[row] = str(error) if expected else f"{type(error).__name__}: {error}"
                values.append(None)
        return pa.array(values, result)

    return compute


def by_arrow(function: Callable[..., Any]) -> Compute:
    """Return a computation by an Arrow kernel, with the result cast to its type."""

    def compute(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
        found = function(*arguments)
        return found if found.type == result else found.cast(result)

    return compute
