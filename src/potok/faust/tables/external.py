"""Tables as code outside of agents sees them: as of the last committed batch, and empty before the first."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from potok.clock import now_ms
from potok.duration import to_ms
from potok.faust.records.values import Thaw
from potok.log.broker import Broker
from potok.operators.agents.values import ABSENT
from potok.snapshots.snapshot import Snapshot, open_frozen
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import NoSuchQuery, NoSuchTable, Tables

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.tables.windowed import WindowedTable


T = TypeVar("T")


class NoRows:
    """The table of an app that has not run with that table yet."""

    def get(self, key: Any, default: Any = None, **_: Any) -> Any:
        return default

    def window(self, key: Any, at: Any = None) -> None:
        return None

    def windows(self, key: Any, start: Any = None, end: Any = None) -> list[Any]:
        return []

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(())

    def all(self) -> dict[Any, Any]:
        return {}

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        return {}

    def prefix(self, text: str) -> dict[Any, Any]:
        return {}

    def __len__(self) -> int:
        return 0


class OneStretch(Tables):
    """A consistent view: everything that a page or task reads without awaiting in between is of one batch."""

    def __init__(self, broker: Broker, query: str) -> None:
        super().__init__(broker, query)
        self._held: dict[asyncio.AbstractEventLoop, Snapshot] = {}

    def read(self, work: Callable[[Snapshot], T], *, frozen: bool = False) -> T:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return super().read(work, frozen=frozen)
        held = self._held.get(loop) or self._hold(loop)
        return super().read(work, frozen=frozen) if held is None else work(held)

    def _hold(self, loop: asyncio.AbstractEventLoop) -> Snapshot | None:
        """Open a snapshot that is closed when the loop switches to another task; None if there is no event loop."""
        found = open_frozen(self._committed)
        if found is None:
            return None
        self._held[loop], opened = found
        loop.call_soon(self._let_go, loop, opened)
        return self._held[loop]

    def _let_go(self, loop: asyncio.AbstractEventLoop, opened: ExitStack) -> None:
        del self._held[loop]
        opened.close()


def view_of(app: App, table: str) -> TableView | NoRows:
    try:
        if app not in _tables:
            _tables[app] = OneStretch(app.log(), app.id)
        return _tables[app][table]
    except (NoSuchQuery, NoSuchTable):
        return NoRows()


_tables: weakref.WeakKeyDictionary[App, OneStretch] = weakref.WeakKeyDictionary()


class SeenWindows:
    """The windows of one key. Attributes and items are those of the value of the selected window."""

    def __init__(self, table: WindowedTable, key: Any) -> None:
        self._table, self._key = table, key

    @property
    def _by_wall(self) -> bool:
        return self._table.part(None).wall

    def value(self, event: Any = None, *, default: Any = ABSENT) -> Any:
        """Return the value of the latest window; of a table relative to processing time, that of the current
        window.
        """
        if event is not None:
            return self._at(round(event.message.timestamp * 1000), default)
        return self._at(now_ms() if self._by_wall else None, default)

    def current(self, event: Any = None) -> Any:
        """Return the value of the latest window, or of the window of an event."""
        return self._at(None if event is None else round(event.message.timestamp * 1000))

    def now(self) -> Any:
        """Return the value of the window of the current time."""
        return self._at(now_ms())

    def delta(self, d: Any, event: Any = None) -> Any:
        """Return the value of the window that long before the selected one."""
        at = None if event is None else round(event.message.timestamp * 1000)
        if at is None:
            latest = None if self._by_wall else self._table.table.view.window(self._key)
            at = now_ms() if latest is None else latest[0].start_ms
        return self._at(at - to_ms(d))

    def items(self) -> list[tuple[Any, Any]]:
        """Return all windows, in order of time, with their values."""
        thaw = Thaw(self._table.table.value_type)
        return [(window, thaw(value)) for window, value in self._table.table.view.windows(self._key)]

    def _at(self, at_ms: int | None, default: Any = ABSENT) -> Any:
        table = self._table.table
        found = table.view.window(self._key, at_ms)
        if found is not None:
            return Thaw(table.value_type)(found[1])
        if default is not ABSENT:
            return default
        if table.default is None:
            raise KeyError(self._key)
        return table.default()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self.value(), name)

    def __getitem__(self, item: Any) -> Any:
        return self.value()[item]

    def __eq__(self, other: object) -> bool:
        return bool(self.value() == (other.value() if isinstance(other, SeenWindows) else other))

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<Windows of {self._key!r}: {self.value(default=None)!r}>"
