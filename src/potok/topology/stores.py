"""The stores of a processor: its state for each key between the records of that key.

A store is declared once, as an attribute of the processor's class; while a record is processed, it holds the
state of the current key. One cell per key holds the whole store, also of a list, a map or a window store: data
that grows without bound belongs under keys of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Any, NoReturn

from potok.duration import Duration, show_ms, to_ms
from potok.errors import StateError, TopologyError


class StoreNotOpen(StateError):
    """A store that was used without a current key."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"a {kind} store holds the state of the current key, and there is none here",
            hint="use it inside process() or on_timer()",
        )


class Store:
    """The base of all kinds of stores."""

    kind = ""

    def __str__(self) -> str:
        return self.kind

    def _closed(self) -> NoReturn:
        raise StoreNotOpen(self.kind)


class ValueStore(Store):
    """One value. In-place changes of the value that `get` returns are stored too."""

    kind = "value"

    def __init__(self, default: Any = None, *, readable: bool = False) -> None:
        self.default, self.readable = default, readable

    def get(self) -> Any:
        """Return the value of this key, or the default."""
        self._closed()

    def set(self, value: Any) -> None:
        """Store a copy of a value; one that equals the default takes no space."""
        self._closed()

    def delete(self) -> None:
        """Reset to the default."""
        self._closed()


class RowStore(ValueStore):
    """One value, whose cell is a row of a table: with the time of the record that changed it last."""

    kind = "row"

    def __init__(self) -> None:
        super().__init__(None)


class ListStore(Store, MutableSequence[Any]):
    """A list."""

    kind = "list"

    def __getitem__(self, index: Any) -> Any:
        self._closed()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._closed()

    def __delitem__(self, index: Any) -> None:
        self._closed()

    def __len__(self) -> int:  # noqa: PLE0303 - a declaration has no length
        self._closed()

    def insert(self, index: int, value: Any) -> None:
        self._closed()


class MapStore(Store, MutableMapping[Any, Any]):
    """A dict."""

    kind = "map"

    def __getitem__(self, item: Any) -> Any:
        self._closed()

    def __setitem__(self, item: Any, value: Any) -> None:
        self._closed()

    def __delitem__(self, item: Any) -> None:
        self._closed()

    def __len__(self) -> int:  # noqa: PLE0303 - a declaration has no length
        self._closed()

    def __iter__(self) -> Iterator[Any]:
        self._closed()


class WindowStore(Store):
    """Values with their timestamps, each until stream time has passed it by `retention`."""

    kind = "window"

    def __init__(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms

    def __str__(self) -> str:
        return f"window of {show_ms(self.retention_ms)}"

    def put(self, at: int, value: Any) -> None:
        """Add a value at a timestamp, in addition to existing ones; a value past its retention is not stored."""
        self._closed()

    def fetch(self, start: int, end: int) -> list[tuple[int, Any]]:
        """Return the values from `start` to `end`, both inclusive, with their timestamps, by time and then by
        insertion.
        """
        self._closed()

    def delete(self, start: int, end: int) -> None:
        """Delete the values from `start` to `end`, both inclusive."""
        self._closed()


def is_readable(store: Store) -> bool:
    return isinstance(store, ValueStore) and store.readable


def value_store(default: Any = None, *, readable: bool = False) -> ValueStore:
    """Declare a store of one value for each key.

    Args:
        default: The value of a key before one is set, or a function without arguments that returns it.
        readable: Also store the values as a table, named after the step and the store: `detector.last`. A key
        whose
            value is the default has no row.
    """
    return ValueStore(default, readable=readable)


def list_store() -> ListStore:
    """Declare a store of a list for each key, initially empty."""
    return ListStore()


def map_store() -> MapStore:
    """Declare a store of a dict for each key, initially empty."""
    return MapStore()


def window_store(retention: Duration) -> WindowStore:
    """Declare a store of values by timestamp for each key.

    Args:
        retention: How far stream time may pass a timestamp before its value is deleted.
    """
    retention_ms = to_ms(retention)
    if retention_ms <= 0:
        raise TopologyError("a window store needs a retention", hint='write window_store("1 hour")')
    return WindowStore(retention_ms)
