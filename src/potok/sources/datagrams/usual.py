"""Find the parts of StatsD lines in the usual spelling, such as `page.views:1|c|@0.1`, in a few passes over all bytes.

A line is usual if it is ASCII and its numbers are written as in JSON. Every other line is left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_LONGEST = 256
"""The most bytes of a usual line: its number cannot exceed a double."""

_NEWLINE, _COLON, _PIPE, _DOT, _ZERO, _ONE, _NINE, _AT = b"\n:|.019@"
_PLUS, _MINUS = b"+-"
_IS_TYPE = np.isin(np.arange(256), list(b"gcCh"))
_IS_ODD = (np.arange(256) <= 0x20) | (np.arange(256) >= 0x7F)
_IS_DIGIT = (np.arange(256) >= _ZERO) & (np.arange(256) <= _NINE)


@dataclass(frozen=True, slots=True)
class Usual:
    """Where the parts of the usual lines are; and where the other lines are."""

    text: pa.Buffer
    starts: Ints
    name_ends: Ints
    signs: Bytes
    number_starts: Ints
    number_ends: Ints
    type_starts: Ints
    type_ends: Ints
    are_gauges: Bools
    rate_starts: Ints
    rate_ends: Ints
    others: list[tuple[int, int]]

    def slices(self, starts: Ints, ends: Ints) -> pa.BinaryArray:
        """Return a part of each line."""
        count = len(starts)
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[0:-1:2], offsets[1::2] = starts, ends
        offsets[-1] = ends[-1] if count else 0
        parts = pa.BinaryArray.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), self.text])
        return parts.take(pa.array(np.arange(0, 2 * count, 2)))


def find_usual(text: bytes) -> Usual:
    """Look at lines, each of which ends with a newline."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    digits, dots = _running(_IS_DIGIT[data]), _running(data == _DOT)
    odd = np.add.reduceat(_IS_ODD[data], starts, dtype=np.int64) > 1
    colons, pipes = np.flatnonzero(data == _COLON), np.flatnonzero(data == _PIPE)
    colon, colon_count = _first(colons, starts, ends)
    pipe, pipe_count = _first(pipes, starts, ends)
    second = _nth(pipes, starts, 1)
    good = ~odd & (colon_count == 1) & ((pipe_count == 1) | (pipe_count == 2)) & (ends - starts <= _LONGEST)
    good &= (starts < colon) & (colon < pipe) & (pipe < ends)
    lines = np.flatnonzero(good)
    starts_, ends_, colon, pipe = starts[lines], ends[lines], colon[lines], pipe[lines]
    sampled = pipe_count[lines] == 2
    type_ends = np.where(sampled, second[lines], ends_)
    good = data[colon - 1] != _DOT
    # The sign and the number.
    first = data[colon + 1]
    signed = (first == _PLUS) | (first == _MINUS)
    number = colon + 1 + signed
    good &= _is_number(data, number, pipe, digits, dots)
    # The type: one letter, or ms.
    length, letter = type_ends - pipe - 1, data[pipe + 1]
    long = (length == 2) & (letter == ord("m")) & (data[np.minimum(pipe + 2, len(data) - 1)] == ord("s"))
    good &= ((length == 1) & _IS_TYPE[letter]) | long
    # The rate: 1, or 0.1 and the like; its last digit is not 0, so it is not 0.
    rate = np.where(sampled, type_ends + 2, ends_)
    at = data[np.minimum(type_ends + 1, len(data) - 1)] == _AT
    whole = (ends_ - rate == 1) & (data[np.minimum(rate, len(data) - 1)] == _ONE)
    part = (ends_ - rate >= 3) & (data[np.minimum(rate, len(data) - 1)] == _ZERO)
    part &= _is_number(data, np.minimum(rate, ends_), ends_, digits, dots) & (data[ends_ - 1] != _ZERO)
    part &= data[np.minimum(rate + 1, len(data) - 1)] == _DOT
    good &= ~sampled | (at & (whole | part))
    chosen = np.flatnonzero(good)
    others = np.ones(len(starts), np.bool_)
    others[lines[chosen]] = False
    left = np.flatnonzero(others)
    return Usual(
        pa.py_buffer(text),
        starts_[chosen],
        colon[chosen],
        np.where(signed, first, 0).astype(np.uint8)[chosen],
        number[chosen],
        pipe[chosen],
        pipe[chosen] + 1,
        type_ends[chosen],
        letter[chosen] == ord("g"),
        rate[chosen],
        ends_[chosen],
        list(zip(starts[left].tolist(), ends[left].tolist(), strict=True)),
    )


def _running(flags: Bools) -> Ints:
    """Return how many flags are set before each position."""
    total = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=total[1:])
    return total


def _first(found: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the first of some positions in each line, and how many there are."""
    low, high = np.searchsorted(found, starts), np.searchsorted(found, ends)
    padded = np.append(found, np.iinfo(np.int64).max)
    return padded[low], high - low


def _nth(found: Ints, starts: Ints, number: int) -> Ints:
    padded = np.append(found, np.full(number + 1, np.iinfo(np.int64).max))
    return padded[np.searchsorted(found, starts) + number]


def _is_number(data: Bytes, starts: Ints, ends: Ints, digits: Ints, dots: Ints) -> Bools:
    """Return which ranges are numbers as JSON writes them: no empty part before or after the dot, and no leading 0."""
    length = ends - starts
    first, last = data[np.minimum(starts, len(data) - 1)], data[np.maximum(ends - 1, 0)]
    found = (length > 0) & _IS_DIGIT[first] & _IS_DIGIT[last]
    dotted = dots[ends] - dots[np.minimum(starts, ends)]
    found &= (digits[ends] - digits[np.minimum(starts, ends)] + dotted == length) & (dotted <= 1)
    zero = (first == _ZERO) & (length > 1) & (data[np.minimum(starts + 1, len(data) - 1)] != _DOT)
    return np.asarray(found & ~zero, np.bool_)
