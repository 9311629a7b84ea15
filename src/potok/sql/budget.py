"""What the work of one thread may take: time, checked between two pieces of it, and bytes of values that it builds.

Bytes are counted by column, never by row. What is counted is what is alive: the parts of an expression stop counting
when the value made of them is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.errors import QueryError

T = TypeVar("T")
Ints = npt.NDArray[np.int64]

PIECE: Final = 4_096
"""So many small things are done between two looks at the clock."""

MOST_BYTES: Final = 512 << 20
"""Of the values that one computation holds at a time; four times what it was given is added to that."""

LARGEST_VALUE: Final = 16 << 20
"""Bytes of one computed value. A row that would have a larger one is NULL, and its failure noted."""

PER_ITEM: Final = 16
"""What an item of an array or a map is counted as besides its bytes: to compute with it takes indices of its own."""

PER_OBJECT: Final = 48
"""What a value is counted as where rows become Python objects."""

_SMALL: Final = 1 << 16
_SLICED: Final = 1 << 20
"""From this size on it matters that a column may be a part of its buffers."""


class TimeIsOver(QueryError):
    """Whoever asked waits no more."""

    def __init__(self) -> None:
        super().__init__("the query took too long, and was ended", hint="ask for less: by key, or with a LIMIT")


class NobodyWaits(TimeIsOver):
    """The client has left before its answer was there."""


class Stop:
    """Tells work in other threads that nobody waits for it; what was asked once stays asked."""

    __slots__ = ("is_asked",)

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self) -> None:
        self.is_asked = True


class TooLarge(QueryError):
    """Values that would fill the memory."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the statement needs more than {most >> 20} MB for its values",
            hint="ask for fewer rows or shorter values: WHERE, LIMIT, SUBSTRING",
        )


class _Work(threading.local):
    end: float | None = None
    stop: Stop | None = None
    spent: int = 0
    most: int = MOST_BYTES
    given: Callable[[], int] | None = None
    """How many bytes the work began with; None outside of any allowance."""


_work = _Work()


def until(end: float, work: Callable[[], T], stop: Stop | None = None) -> T:
    """Do work of this thread that may not continue after an instant of the monotonic clock, nor once it is asked to
    stop. Inside other such work the earlier end counts."""
    outer, outer_stop = _work.end, _work.stop
    _work.end = end if outer is None else min(end, outer)
    _work.stop = stop or outer_stop
    try:
        check_time()
        return work()
    finally:
        _work.end, _work.stop = outer, outer_stop


def check_time() -> None:
    """Raise if the time of this thread's work is over, or if nobody waits for it any more."""
    work = _work
    if work.end is not None and time.monotonic() > work.end:
        raise TimeIsOver
    if work.stop is not None and work.stop.is_asked:
        raise NobodyWaits


def end_of_work() -> float | None:
    """The instant of the monotonic clock at which the time of this thread's work is over; None if it has no end."""
    return _work.end


def in_time(items: Iterable[T]) -> Iterator[T]:
    """The same items, with a look at the clock now and then."""
    for number, item in enumerate(items):
        if number % PIECE == 0:
            check_time()
        yield item


def held(cells: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The same keys and values, counted as they come: whoever asks keeps them all."""
    size = 0
    for number, cell in enumerate(cells):
        size += len(cell[0]) + len(cell[1]) + PER_OBJECT
        if size > _SMALL or number % PIECE == 0:
            check_time()
            reserve(size)
            size = 0
        yield cell


class allowance:  # noqa: N801 - used as `with allowance():`, once for every column
    """Work that counts its bytes from zero, unless it is a part of work that already does."""

    __slots__ = ("_given", "_most", "_outermost")

    def __init__(self, given: Callable[[], int] = lambda: 0, most: int = MOST_BYTES) -> None:
        self._given, self._most = given, most

    def __enter__(self) -> None:
        self._outermost = _work.given is None
        if self._outermost:
            _work.given, _work.spent, _work.most = self._given, 0, self._most

    def __exit__(self, *_: object) -> None:
        if self._outermost:
            _work.given, _work.spent, _work.most = None, 0, MOST_BYTES


def spent() -> int:
    """How many bytes are counted, after a look at the clock."""
    check_time()
    return _work.spent


def settle(before: int, size: int = 0) -> None:
    """Forget what was spent since `before`, except for a result of this size."""
    total = before + size
    _work.spent = total
    if total > _work.most:
        reserve(0)


def reserve(size: int) -> None:
    """Count bytes before they are used; raises `TooLarge` where they are too many."""
    if _work.given is None:
        if size > MOST_BYTES:
            raise TooLarge(MOST_BYTES)
        return
    _work.spent += int(size)
    if _work.spent > _work.most:
        most = _work.most + 4 * _work.given()
        if _work.spent > most:
            raise TooLarge(most)


def size_of(column: Any) -> int:
    """About how many bytes a column holds; cheap where they are few."""
    buffers: int = column.get_total_buffer_size()
    if buffers < _SMALL:
        return buffers
    nested = pa.types.is_nested(column.type)
    if buffers < _SLICED and not nested:
        return buffers
    return int(column.nbytes) + (PER_ITEM * _items_of(column) if nested else 0)


def _items_of(column: Any) -> int:
    type_ = column.type
    if pa.types.is_struct(type_):
        return sum(_items_of(column.field(index)) for index in range(type_.num_fields))
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        values = column.flatten() if pa.types.is_list(type_) else column.items
        return len(values) + _items_of(values)
    return 0


def row_sizes(column: Any) -> Ints:
    """How many bytes each row of a column holds."""
    type_, rows = column.type, len(column)
    if pa.types.is_struct(type_):
        parts = [row_sizes(column.field(index)) for index in range(type_.num_fields)]
        return np.add.reduce(parts) if parts else np.zeros(rows, np.int64)
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        values = [column.values] if pa.types.is_list(type_) else [column.keys, column.items]
        items = np.add.reduce([row_sizes(part) for part in values]) + PER_ITEM
        sums = np.concatenate([[0], np.cumsum(items)])
        offsets = column.offsets.to_numpy()
        return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]], np.int64)
    if pa.types.is_binary(type_) or pa.types.is_string(type_):
        lengths = pa.compute.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(lengths, np.int64) + 4
    width = 1 if pa.types.is_boolean(type_) or pa.types.is_null(type_) else type_.bit_width // 8
    return np.full(rows, width, np.int64)


def reserve_taken(column: Any, places: Any) -> None:
    """Count what `column.take(places)` will hold; a place may come many times."""
    size, times = size_of(column), len(places)
    if size * times <= LARGEST_VALUE:
        return
    chosen = places.fill_null(0) if isinstance(places, pa.Array) else places
    reserve(int(row_sizes(column)[np.asarray(chosen, np.int64)].sum()) if len(column) else 0)


def reserve_objects(columns: Iterable[Any]) -> None:
    """Count what columns will hold as Python objects."""
    reserve(sum(size_of(column) + PER_OBJECT * len(column) for column in columns))
