"""Functions of numbers with Java semantics: NaN and Infinity instead of domain errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import (
    Accepted,
    Compute,
    Context,
    LambdaShape,
    Overload,
    ScalarFunction,
    SqlFunction,
    Types,
    by_arrow,
    common_type,
    takes,
    takes_many,
)
from potok.sql.functions.numbers import rounding
from potok.sql.functions.numbers.rounding import takes_decimal
from potok.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    NULL,
    TIME,
    TIMESTAMP,
    VARCHAR,
    is_number,
    type_name,
)

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


EXTREMES: Final[tuple[SqlFunction, ...]] = (
    _function(
        "GREATEST",
        pc.max_element_wise,
        "The greatest value that is not NULL. All values must have the same type, but numbers of different types are "
        "compared as DOUBLE if one of them is a DOUBLE. NaN is the greatest number.",
        "GREATEST(1, NULL, 3)  -- 3",
    ),
    _function("LEAST", pc.min_element_wise, "The least of the values that are not NULL.", "LEAST(1, NULL, 3)  -- 1"),
)


def _by_c_library(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Apply a function of the C library, whose last digit differs from Java's less often than that of numpy's."""

    def of(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.copysign(math.inf, function(math.copysign(1.0, x)))

    return lambda values: np.array([of(x) for x in values.tolist()], np.float64)


_CURVES: Final = (
    ("ACOS", np.arccos, "The inverse cosine, in radians; NaN outside [-1, 1].", "ACOS(1)  -- 0.0"),
    ("ASIN", np.arcsin, "The inverse sine, in radians; NaN outside [-1, 1].", "ASIN(0)  -- 0.0"),
    ("ATAN", np.arctan, "The inverse tangent, in radians.", "ATAN(0)  -- 0.0"),
    ("CBRT", np.cbrt, "The cube root.", "CBRT(-8)  -- -2.0"),
    ("COS", np.cos, "The cosine of an angle in radians.", "COS(0)  -- 1.0"),
    ("COSH", _by_c_library(math.cosh), "The hyperbolic cosine of an angle in radians.", "COSH(0)  -- 1.0"),
    (
        "COT",
        lambda x: np.divide(1.0, np.tan(x)),
        "The cotangent of an angle in radians; Infinity at 0.",
        "COT(0)  -- Infinity",
    ),
    ("DEGREES", np.degrees, "Radians as degrees.", "DEGREES(PI())  -- 180.0"),
    ("EXP", np.exp, "e to the power of `x`.", "EXP(0)  -- 1.0"),
    ("LN", np.log, "The natural logarithm; -Infinity at 0, NaN below.", "LN(1)  -- 0.0"),
    ("RADIANS", np.radians, "Degrees as radians.", "RADIANS(180)  -- 3.141592653589793"),
    ("SIN", np.sin, "The sine of an angle in radians.", "SIN(0)  -- 0.0"),
    ("SINH", _by_c_library(math.sinh), "The hyperbolic sine of an angle in radians.", "SINH(0)  -- 0.0"),
    ("SQRT", np.sqrt, "The square root; NaN below 0.", "SQRT(9)  -- 3.0"),
    ("TAN", np.tan, "The tangent of an angle in radians.", "TAN(0)  -- 0.0"),
    ("TANH", _by_c_library(math.tanh), "The hyperbolic tangent of an angle in radians.", "TANH(0)  -- 0.0"),
)


def by_numpy(function: Callable[..., Any]) -> Compute:
    """Return a numpy computation on DOUBLE columns; NULL in any argument gives NULL."""

    def compute(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
        with np.errstate(all="ignore"):
            values = function(*(column.to_numpy(zero_copy_only=False) for column in arguments))
        missing = np.zeros(len(values), bool)
        for column in arguments:
            if column.null_count:
                missing |= column.is_null().to_numpy(zero_copy_only=False)
        return pa.array(values, result, mask=missing)

    return compute


def _power(base: Any, exponent: Any) -> Any:
    """Java returns NaN where C returns 1: 1 to the power of NaN, and 1 or -1 to an infinite power."""
    unsure = (np.isnan(exponent) & (base == 1.0)) | (np.isinf(exponent) & (np.abs(base) == 1.0))
    return np.where(unsure, np.nan, np.power(base, exponent))


def _log(base: Any, x: Any) -> Any:
    return np.where((base <= 0) | (base == 1), np.nan, np.log(x) / np.log(base))


def _sign(x: pa.Array) -> pa.Array:
    sign = pc.sign(x)
    return pc.if_else(pc.is_nan(sign), 0.0, sign) if pa.types.is_floating(x.type) else sign


def _everywhere(value: Callable[[int], Any]) -> Compute:
    return lambda _, rows, result, __: pa.array(value(rows), result)


def _curve(name: str, function: Callable[..., Any], summary: str, example: str) -> ScalarFunction:
    overload = Overload(f"{name}(x DOUBLE)", takes(DOUBLE, result=DOUBLE), by_numpy(function))
    return ScalarFunction(name, "math", summary, (overload,), example=example)


_OTHERS: Final = (
    ScalarFunction(
        "ABS",
        "math",
        "The absolute value, of the same type; that of the least INT or BIGINT is itself, as in Java.",
        (
            Overload("ABS(x INT)", takes(INT, result=INT), by_arrow(pc.abs)),
            Overload("ABS(x BIGINT)", takes(BIGINT, result=BIGINT), by_arrow(pc.abs)),
            Overload("ABS(x DECIMAL)", takes_decimal(), by_arrow(pc.abs)),
            Overload("ABS(x DOUBLE)", takes(DOUBLE, result=DOUBLE), by_arrow(pc.abs)),
        ),
        example="ABS(-3)  -- 3",
    ),
    ScalarFunction(
        "ATAN2",
        "math",
        "The angle, in radians, of the point that lies `x` to the right and `y` up.",
        (Overload("ATAN2(y DOUBLE, x DOUBLE)", takes(DOUBLE, DOUBLE, result=DOUBLE), by_numpy(np.arctan2)),),
        example="ATAN2(0, 1)  -- 0.0",
    ),
    ScalarFunction(
        "INT_FROM_BOOLEAN",
        "math",
        "1 for TRUE, 0 for FALSE.",
        (
            Overload(
                "INT_FROM_BOOLEAN(x BOOLEAN)",
                takes(BOOLEAN, result=INT),
                by_arrow(lambda x: x.cast(INT)),
            ),
        ),
        example="INT_FROM_BOOLEAN(TRUE)  -- 1",
    ),
    ScalarFunction(
        "LOG",
        "math",
        "The logarithm to a base; without one the natural logarithm, as ksqlDB computes it. -Infinity for 0, NaN below "
        "0, and NaN for a base that is 1 or not positive.",
        (
            Overload("LOG(x DOUBLE)", takes(DOUBLE, result=DOUBLE), by_numpy(np.log)),
            Overload("LOG(base DOUBLE, x DOUBLE)", takes(DOUBLE, DOUBLE, result=DOUBLE), by_numpy(_log)),
        ),
        example="LOG(2, 8)  -- 3.0",
    ),
    ScalarFunction(
        "PI",
        "math",
        "The ratio of a circle's circumference to its diameter.",
        (Overload("PI()", takes(result=DOUBLE), _everywhere(lambda rows: np.full(rows, math.pi))),),
        example="PI()  -- 3.141592653589793",
    ),
    ScalarFunction(
        "POWER",
        "math",
        "`base` to the power of `exponent`; Infinity where it is too large for a DOUBLE.",
        (Overload("POWER(base DOUBLE, exponent DOUBLE)", takes(DOUBLE, DOUBLE, result=DOUBLE), by_numpy(_power)),),
        example="POWER(2, 10)  -- 1024.0",
    ),
    ScalarFunction(
        "RANDOM",
        "math",
        "A number from 0 up to but not including 1, another one for each row.",
        (Overload("RANDOM()", takes(result=DOUBLE), _everywhere(lambda n: np.random.default_rng().random(n))),),
        deterministic=False,
        example="RANDOM()  -- 0.4517834",
    ),
    ScalarFunction(
        "SIGN",
        "math",
        "-1, 0 or 1 for a number below, at or above 0; 0 for NaN.",
        (
            Overload("SIGN(x BIGINT)", takes(BIGINT, result=INT), by_arrow(_sign)),
            Overload("SIGN(x DOUBLE)", takes(DOUBLE, result=INT), by_arrow(_sign)),
        ),
        example="SIGN(-2.5)  -- -1",
    ),
)

FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    *_OTHERS,
    *(_curve(*curve) for curve in _CURVES),
    *rounding.FUNCTIONS,
    *EXTREMES,
)
