"""GEO_DISTANCE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.sql.functions.dates.rows import Numbers, valid_rows
from potok.sql.functions.function import Context, Overload, ScalarFunction, SqlFunction, takes
from potok.sql.types import DOUBLE, VARCHAR

_KILOMETERS: Final = 6371.0
_MILES: Final = 3959.0
_RADII: Final = {
    **dict.fromkeys(("mi", "mile", "miles"), _MILES),
    **dict.fromkeys(("", "km", "kilometer", "kilometers", "kilometre", "kilometres"), _KILOMETERS),
}


def _distance(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    """Compute the haversine formula. Without a unit, or with a NULL or blank one, in kilometers."""
    valid = valid_rows(arguments[:4], rows)
    lat1, lon1, lat2, lon2 = (column.fill_null(0).to_numpy(zero_copy_only=False) for column in arguments[:4])
    for values, most, what in (
        (lat1, 90, "latitude"),
        (lat2, 90, "latitude"),
        (lon1, 180, "longitude"),
        (lon2, 180, "longitude"),
    ):
        _refuse(np.abs(values) > most, f"a {what} is between -{most} and {most} degrees", valid, context)
    radius = _radii(arguments[4], valid, context) if len(arguments) > 4 else np.float64(_KILOMETERS)
    lat1, lon1, lat2, lon2 = (np.where(valid, values, 0) for values in (lat1, lon1, lat2, lon2))
    chord = _haversine(lat2 - lat1) + _haversine(lon2 - lon1) * np.cos(np.radians(lat1)) * np.cos(np.radians(lat2))
    # At antipodes, rounding may exceed 1, for which arc sine is undefined.
    distances = 2 * np.arcsin(np.sqrt(np.minimum(chord, 1))) * radius
    return pa.array(distances, result, mask=~valid)


def _haversine(degrees: Numbers) -> Numbers:
    return np.asarray(np.sin(np.radians(degrees) / 2) ** 2)


def _radii(units: pa.Array, valid: Numbers, context: Context) -> Numbers:
    names = [(unit or "").strip().lower() for unit in units.to_pylist()]
    known = np.array([name in _RADII for name in names], bool)
    _refuse(~known, "a unit of distance is KM or MILES", valid, context)
    return np.array([_RADII.get(name, 0.0) for name in names], np.float64)


def _refuse(wrong: Numbers, reason: str, valid: Numbers, context: Context) -> None:
    for row in np.flatnonzero(wrong & valid):
        context.failures[int(row)] = reason
    valid &= ~wrong


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "GEO_DISTANCE",
        "geo",
        "The distance of two places on earth, along a great circle, in kilometers or miles.",
        (
            Overload(
                "GEO_DISTANCE(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE[, unit VARCHAR])",
                takes(DOUBLE, DOUBLE, DOUBLE, DOUBLE, VARCHAR, result=DOUBLE, optional=1),
                _distance,
            ),
        ),
        example="GEO_DISTANCE(37.4439, -122.1663, 51.5257, -0.1122) -> 8634.6",
    ),
)
