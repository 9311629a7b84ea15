"""Comparisons over columns. As in ksqlDB, a comparison with NULL is false, except IS DISTINCT FROM."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.budget import reserve_objects
from potok.sql.expressions.frame import Values, spread
from potok.sql.functions.function import Context
from potok.sql.types import BOOLEAN, MAX_PRECISION

LONGEST_PATTERN: Final = 10_000
"""Maximum length of a LIKE pattern."""

_KERNELS: Final = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: str, left: Values, right: Values, rows: int) -> Values:
    if op in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        same = pc.or_(compare("=", left, right, rows), pc.and_(pc.is_null(left), pc.is_null(right)))
        return same if op == "IS NOT DISTINCT FROM" else pc.invert(same)
    return known(raw_compare(op, left, right, rows))


def raw_compare(op: str, left: Values, right: Values, rows: int) -> Values:
    """Compare; NULL where a side is NULL."""
    if pa.types.is_nested(left.type):
        return _compare_nested(op, spread(left, rows), spread(right, rows))
    if pa.types.is_decimal(left.type) and left.type != right.type:
        wide = _wide(left.type, right.type)
        left, right = left.cast(wide), right.cast(wide)
    return _KERNELS[op](left, right)


def _wide(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return a common type for two decimals, even if 38 digits are not enough for both."""
    scale = max(left.scale, right.scale)
    precision = scale + max(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.decimal256(precision, scale)


def known(truth: Values) -> Values:
    """Replace NULL by false."""
    if isinstance(truth, pa.Scalar):
        return truth if truth.is_valid else pa.scalar(False)
    return pc.fill_null(truth, False) if truth.null_count else truth


def between(operand: Values, low: Values, high: Values, rows: int) -> Values:
    return pc.and_(compare(">=", operand, low, rows), compare("<=", operand, high, rows))


def listed(operand: Values, items: list[Values], rows: int) -> Values:
    """Compute IN. NULL is in no list, and a NULL in the list equals nothing."""
    if all(isinstance(item, pa.Scalar) for item in items) and not pa.types.is_nested(operand.type):
        values = pa.array([item.as_py() for item in items if item.is_valid], operand.type)
        return pc.is_in(operand, value_set=values, skip_nulls=True)
    found: Values = pa.scalar(False)
    for item in items:
        found = pc.or_(found, compare("=", operand, item, rows))
    return found


def _compare_nested(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare arrays, maps or structs, which Arrow does not support. Inside of them, NULL equals NULL."""
    wanted = op == "="
    reserve_objects((left, right))
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    found = [
        None if one is None or other is None else (plain(one, left.type) == plain(other, right.type)) == wanted
        for one, other in pairs
    ]
    return pa.array(found, BOOLEAN)


def plain(value: Any, type_: pa.DataType) -> Any:
    """Return a value that Python's == compares correctly: the order of map entries is irrelevant."""
    if value is None:
        return None
    if pa.types.is_list(type_):
        return [plain(item, type_.value_type) for item in value]
    if pa.types.is_map(type_):
        return {plain(key, type_.key_type): plain(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {field.name: plain(value[field.name], field.type) for field in type_}
    return value


def like(operand: Values, pattern: Values, escape: str, rows: int, context: Context) -> Values:
    """Compute LIKE: `%` matches any text and `_` any character, including line breaks. NULL gives NULL."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.scalar(None, BOOLEAN)
        return _like_constant(operand, pattern.as_py(), escape)
    texts, shapes = spread(operand, rows), pattern.dictionary_encode()
    codes = shapes.indices.fill_null(len(shapes.dictionary)).to_numpy(zero_copy_only=False)
    found = np.full(rows, None, object)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(shapes.dictionary) + 1))
    for code, shape in enumerate(shapes.dictionary.to_pylist()):
        at = order[ends[code - 1] if code else 0 : ends[code]]
        try:
            found[at] = _like_constant(texts.take(pa.array(at)), shape, escape).to_numpy(zero_copy_only=False)
        except ValueError as error:
            for row in at.tolist():
                context.failures.setdefault(row, str(error))
    return pa.array(found, BOOLEAN)


def _like_constant(operand: Values, pattern: str, escape: str) -> Values:
    parts = split_pattern(pattern, escape)
    match parts:
        case []:
            return pc.equal(operand, "")
        case [str() as text]:
            return pc.equal(operand, text)
        case [str() as text, 0]:
            return pc.starts_with(operand, pattern=text)
        case [0, str() as text]:
            return pc.ends_with(operand, pattern=text)
        case [0, str() as text, 0]:
            return pc.match_substring(operand, pattern=text)
    shape = "".join(re.escape(part) if isinstance(part, str) else "." if part else ".*" for part in parts)
    try:
        return pc.match_substring_regex(operand, pattern=rf"(?s)\A{shape}\z")
    except pa.ArrowInvalid as error:
        raise ValueError(f"invalid LIKE pattern: {error}") from None


def check_pattern(pattern: str, escape: str) -> None:
    """Raise ValueError for an invalid pattern."""
    _like_constant(pa.array([""]), pattern, escape)


def split_pattern(pattern: str, escape: str) -> list[str | int]:
    """Split into plain text, 0 for `%` and 1 for `_`; ValueError if it ends with the escape character or is too
    long."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a LIKE pattern has at most {LONGEST_PATTERN:,} characters, not {len(pattern):,}")
    parts: list[str | int] = []
    escaped = False
    for char in pattern:
        if not escaped and char == escape:
            escaped = True
            continue
        if not escaped and char in "%_":
            if char == "_" or not parts or parts[-1] != 0:
                parts.append(1 if char == "_" else 0)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += char
        else:
            parts.append(char)
        escaped = False
    if escaped:
        raise ValueError(f"the pattern '{pattern}' ends in its escape character")
    return parts
