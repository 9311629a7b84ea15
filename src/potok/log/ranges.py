"""Sets of offsets as ranges: from the first to the second (exclusive), in order, disjoint."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

Range = tuple[int, int]
Ranges = Sequence[Range]


def ranges_of(offsets: Iterable[int]) -> list[Range]:
    """Group consecutive offsets into ranges."""
    return joined((offset, offset + 1) for offset in offsets)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Merge ranges in any order, which may overlap."""
    found: list[Range] = []
    for first, end in sorted(ranges):
        if found and found[-1][1] >= first:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif first < end:
            found.append((first, end))
    return found


def without(ranges: Ranges, taken: Ranges) -> list[Range]:
    """Subtract `taken` from `ranges`."""
    left: list[Range] = []
    at = 0
    for start, end in ranges:
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        # The last checked range may extend into the next one.
        for first, last in islice(taken, at, None):
            if first >= end:
                break
            if start < first:
                left.append((start, first))
            start = last
        if start < end:
            left.append((start, end))
    return left


def within(ranges: Ranges, start: int, end: int) -> list[Range]:
    """Intersect with the offsets from `start` to `end` (exclusive)."""
    met = ((max(first, start), min(last, end)) for first, last in ranges)
    return [(first, last) for first, last in met if first < last]


def size(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges)


def inside(ranges: Ranges, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which offsets are in one of the ranges."""
    if not ranges:
        return np.zeros(len(offsets), np.bool_)
    firsts, ends = np.array(ranges, np.int64).T
    at = np.searchsorted(firsts, offsets, side="right") - 1
    return np.asarray((at >= 0) & (offsets < ends[np.maximum(at, 0)]), np.bool_)


def inside_of(ranges: Ranges, offset: int) -> bool:
    at = bisect_right(ranges, offset, key=lambda part: part[0]) - 1
    return at >= 0 and offset < ranges[at][1]
