"""Stores: the state of one key after the other, read from its cell on first use."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from potok.errors import StateError
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.core.call import plain
from potok.operators.processors.key_timers import instant_ms
from potok.records.value import Value
from potok.state.cell import reading_cells
from potok.state.codec import dump_state, load_state
from potok.topology.processor import ProcessorContext
from potok.topology.stores import ListStore, MapStore, RowStore, Store, ValueStore, WindowStore

UNREAD: Any = object()
"""The state of a key that has not been read."""

_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))
_MAPPINGS: frozenset[type] = frozenset((dict, Value))


def frozen(value: Any) -> Any:
    """Return a copy that no later change of `value` reaches; immutable values as they are."""
    return _copied(value, _copy)


def stored_copy(value: Any) -> Any:
    """The same for a store; a value that is not data is rejected here, in the call that would store it."""
    return _copied(value, _stored)


def _copied(value: Any, deeply: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in _MAPPINGS and _SCALARS.issuperset(map(type, value.values())):
        return dict(value)
    return deeply(plain(value))


def _stored(value: Any) -> Any:
    return load_state(dump_state(value))


def _copy(value: Any) -> Any:
    try:
        return _stored(value)
    except StateError:
        return copy.deepcopy(value)


class OpenStore(Protocol):
    """What the operator does with any store: pass it the cell of a key, and take back the result."""

    def open(self, data: bytes | None) -> None: ...

    def close(self) -> bytes | None:
        """Return the cell; None for a state that equals the initial one."""


class _Cell:
    """The state of the current key; subclasses define what an empty one is, and its shape."""

    table = ""
    _data: bytes | None
    _state: Any

    def open(self, data: bytes | None) -> None:
        self._data, self._state = data, UNREAD

    def close(self) -> bytes | None:
        if self._state is UNREAD:
            return self._data
        return dump_state(self._state) if self._state else None

    def _read(self) -> Any:
        if self._state is UNREAD:
            if self._data is None:
                self._state = self._begin()
            else:
                with reading_cells(self.table):
                    self._state = self._checked(load_state(self._data))
        return self._state

    def _checked(self, state: Any) -> Any:
        """Return the state that was read, if this kind of store writes such values."""
        if type(state) is not type(self._begin()):
            raise TypeError(f"a {type(state).__name__} is not a value of this kind of store")
        return state

    def _begin(self) -> Any:
        raise NotImplementedError


class OpenValue(_Cell, ValueStore):
    def __init__(self, declared: ValueStore) -> None:
        super().__init__(declared.default)
        self._at_first = dump_state(plain(self._begin()))

    def _begin(self) -> Any:
        return self.default() if callable(self.default) else copy.deepcopy(self.default)

    def _checked(self, state: Any) -> Any:
        return state

    def get(self) -> Any:
        return self._read()

    def set(self, value: Any) -> None:
        self._state = stored_copy(value)

    def delete(self) -> None:
        self._state = self._begin()

    def close(self) -> bytes | None:
        if self._state is UNREAD:
            return self._data
        data = dump_state(plain(self._state))
        return None if data == self._at_first else data


class OpenRow(_Cell, RowStore):
    """A row is stored with the time at which it was set. In-place changes are not stored: rows are replaced."""

    def __init__(self, ctx: ProcessorContext) -> None:
        super().__init__()
        self._ctx, self._time, self._changed = ctx, 0, False

    def open(self, data: bytes | None) -> None:
        super().open(data)
        self._changed = False

    def _read(self) -> Any:
        if self._state is UNREAD:
            self._state = None
            if self._data is not None:
                with reading_cells(self.table):
                    self._time, self._state = decode_row(self._data)
        return self._state

    def get(self) -> Any:
        return self._read()

    def set(self, value: Any) -> None:
        self._state, self._time, self._changed = value, self._ctx.timestamp, True

    def delete(self) -> None:
        self._state, self._changed = None, True

    def close(self) -> bytes | None:
        if not self._changed:
            return self._data
        return None if self._state is None else encode_row(self._time, plain(self._state))


class OpenList(_Cell, ListStore):
    def _begin(self) -> Any:
        return []

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._read()[index] = stored_copy(value)

    def __delitem__(self, index: Any) -> None:
        del self._read()[index]

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def insert(self, index: int, value: Any) -> None:
        self._read().insert(index, stored_copy(value))

    def append(self, value: Any) -> None:
        self._read().append(stored_copy(value))

    def clear(self) -> None:
        self._state = []

    def __repr__(self) -> str:
        return repr(self._read())


class OpenMap(_Cell, MapStore):
    def _begin(self) -> Any:
        return {}

    def __getitem__(self, item: Any) -> Any:
        return self._read()[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        self._read()[item] = stored_copy(value)

    def __delitem__(self, item: Any) -> None:
        del self._read()[item]

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __contains__(self, item: object) -> bool:
        return item in self._read()

    def clear(self) -> None:
        self._state = {}

    def __repr__(self) -> str:
        return repr(self._read())


class OpenWindow(_Cell, WindowStore):
    """Instants and values as two lists, by time.

    A value is hidden as soon as the current stream time has passed it by the retention, so that it does not matter
    when it is removed; it is removed once the watermark shows that no earlier lookup is possible.
    """

    def __init__(self, declared: WindowStore, ctx: ProcessorContext, watermark_ms: int) -> None:
        super().__init__(declared.retention_ms)
        self._ctx, self._watermark_ms = ctx, watermark_ms

    def _begin(self) -> Any:
        return [], []

    def _checked(self, state: Any) -> Any:
        times, values = super()._checked(state)
        if len(times) != len(values) or not all(type(time) is int for time in times):
            raise TypeError("times and values do not match")
        return times, values

    def put(self, at: int, value: Any) -> None:
        times, values = self._read()
        at = instant_ms(at)
        if at + self.retention_ms > self._ctx.stream_time:
            index = bisect_right(times, at)
            times.insert(index, at)
            values.insert(index, stored_copy(value))

    def fetch(self, start: int, end: int) -> list[tuple[int, Any]]:
        times, values = self._read()
        oldest = self._ctx.stream_time - self.retention_ms + 1
        first, last = bisect_left(times, max(start, oldest)), bisect_right(times, end)
        return list(zip(times[first:last], values[first:last], strict=True))

    def delete(self, start: int, end: int) -> None:
        times, values = self._read()
        part = slice(bisect_left(times, start), bisect_right(times, end))
        del times[part], values[part]

    @property
    def is_read(self) -> bool:
        return self._state is not UNREAD

    def prune(self) -> int | None:
        """Remove what no lookup after this batch can reach; return the watermark at which everything has expired."""
        times, values = self._read()
        over = bisect_right(times, self._watermark_ms - self.retention_ms)
        del times[:over], values[:over]
        return times[-1] + self.retention_ms if times else None

    def close(self) -> bytes | None:
        if self._state is UNREAD:
            return self._data
        return dump_state(self._state) if self._state[0] else None


def open_store(declared: Store, ctx: ProcessorContext, watermark_ms: int, table: str = "") -> Any:
    """Open a store from its declaration."""
    store = _opened(declared, ctx, watermark_ms)
    store.table = table
    return store


def _opened(declared: Store, ctx: ProcessorContext, watermark_ms: int) -> Any:
    match declared:
        case RowStore():
            return OpenRow(ctx)
        case ValueStore():
            return OpenValue(declared)
        case ListStore():
            return OpenList()
        case MapStore():
            return OpenMap()
        case WindowStore():
            return OpenWindow(declared, ctx, watermark_ms)
    raise TypeError(f"no store of the kind {declared.kind}")
