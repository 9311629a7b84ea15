"""Tables with windows: `table[key]` depends on the time of the current record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from potok.clock import epoch_ms
from potok.duration import to_ms
from potok.errors import TopologyError
from potok.faust.records.fields import FieldDescriptor
from potok.faust.records.values import Thaw
from potok.faust.tables.errors import NOT_GIVEN, NotHere, OnlyAgentsWrite
from potok.faust.tables.external import SeenWindows
from potok.faust.tables.window_set import SECOND_MS, HeldSet, WindowSet, can_be_held, holdable
from potok.faust.unsupported import REFUSED, without
from potok.operators.agents import context
from potok.operators.agents.values import ABSENT, keep
from potok.operators.agents.windows import OpenWindows, WindowEntry
from potok.topology.agents import TablePart
from potok.topology.nodes import FixedWindow, Hopping, Tumbling

if TYPE_CHECKING:
    import pyarrow as pa

    from potok.dsl.stream import Stream
    from potok.faust.tables.tables import Table


@without(REFUSED["WindowedTable"])
class WindowedTable:
    """A table with a value for each key and window.

    >>> hourly = app.Table("hourly", default=int).tumbling(timedelta(hours=1), expires=timedelta(days=1))
    >>> hourly["user_001"] += 1
    >>> hourly["user_001"].value()

    The windows are those of the record's time; `relative_to_now` and `relative_to_field` select others.
    """

    def __init__(self, table: Table, size: Any, step: Any, expires: Any) -> None:
        self.table, self.app, self.name = table, table.app, table.name
        self._size_ms, self._step_ms = to_ms(size), to_ms(step)
        self._expires_ms = None if expires is None else to_ms(expires)
        self._wall = False
        self._instant: Callable[[Any], int] | None = None
        if not 0 < self._step_ms <= self._size_ms:
            raise TopologyError(
                f'the windows of table "{self.name}" cannot be so long', hint="0 < step <= size", at=table.at
            )
        if table.on_window_close is not None and self._expires_ms is None:
            raise TopologyError(
                f'the windows of table "{self.name}" never close',
                hint="pass the retention: expires=timedelta(...)",
                at=table.at,
            )

    def __repr__(self) -> str:
        return f'<WindowedTable "{self.name}">'

    @property
    def window(self) -> FixedWindow:
        if self._step_ms == self._size_ms:
            return Tumbling(self._size_ms)
        return Hopping(self._size_ms, self._step_ms)

    def part(self, key_type: pa.DataType | None) -> TablePart:
        return replace(
            self.table.part(key_type),
            window=self.window,
            expires_ms=self._expires_ms,
            wall=self._wall,
            instant=self._instant,
            on_close=self.table.on_window_close,
        )

    def relative_to_stream(self) -> WindowedTable:
        """Select the windows of the time of the current record, the default."""
        self._wall, self._instant = False, None
        return self

    def relative_to_now(self) -> WindowedTable:
        """Select the windows of the processing time."""
        self._wall, self._instant = True, None
        return self

    def relative_to_field(self, field: FieldDescriptor) -> WindowedTable:
        """Select the windows of a field of the current record: a datetime, or seconds since 1970."""
        self._wall, self._instant = False, lambda value: _instant_ms(field.getattr(value))
        return self

    def open(self) -> OpenWindows:
        running = context.current()
        found = None if running is None else running.tables.get(self.name)
        if isinstance(found, OpenWindows):
            return found
        self.table.open()
        raise NotHere(self.name, "windows of the current record are for agents")

    def __getitem__(self, key: Any) -> Any:
        running = context.current()
        found = None if running is None else running.tables.get(self.name)
        if running is None:
            return SeenWindows(self, key)
        if type(found) is not OpenWindows:
            return WindowSet(self, key)
        entry = found.held(key)
        if entry is None or not (holdable.get(type(entry.value)) or can_be_held(entry.value)):
            return WindowSet(self, key)
        made = _new(HeldSet)
        made._table, made._key, made._entry = self, key, entry
        made.__dict__ = entry.value.__dict__
        running.held.append(made._let_go)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        held = value._entry if type(value) is HeldSet and value._table is self and value._key == key else None
        if self._store(key, value, held):
            return
        found = self.table.open()
        if found is None:
            raise OnlyAgentsWrite(self.name)
        assert isinstance(found, OpenWindows)
        if isinstance(value, WindowSet):
            if value.table is self and value.key == key and (value.applied or not found.tumbling):
                # The change has already been applied to each window; a change in only one of them is detected.
                return
            value = value._whole()
        self._put(found, key, value)

    def _store(self, key: Any, value: Any, held: WindowEntry | None) -> bool:
        """Store an in-place change, if nothing else has to be done."""
        running = context.current()
        found = None if running is None else running.tables.get(self.name)
        if type(found) is not OpenWindows or not found.tumbling:
            return False
        if held is None:
            held = found.held(key)
            if held is None or held.value is not value:
                return False
        found.keep(held)
        return True

    def __delitem__(self, key: Any) -> None:
        self._put(self.open(), key, ABSENT)

    def _put(self, found: OpenWindows, key: Any, value: Any) -> None:
        handed_out = found.handed_out(key)
        for start in found.starts(found.instant_ms()):
            found.put(found.window(key, start, change=True), value)
        keep(handed_out)

    def __contains__(self, key: Any) -> bool:
        return self.get(key, ABSENT) is not ABSENT

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of the current window; outside of agents, that of the latest window."""
        if self.table.open() is None:
            value = self.table.view.get(key, ABSENT)
            return default if value is ABSENT else Thaw(self.table.value_type)(value)
        value = WindowSet(self, key).value(default=ABSENT)
        return default if value is ABSENT else value

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return all windows: inside agents, pairs of (key, (start, end)) and value; elsewhere as in views."""
        return self.table.items()

    def keys(self) -> Iterator[Any]:
        """Return the keys that have windows, each once."""
        return iter(dict.fromkeys(window[0] for window, _ in self.items()))

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def values(self) -> Iterator[Any]:
        """Return the values of all windows."""
        return (value for _, value in self.items())

    def pop(self, key: Any, default: Any = NOT_GIVEN) -> Any:
        """Remove the current windows, and return the value of the latest."""
        value = self.get(key, ABSENT)
        if value is ABSENT and default is NOT_GIVEN:
            raise KeyError(key)
        if value is not ABSENT:
            del self[key]
        return default if value is ABSENT else value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def relative_to(self, given: Any) -> WindowedTable:
        """Select the windows of a field, of a timestamp in seconds, or of a function of the current record."""
        if isinstance(given, FieldDescriptor):
            return self.relative_to_field(given)
        self._wall, self._instant = False, lambda _: _instant_ms(given() if callable(given) else given)
        return self

    def to_stream(self, **options: Any) -> Stream[Any, Any]:
        """Return the changes as a stream of the DSL, under key, start and end."""
        return self.table.to_stream(**options)


_new: Any = object.__new__


def _instant_ms(value: Any) -> int:
    if isinstance(value, datetime):
        return epoch_ms(value)
    if isinstance(value, timedelta):
        raise TypeError("a timedelta is not an instant")
    return round(float(value) * SECOND_MS)


@dataclass(frozen=True, slots=True)
class Window:
    """The length of a window, and its retention after its end; a timedelta, or seconds."""

    size: Any
    expires: Any = None

    def of(self, table: Table) -> WindowedTable:
        """Return a table with these windows."""
        return table.tumbling(self.size, self.expires)


@dataclass(frozen=True, slots=True)
class TumblingWindow(Window):
    """Windows that neither overlap nor leave gaps."""


@dataclass(frozen=True, slots=True, init=False)
class HoppingWindow(Window):
    """Windows that start every `step`, so that a record belongs to several."""

    step: Any = None

    def __init__(self, size: Any, step: Any, expires: Any = None) -> None:
        for name, value in (("size", size), ("step", step), ("expires", expires)):
            object.__setattr__(self, name, value)

    def of(self, table: Table) -> WindowedTable:
        return table.hopping(self.size, self.step, self.expires)
