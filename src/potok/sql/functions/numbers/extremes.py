"""GREATEST and LEAST of several columns, row by row, ignoring NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
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
    common_type,
    takes_many,
)
from potok.sql.types import BIGINT, BYTES, DATE, DOUBLE, NULL, TIME, TIMESTAMP, VARCHAR, is_number, type_name

_MAGNITUDE: Final = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def _numbers(types: Types) -> Accepted | None:
    """Accept numbers of one type, or of any types with a DOUBLE among them; other mixtures are ambiguous."""
    plain = [type_ for type_ in types if not isinstance(type_, LambdaShape)]
    if not types or len(plain) < len(types):
        return None
    common = common_type(plain)
    if common is None or not is_number(common):
        return None
    kinds = {pa.types.is_decimal(type_) or type_ for type_ in plain if type_ != NULL}
    return Accepted([common] * len(types), common) if len(kinds) == 1 or common == DOUBLE else None


def _values(type_: pa.DataType) -> Callable[[Types], Accepted | None]:
    accept = takes_many(type_, result=type_)
    return lambda types: accept(types) if any(given != NULL for given in types) else None


def _ranks(column: pa.Array) -> pa.Array:
    """Return integers in the order in which Java compares doubles: -0.0 before 0.0, NaN after Infinity."""
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(bits ^ ((bits >> 63) & _MAGNITUDE), BIGINT, mask=missing)


def _of_ranks(ranks: pa.Array) -> pa.Array:
    keys = ranks.fill_null(0).to_numpy(zero_copy_only=False)
    values = (keys ^ ((keys >> 63) & _MAGNITUDE)).view(np.float64)
    return pa.array(values, DOUBLE, mask=ranks.is_null().to_numpy(zero_copy_only=False))


def _extreme(kernel: Callable[..., Any]) -> Callable[[Sequence[Any], int, pa.DataType, Context], pa.Array]:
    def compute(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
        if result == DOUBLE:
            return _of_ranks(kernel(*map(_ranks, arguments), skip_nulls=True))
        if result == TIMESTAMP:
            # Arrow compares only timestamps without a time zone.
            arguments = [argument.cast(BIGINT) for argument in arguments]
        return kernel(*arguments, skip_nulls=True).cast(result)

    return compute


def _function(name: str, kernel: Callable[..., Any], summary: str, example: str) -> ScalarFunction:
    compute = _extreme(kernel)
    return ScalarFunction(
        name,
        "math",
        summary,
        (
            Overload(f"{name}(x NUMBER, ...)", _numbers, compute),
            *(
                Overload(f"{name}(x {type_name(type_)}, ...)", _values(type_), compute)
                for type_ in (VARCHAR, BYTES, DATE, TIME, TIMESTAMP)
            ),
        ),
        example=example,
    )


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    _function(
        "GREATEST",
        pc.max_element_wise,
        "The greatest value that is not NULL. All values must have the same type, but numbers of different types are "
        "compared as DOUBLE if one of them is a DOUBLE. NaN is the greatest number.",
        "GREATEST(1, NULL, 3)  -- 3",
    ),
    _function("LEAST", pc.min_element_wise, "The least of the values that are not NULL.", "LEAST(1, NULL, 3)  -- 1"),
)
