"""Functions of NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import (
    Accepted,
    Context,
    LambdaShape,
    Overload,
    ScalarFunction,
    SqlFunction,
    Types,
    by_arrow,
    common_type,
)
from potok.sql.types import DOUBLE, NULL


def _alike(least: int, most: int | None = None) -> Callable[[Types], Accepted | None]:
    """Arguments of one type, or of types that have a common one."""

    def accept(types: Types) -> Accepted | None:
        given = [type_ for type_ in types if not isinstance(type_, LambdaShape)]
        if len(given) < max(least, len(types)) or len(types) > (most or len(types)):
            return None
        type_ = common_type(given)
        return None if type_ is None or type_ == NULL else Accepted([type_] * len(types), type_)

    return accept


def _first(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
    found = arguments[0]
    for column in arguments[1:]:
        if not found.null_count:
            break
        found = _filled(found, column) if pa.types.is_nested(result) else pc.coalesce(found, column)
    return found


def _filled(column: pa.Array, other: pa.Array) -> pa.Array:
    """Return the rows of one column, or of another where they are NULL."""
    rows = pa.array(range(len(column)), pa.int64())
    chosen = pc.if_else(column.is_valid(), rows, pc.add(rows, len(column)))
    return pa.concat_arrays([column, other]).take(chosen)


def _null_if(arguments: Sequence[Any], rows: int, result: pa.DataType, _: Context) -> pa.Array:
    left, right = arguments
    if pa.types.is_nested(result):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        equal = pa.array([one is not None and one == other for one, other in pairs], pa.bool_())
    elif result == DOUBLE:
        # Like Java's Double.equals: NaN equals itself, and 0.0 does not equal -0.0.
        bits = pc.equal(left.view(pa.int64()), right.view(pa.int64()))
        equal = pc.or_(bits, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    else:
        equal = pc.equal(left, right)
    kept = pc.if_else(equal.fill_null(False), pa.scalar(None, pa.int64()), pa.array(range(rows), pa.int64()))
    return left.take(kept)


def _as_value(types: Types) -> Accepted | None:
    fits = len(types) == 1 and not isinstance(types[0], LambdaShape)
    return Accepted(types, types[0]) if fits and not isinstance(types[0], LambdaShape) else None


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "AS_VALUE",
        "null",
        "A copy of a key column among the values.",
        (Overload("AS_VALUE(column ANY)", _as_value, by_arrow(lambda column: column)),),
        example="SELECT id, AS_VALUE(id) AS id_copy FROM orders",
    ),
    ScalarFunction(
        "COALESCE",
        "null",
        "The first of its arguments that is not NULL.",
        (Overload("COALESCE(value ANY, ...)", _alike(1), _first),),
        example="COALESCE(NULL, 'a', 'b') -> 'a'",
    ),
    ScalarFunction(
        "IFNULL",
        "null",
        "The first argument, or the second one where the first is NULL.",
        (Overload("IFNULL(value ANY, instead ANY)", _alike(2, 2), _first),),
        example="IFNULL(NULL, 'a') -> 'a'",
    ),
    ScalarFunction(
        "NULLIF",
        "null",
        "NULL where both arguments are equal, else the first one.",
        (Overload("NULLIF(value ANY, other ANY)", _alike(2, 2), _null_if),),
        example="NULLIF('a', 'a') -> NULL",
    ),
)
