"""The distribution of some numbers: counts in buckets whose width is a share of the number, as in DDSketch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

ERROR = 0.01
"""A percentile differs from the exact one by at most this share of it."""

_GAMMA = (1 + ERROR) / (1 - ERROR)
_LOG_GAMMA = math.log(_GAMMA)
_LEAST = 1e-9
"""A number closer to 0 counts as 0."""


def empty() -> dict[str, Any]:
    return {"count": 0.0, "sum": 0.0, "min": None, "max": None, "above": {}, "zero": 0.0, "below": {}}


def add(sketch: dict[str, Any], number: float, weight: float) -> dict[str, Any]:
    """Add a number that stands for `weight` of them, and return the sketch."""
    sketch["count"] += weight
    sketch["sum"] += number * weight
    sketch["min"] = number if sketch["min"] is None else min(sketch["min"], number)
    sketch["max"] = number if sketch["max"] is None else max(sketch["max"], number)
    if abs(number) < _LEAST:
        sketch["zero"] += weight
    else:
        buckets = sketch["above" if number > 0 else "below"]
        bucket = math.ceil(math.log(abs(number)) / _LOG_GAMMA)
        buckets[bucket] = buckets.get(bucket, 0.0) + weight
    return sketch


def summary(sketch: dict[str, Any], percentiles: Sequence[float]) -> dict[str, float]:
    """Return the figures of a timer: `count`, `sum`, `min`, `max`, `mean`, and `p50` and so on."""
    count = sketch["count"]
    found = {name: float(sketch[name]) for name in ("count", "sum", "min", "max")}
    found["mean"] = sketch["sum"] / count
    steps = _ascending(sketch)
    for percentile in percentiles:
        found[name_of(percentile)] = _at(steps, count * percentile / 100, found["min"], found["max"])
    return found


def name_of(percentile: float) -> str:
    """Return the field of a percentile.

    >>> name_of(99.9)
    'p99_9'
    """
    return "p" + f"{percentile:g}".replace(".", "_")


def _ascending(sketch: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the middle of each bucket and its weight, the least number first."""
    below = sorted(((-_middle(bucket), weight) for bucket, weight in sketch["below"].items()))
    above = sorted((_middle(bucket), weight) for bucket, weight in sketch["above"].items())
    return below + ([(0.0, sketch["zero"])] if sketch["zero"] else []) + above


def _middle(bucket: int) -> float:
    return 2 * _GAMMA**bucket / (_GAMMA + 1)


def _at(steps: list[tuple[float, float]], rank: float, least: float, most: float) -> float:
    passed = 0.0
    for number, weight in steps:
        passed += weight
        # Weights are quotients such as 1 / 0.1; a rounding error must not select the next bucket.
        if passed >= rank - 1e-6:
            return min(max(number, least), most)
    return most
