"""Common types and implicit casts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from potok.sql.functions.function import common_type, widens
from potok.sql.types import BIGINT, DOUBLE, INT, MAX_PRECISION, NULL, decimal

_LEAST_SCALE = 6
"""The minimum scale of a decimal result whose digits do not fit, unless its own scale is smaller."""


def implicit(from_: pa.DataType, to: pa.DataType) -> bool:
    """Return whether an implicit cast exists: to a wider number, also inside arrays, maps and structs."""
    if widens(from_, to):
        return True
    if pa.types.is_list(from_) and pa.types.is_list(to):
        return implicit(from_.value_type, to.value_type)
    if pa.types.is_map(from_) and pa.types.is_map(to):
        return implicit(from_.key_type, to.key_type) and implicit(from_.item_type, to.item_type)
    if pa.types.is_struct(from_) and pa.types.is_struct(to):
        known = {field.name: field.type for field in to}
        return all(field.name in known and implicit(field.type, known[field.name]) for field in from_)
    return False


def common(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the narrowest type that all can be implicitly cast to; None if there is none. Structs get the fields of
    all."""
    found: pa.DataType | None = NULL
    for type_ in types:
        found = _of_two(found, type_)
        if found is None:
            return None
    return found


def _of_two(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if NULL in (left, right):
        return right if left == NULL else left
    if pa.types.is_list(left) and pa.types.is_list(right):
        item = _of_two(left.value_type, right.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_map(left) and pa.types.is_map(right):
        key, item = _of_two(left.key_type, right.key_type), _of_two(left.item_type, right.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _struct_of_two(left, right)
    return common_type([left, right])


def _struct_of_two(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    fields = {field.name: field.type for field in left}
    for field in right:
        type_ = _of_two(fields.get(field.name, NULL), field.type)
        if type_ is None:
            return None
        fields[field.name] = type_
    return pa.struct(list(fields.items()))


def as_decimal(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an exact number type."""
    return {INT: decimal(10, 0), BIGINT: decimal(19, 0)}.get(type_, type_)


def arithmetic_type(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a result: the wider of the two, or the decimal that loses no digit within 38."""
    if DOUBLE in (left, right):
        return DOUBLE
    if not pa.types.is_decimal(left) and not pa.types.is_decimal(right):
        return BIGINT if BIGINT in (left, right) else INT
    left, right = as_decimal(left), as_decimal(right)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    if op in "+-":
        return fitted(whole + scale + 1, scale)
    if op == "*":
        return fitted(left.precision + right.precision + 1, left.scale + right.scale)
    if op == "/":
        scale = max(6, left.scale + right.precision + 1)
        return fitted(left.precision - left.scale + right.scale + scale, scale)
    least = min(left.precision - left.scale, right.precision - right.scale)
    return fitted(max(1, least + scale), scale)


def fitted(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type, with a smaller scale if 38 digits are not enough."""
    if precision > MAX_PRECISION:
        scale = max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE))
        precision = MAX_PRECISION
    return decimal(precision, scale)
