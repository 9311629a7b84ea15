"""How a user's function is called: for each row, for whole columns, for several rows of each, or as an aggregate.

These are plain objects that hold the user's function, not closures, so that an overload can be pickled wherever the
function can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.rows import rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.sql.functions.function import Accepted, AggregateCall, Context, Fold, LambdaShape, Types
from potok.sql.functions.user.types import UserType, fitted
from potok.sql.types import DOUBLE


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function, of which the last `optional` may be omitted; `rest` may be repeated."""

    types: tuple[UserType, ...]
    optional: int = 0
    rest: UserType | None = None

    def among(self, count: int) -> tuple[UserType, ...] | None:
        """Return the parameters of a call with this number of arguments; None if the number is not possible."""
        if not len(self.types) - self.optional <= count or (count > len(self.types) and self.rest is None):
            return None
        more = () if self.rest is None else (self.rest,) * (count - len(self.types))
        return (*self.types[:count], *more)

    def fit(self, given: Types) -> list[pa.DataType] | None:
        """Return the types to which arguments of these types are cast; None if the function does not accept them."""
        wanted = self.among(len(given))
        if wanted is None or any(isinstance(type_, LambdaShape) for type_ in given):
            return None
        found = [fitted(type_, part) for type_, part in zip(given, wanted, strict=True)]
        return None if any(type_ is None for type_ in found) else found


@dataclass(frozen=True, slots=True)
class UserAccept:
    parameters: Parameters
    result: pa.DataType

    def __call__(self, types: Types) -> Accepted | None:
        found = self.parameters.fit(types)
        return None if found is None else Accepted(found, self.result)


@dataclass(frozen=True, slots=True)
class RowCall:
    """Calls a function for each row. A row for which it raises, or returns a value of another type, is NULL and
    reported."""

    function: Callable[..., Any]
    parameters: Parameters
    result: UserType
    table: bool = False
    """Whether it returns several values; then NULL is an empty list."""

    def __call__(self, arguments: Sequence[Any], rows: int, _: pa.DataType, context: Context) -> pa.Array:
        given = self.parameters.among(len(arguments)) or ()
        columns = [
            [part.read(value) for value in rows_of(argument)] for part, argument in zip(given, arguments, strict=True)
        ]
        needed = [index for index, part in enumerate(given) if not part.nullable]
        values: list[Any] = []
        for row in range(rows):
            values.append(self._value([column[row] for column in columns], needed, row, context))
        made = fit(values, _schema(self.result, self.table), Reading.PYTHON)
        context.failures.update({row: f"{_name(self.function)}: {reason}" for row, reason in made.errors.items()})
        return made.column

    def _value(self, given: list[Any], needed: Sequence[int], row: int, context: Context) -> Any:
        nothing: Any = [] if self.table else None
        if any(given[index] is None for index in needed):
            return nothing
        try:
            found = self.function(*given)
            if self.table:
                return [] if found is None else [self.result.write(item) for item in found]
            return self.result.write(found)
        except Exception as error:  # noqa: BLE001 - the user's code; recorded, and reported with the query
            context.failures[row] = f"{type(error).__name__}: {error}"
            return nothing


def _schema(result: UserType, table: bool) -> Schema:
    schema = declared_schema(pa.list_(result.type) if table else result.type)
    assert schema is not None
    return schema


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


@dataclass(frozen=True, slots=True)
class ColumnCall:
    """Calls a function once with whole columns. If it raises, all rows are NULL and reported."""

    function: Callable[..., Any]

    def __call__(self, arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        try:
            found = self.function(*arguments)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if not isinstance(found, pa.Array):
                raise TypeError(f"{_name(self.function)} gave a {type(found).__name__}, not a pa.Array")
            if len(found) != rows:
                raise ValueError(f"{_name(self.function)} gave {len(found)} values for {rows} rows")
            return found if found.type == result else found.cast(result)
        except Exception as error:  # noqa: BLE001 - the user's code; recorded, and reported with the query
            context.failures.update(dict.fromkeys(range(rows), f"{type(error).__name__}: {error}"))
            return pa.nulls(rows, result)


@dataclass(frozen=True, slots=True)
class Change:
    """Adds a record to a state, or removes it. A NULL that the function does not accept leaves the state unchanged."""

    function: Callable[..., Any]
    types: tuple[UserType, ...]

    def __call__(self, state: Any, *values: Any) -> Any:
        if any(value is None and not part.nullable for part, value in zip(self.types, values, strict=True)):
            return state
        return self.function(state, *(part.read(value) for part, value in zip(self.types, values, strict=True)))


@dataclass(frozen=True, slots=True)
class Outcome:
    function: Callable[[Any], Any]
    result: UserType

    def __call__(self, state: Any) -> Any:
        return self.result.write(self.function(state))


def _literal(wanted: UserType, value: Any) -> Any:
    """Convert a literal for the class: 1.5 is a decimal in SQL."""
    return float(value) if wanted.type == DOUBLE and value is not None else value


@dataclass(frozen=True, slots=True)
class AggregateAccept:
    """The arguments after the columns are literals, which are passed to the constructor of the class."""

    made_by: type
    parameters: Parameters
    literals: Parameters
    result: UserType

    def __call__(self, types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
        columns = len(types) - len(literals)
        wanted = self.parameters.among(columns)
        cast = self.parameters.fit(types[:columns])
        if wanted is None or cast is None or self.literals.fit(types[columns:]) is None:
            return None
        made = self.made_by(*map(_literal, self.literals.types, literals))
        undo, merge = (getattr(made, name, None) for name in ("undo", "merge"))
        fold = Fold(
            start=made.start,
            add=Change(made.add, wanted),
            result=Outcome(made.result, self.result),
            undo=None if undo is None else Change(undo, wanted),
            merge=merge,
            order_dependent=merge is None,
        )
        return AggregateCall(cast, self.result.type, fold)
