"""What a function of SQL is: what it accepts, what it gives, and how it computes whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from potok.sql.budget import LARGEST_VALUE, PIECE, Ints, TimeIsOver, TooLarge, check_time, reserve_objects
from potok.sql.types import BIGINT, DOUBLE, INT, MAX_PRECISION, NULL, decimal

Types = Sequence["pa.DataType | LambdaShape"]


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """Stands among the types of arguments where a lambda stands. `body` is the type of its result, or None as long as
    the types of its parameters are not known."""

    parameters: int
    body: pa.DataType | None = None


class LambdaValue(Protocol):
    """A lambda at work: whole columns of elements at once."""

    def __call__(self, parameters: Sequence[pa.Array], rows: pa.Array) -> pa.Array:
        """The results for columns of elements; `rows` holds for each element the number of the record it is of, because
        a lambda may look at columns of its record too."""
        ...


@dataclass(slots=True)
class Context:
    """What a computation may know besides its arguments. A row that cannot be computed is null, and noted here."""

    now_ms: int = 0
    """The processing time of the batch: nothing reads a clock, so that a replay computes the same."""
    failures: dict[int, str] = field(default_factory=dict)
    contained: dict[int, str] = field(default_factory=dict)
    """Failures that made only a part of the expression NULL; they are reported, without failing the row."""

    @property
    def reported(self) -> dict[int, str]:
        """All failures, one reason per row."""
        return {**self.contained, **self.failures}


Compute = Callable[[Sequence[Any], int, pa.DataType, Context], pa.Array]
"""Arguments (arrays of `rows` values each, or a `LambdaValue`), the number of rows, the type of the result."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types that arguments are cast to before the call, and the type of the result."""

    arguments: Types
    result: pa.DataType


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function."""

    signature: str
    """As DESCRIBE FUNCTION shows it: `SUBSTRING(text VARCHAR, start INT[, length INT])`."""
    accept: Callable[[Types], Accepted | None]
    """None if it cannot be called with these types. NULL is the type of a bare NULL."""
    compute: Compute
    lambda_types: Callable[[Types, int], Sequence[pa.DataType]] | None = None
    """For a function that takes lambdas: the types of the parameters of the one at this position."""
    size: Callable[[Sequence[Any]], Ints | None] | None = None
    """Returns the bytes of each result, or None if small; for results that can be much larger than the arguments."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A value for each record."""

    name: str
    family: str
    """The heading under which the reference page has it: math, text, ..."""
    summary: str
    overloads: tuple[Overload, ...]
    deterministic: bool = True
    example: str = ""


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Several rows for each record: its overloads compute arrays, and each item becomes a row."""

    name: str
    family: str
    summary: str
    overloads: tuple[Overload, ...]
    example: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One number of an aggregate that merges: `op` is count, sum, min or max of the non-null values of `compute`, whose
    type is BIGINT or DOUBLE."""

    op: str
    type: pa.DataType
    compute: Callable[[Sequence[pa.Array], int], pa.Array] | None = None
    """From the arguments; None counts records."""
    initial: int | float | None = None
    """What a group begins with; without it, a group without values has NULL."""


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate record by record. States are plain data (numbers, text, lists, dicts with text keys): they are
    stored. Arguments are Python values, None for NULL."""

    start: Callable[[], Any]
    add: Callable[..., Any]
    """(state, *arguments) -> state; may change the state it is given."""
    result: Callable[[Any], Any]
    undo: Callable[..., Any] | None = None
    """(state, *arguments) -> state without a row that has left; None: not for tables."""
    merge: Callable[[Any, Any], Any] | None = None
    """(left, right) -> state of both, for sessions that meet; None: the records are folded again."""
    order_dependent: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate with known types: `parts` and `finish` where it merges, and always the fold."""

    arguments: Sequence[pa.DataType]
    result: pa.DataType
    fold: Fold
    parts: tuple[Part, ...] = ()
    finish: Callable[[Sequence[pa.Array], int, pa.DataType], pa.Array] | None = None
    """From the merged parts, in the order of `parts`; None gives the only part, cast to the result."""


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    signature: str
    accept: Callable[[Sequence[pa.DataType], Sequence[Any]], AggregateCall | None]
    """Types of the arguments, and the values of those behind the first `columns` ones, which must be literals."""
    columns: int = 1
    """How many arguments are columns: all others are literals, such as the 3 of TOPK(x, 3). -1 is all of them, -2 all
    but the last one."""

    def columns_among(self, arguments: int) -> int:
        """How many of so many arguments are columns."""
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
    """Whether a value of one type is taken where the other is asked for: INT, BIGINT, DECIMAL, DOUBLE in this order."""
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
    """The least type that all widen to; None if there is none."""
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
    """Fixed parameter types, of which the last `optional` may be left out; narrower numbers widen."""

    def accept(types: Types) -> Accepted | None:
        if not len(parameters) - optional <= len(types) <= len(parameters):
            return None
        wanted = parameters[: len(types)]
        fits = all(not isinstance(t, LambdaShape) and widens(t, w) for t, w in zip(types, wanted, strict=True))
        return Accepted(wanted, result) if fits else None

    return accept


def takes_many(*parameters: pa.DataType, result: pa.DataType, least: int = 1) -> Callable[[Types], Accepted | None]:
    """Fixed parameter types, the last of which may come any number of times, `least` at least."""
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
    """A computation by a Python function, row by row. NULL in any argument gives NULL, unless the function takes
    `nulls`; a row for which it raises is NULL, and noted."""

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
            except Exception as error:  # noqa: BLE001 - noted, and told with the query
                context.failures[row] = f"{type(error).__name__}: {error}"
                values.append(None)
        return pa.array(values, result)

    return compute


def by_arrow(function: Callable[..., Any]) -> Compute:
    """A computation by an Arrow kernel that takes the arguments and gives the result, cast to its type."""

    def compute(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
        found = function(*arguments)
        return found if found.type == result else found.cast(result)

    return compute
