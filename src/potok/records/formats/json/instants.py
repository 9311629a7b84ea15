"""Instants in JSON: ISO text, or milliseconds since 1970."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.schemas.column_types import LOCAL_TIMESTAMP

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999, the range of Python
_ISO = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
)


def instants_of(array: pa.Array, arrow: pa.DataType) -> tuple[pa.Array, Mask]:
    """Return numbers or text as instants, null where a row must be read individually.

    Only text in the full form with a zone is read here, which Arrow and Python read in the same way.
    """
    given = array.is_valid()
    if pa.types.is_integer(array.type):
        good = pc.and_(pc.greater_equal(array, _FIRST_MS), pc.less_equal(array, _LAST_MS))
        instants = pc.multiply(_only(array, good), 1000).cast(LOCAL_TIMESTAMP)
    else:
        good = pc.match_substring_regex(array, _ISO)
        try:
            instants = _only(array, good).cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid:  # for example February 31
            return pa.nulls(len(array), arrow), _numpy(given)
        micros = instants.cast(pa.int64())
        inside = pc.and_(pc.greater_equal(micros, _FIRST_MS * 1000), pc.less(micros, (_LAST_MS + 1) * 1000))
        good = pc.and_(good, inside)
        instants = _only(instants, good)
    unsure = pc.and_not(given, pc.fill_null(good, False))
    return instants.cast(pa.int64()).cast(arrow), _numpy(unsure)


def _only(array: pa.Array, good: pa.Array) -> pa.Array:
    if array.null_count == 0 and pc.all(good).as_py():
        return array
    return pc.if_else(good, array, pa.scalar(None, array.type))


def _numpy(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask
