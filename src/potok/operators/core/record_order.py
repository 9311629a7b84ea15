"""Where records stand among those of their batch: by position, unless something put them in another order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

WIDTH = 4
"""A place is a time, a lane, an offset and a number; the time is there where records were put in order of event time.

What a record is made into has its place; what a timer makes has the place of the record that it comes before, and a
lower number, or the last place of all. So the places of records do not depend on what else is in their batch, and those
of different steps can be compared. Records with one place stay in the order in which they came.
"""

UNTIMED = np.iinfo(np.int64).min
LAST = np.iinfo(np.int64).max

_BEFORE = 1 << 62
"""Further than any stream time: the number of what comes before a record is its stream time less this."""


def by_position(input_partitions: Ints, offsets: Ints) -> Ints:
    return np.stack(
        [np.full(len(input_partitions), UNTIMED), input_partitions, offsets, np.zeros(len(input_partitions), np.int64)],
        axis=1,
    )


def by_time(times: Ints, input_partitions: Ints, offsets: Ints) -> Ints:
    return np.stack([times, input_partitions, offsets, np.zeros(len(times), np.int64)], axis=1)


def of_turns(places: Ints, turns: Ints, stream_times: Ints, timed: npt.NDArray[np.bool_]) -> Ints:
    """The places of what was made at the turns of records: of the record or, if `timed`, by a timer before it; or, past
    the last turn, behind all records."""
    inside = turns < len(places)
    made = np.full((len(turns), WIDTH), LAST)
    made[inside] = places[turns[inside]]
    made[~inside, 3] = stream_times[~inside]
    # The parts of one record stand together: what a timer makes between them is among them in the order it came.
    first = np.ones(len(places), np.bool_)
    first[1:] = np.any(places[1:, :3] != places[:-1, :3], axis=1)
    before = np.flatnonzero(inside & timed)
    before = before[first[turns[before]]]
    made[before, 3] = stream_times[before] - _BEFORE
    return made


def sorted_rows(places: Ints | None, input_partitions: Ints, offsets: Ints) -> npt.NDArray[np.intp]:
    """The numbers of the records in their order; without places, that of their positions."""
    return np.lexsort(
        (offsets, input_partitions) if places is None else tuple(places[:, part] for part in reversed(range(WIDTH)))
    )
