"""The order of records in their batch: by position, unless a step defines another order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

WIDTH = 4
"""An order key is a time, an input partition, an offset and a number; the time is set if records are in event-time
order.

A result has the order key of its record; a result of a timer has the key of the record that follows it, with a lower
number, or the last key of all. So the order keys of records do not depend on the rest of their batch, and those of
different steps can be compared. Records with one order key keep their order of arrival.
"""

UNTIMED = np.iinfo(np.int64).min
LAST = np.iinfo(np.int64).max

_BEFORE = 1 << 62
"""Greater than any stream time: the number of a timer's result is its stream time minus this."""


def by_position(input_partitions: Ints, offsets: Ints) -> Ints:
    return np.stack(
        [np.full(len(input_partitions), UNTIMED), input_partitions, offsets, np.zeros(len(input_partitions), np.int64)],
        axis=1,
    )


def by_time(times: Ints, input_partitions: Ints, offsets: Ints) -> Ints:
    return np.stack([times, input_partitions, offsets, np.zeros(len(times), np.int64)], axis=1)


def of_turns(order_keys: Ints, turns: Ints, stream_times: Ints, timed: npt.NDArray[np.bool_]) -> Ints:
    """Return the order keys of results by the turns of records: that of the record or, if `timed`, that of a timer
    before it; or, past the last turn, after all records.
    """
    inside = turns < len(order_keys)
    made = np.full((len(turns), WIDTH), LAST)
    made[inside] = order_keys[turns[inside]]
    made[~inside, 3] = stream_times[~inside]
    # Results of one record are adjacent: those of a timer between them keep their order among them.
    first = np.ones(len(order_keys), np.bool_)
    first[1:] = np.any(order_keys[1:, :3] != order_keys[:-1, :3], axis=1)
    before = np.flatnonzero(inside & timed)
    before = before[first[turns[before]]]
    made[before, 3] = stream_times[before] - _BEFORE
    return made


def sorted_rows(order_keys: Ints | None, input_partitions: Ints, offsets: Ints) -> npt.NDArray[np.intp]:
    """Return the row numbers in order; without order keys, by position."""
    return np.lexsort(
        (offsets, input_partitions)
        if order_keys is None
        else tuple(order_keys[:, part] for part in reversed(range(WIDTH)))
    )
