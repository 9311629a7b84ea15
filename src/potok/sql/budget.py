"""Limits for the work of one thread: time, which is checked at intervals, and bytes of the values that it builds.

Bytes are counted per column, never per row. Only live values count: the parts of an expression are released when its
value has been computed.
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
"""How many items are processed between two checks of the time."""

MOST_BYTES: Final = 512 << 20
"""Limit for the live values of one computation, to which four times the size of its input is added."""

LARGEST_VALUE: Final = 16 << 20
"""Maximum size of one computed value. A larger one becomes NULL, and the failure is reported."""

PER_ITEM: Final = 16
"""Overhead of an element of an array or a map: computations need indices for it."""

PER_OBJECT: Final = 48
"""Overhead of a value as a Python object."""

_SMALL: Final = 1 << 16
_SLICED: Final = 1 << 20
"""From this size on, account for columns that are slices of larger buffers."""


class TimeIsOver(QueryError):
    """A computation that exceeded its time limit."""

    def __init__(self) -> None:
        super().__init__("the query took too long, and was stopped", hint="query by key, or add a LIMIT")


class NobodyWaits(TimeIsOver):
    """The client disconnected before its answer was ready."""


class Stop:
    """Signals work in other threads that its client is gone. A request to stop cannot be withdrawn."""

    __slots__ = ("is_asked",)

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self) -> None:
        self.is_asked = True


class TooLarge(QueryError):
    """A computation that exceeded its memory limit."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the statement needs more than {most >> 20} MB for its values",
            hint="select fewer rows or shorter values, with WHERE, LIMIT or SUBSTRING",
        )


class _Work(threading.local):
    end: float | None = None
    stop: Stop | None = None
    spent: int = 0
    most: int = MOST_BYTES
    given: Callable[[], int] | None = None
    """Returns the size of the input; None outside of an allowance."""


_work = _Work()


def until(end: float, work: Callable[[], T], stop: Stop | None = None) -> T:
    """Run the work of this thread with a deadline on the monotonic clock and a stop signal. The earlier of nested
    deadlines counts."""
    outer, outer_stop = _work.end, _work.stop
    _work.end = end if outer is None else min(end, outer)
    _work.stop = stop or outer_stop
    try:
        check_time()
        return work()
    finally:
        _work.end, _work.stop = outer, outer_stop


def check_time() -> None:
    """Raise if the deadline of this thread has passed or its client is gone."""
    work = _work
    if work.end is not None and time.monotonic() > work.end:
        raise TimeIsOver
    if work.stop is not None and work.stop.is_asked:
        raise NobodyWaits


def end_of_work() -> float | None:
    """Return the deadline of this thread by the monotonic clock, if it has one."""
    return _work.end


def in_time(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, checking the deadline at intervals."""
    for number, item in enumerate(items):
        if number % PIECE == 0:
            check_time()
        yield item


def held(cells: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values, reserving memory for all of them, because the caller keeps them."""
    size = 0
    for number, cell in enumerate(cells):
        size += len(cell[0]) + len(cell[1]) + PER_OBJECT
        if size > _SMALL or number % PIECE == 0:
            check_time()
            reserve(size)
            size = 0
        yield cell


class allowance:  # noqa: N801 - used as `with allowance():`, once for every column
    """Count bytes from zero, unless inside another allowance."""

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
    """Return how many bytes are counted, after checking the deadline."""
    check_time()
    return _work.spent


def settle(before: int, size: int = 0) -> None:
    """Release what was counted since `before`, except for a result of this size."""
    total = before + size
    _work.spent = total
    if total > _work.most:
        reserve(0)


def reserve(size: int) -> None:
    """Count bytes before they are allocated; raise `TooLarge` over the limit."""
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
    """Estimate the bytes of a column; cheap for small ones."""
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
    """Return the bytes of each row of a column."""
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


def reserve_taken(column: Any, indexes: Any) -> None:
    """Reserve memory for `column.take(places)`, in which a row may occur many times."""
    size, times = size_of(column), len(indexes)
    if size * times <= LARGEST_VALUE:
        return
    chosen = indexes.fill_null(0) if isinstance(indexes, pa.Array) else indexes
    reserve(int(row_sizes(column)[np.asarray(chosen, np.int64)].sum()) if len(column) else 0)


def reserve_objects(columns: Iterable[Any]) -> None:
    """Reserve memory for columns as Python objects."""
    reserve(sum(size_of(column) + PER_OBJECT * len(column) for column in columns))
