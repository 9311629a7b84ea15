"""Tables of an app: written by agents as a dict is, and read by anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from potok.app.record import Record
from potok.app.values import Freeze, Thaw
from potok.errors import Location, StateError, TopologyError
from potok.kernels import agents_running
from potok.kernels.agents_tables import ABSENT, OpenTable
from potok.records.schema import Schema
from potok.topology.agents import TablePart
from potok.views.table_view import TableView

if TYPE_CHECKING:
    import pyarrow as pa

    from potok.app.app import App
    from potok.app.windowed import WindowedTable

NOT_GIVEN: Any = object()


class NotHere(StateError):
    """A table that is not at hand in the task where it was asked for."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f'table "{table}" is not at hand here: {why}',
            hint=f"name it where the agent is defined: @app.agent(..., tables=[{table}])",
        )


class OnlyAgentsWrite(StateError):
    """A table that was changed from outside."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" can be changed by agents alone',
            hint="send a record to a topic whose agent makes the change",
        )


class Table:
    """A dict that lasts. A key that has no row has the default, and what is changed in place in a value is kept.

    >>> counts = app.Table("order_counts", default=int)
    >>> counts["user_001"] += 1

    Inside agents it shows the rows as of the record at hand; everywhere else, as of the last committed batch.
    """

    def __init__(
        self,
        app: App,
        name: str,
        *,
        default: Any = None,
        key_type: Any = None,
        value_type: Any = None,
        on_window_close: Callable[[Any, Any], Any] | None = None,
        at: Location | None = None,
    ) -> None:
        self.app, self.name, self.at = app, name, at
        self.key_type, self.on_window_close = key_type, on_window_close
        self.default: Callable[[], Any] | None = default if default is None or callable(default) else lambda: default
        if value_type is None and self.default is not None and isinstance(made := self.default(), Record):
            value_type = type(made)
        self.value_type = value_type
        self.windowed: WindowedTable | None = None
        self._view: TableView | None = None

    def __repr__(self) -> str:
        return f'<Table "{self.name}">'

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_view": None}

    def part(self, key_type: pa.DataType | None) -> TablePart:
        """What travels to where the agents run; `key_type` is that of their records, if they are spread."""
        declared = None if self.key_type is None else Schema.of(self.key_type)
        given = key_type if declared is None else declared.arrow
        return TablePart(self.name, given, self.default, Thaw(self.value_type), Freeze(self.value_type))

    def open(self) -> OpenTable | None:
        """The table at work, or None outside of agents."""
        running = agents_running.current
        if running is None:
            return None
        found = running.tables.get(self.name)
        if found is None:
            raise NotHere(self.name, running.elsewhere.get(self.name, "the build did not see that this agent uses it"))
        return found

    @property
    def view(self) -> TableView:
        """The rows as of the last committed batch."""
        if self._view is None:
            self._view = self.app.tables_now()[self.name]
        return self._view

    def __getitem__(self, key: Any) -> Any:
        running = agents_running.current
        if running is not None:
            return (running.tables.get(self.name) or self._writable()).get_or_default(key)
        value = self.view.get(key, ABSENT)
        if value is not ABSENT:
            return Thaw(self.value_type)(value)
        if self.default is None:
            raise KeyError(key)
        return self.default()

    def __setitem__(self, key: Any, value: Any) -> None:
        running = agents_running.current
        found = None if running is None else running.tables.get(self.name)
        (found or self._writable()).set(key, value)

    def __delitem__(self, key: Any) -> None:
        self._writable().delete(key)

    def _writable(self) -> OpenTable:
        found = self.open()
        if found is None:
            raise OnlyAgentsWrite(self.name)
        return found

    def __contains__(self, key: Any) -> bool:
        return self.get(key, ABSENT) is not ABSENT

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or what is given; the default of the table is not asked."""
        found = self.open()
        value = self.view.get(key, ABSENT) if found is None else found.get(key)
        if value is ABSENT:
            return default
        return value if found is not None else Thaw(self.value_type)(value)

    def pop(self, key: Any, default: Any = NOT_GIVEN) -> Any:
        found = self._writable()
        value = found.get(key)
        if value is ABSENT:
            if default is NOT_GIVEN:
                raise KeyError(key)
            return default
        found.delete(key)
        return value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All rows, by their keys."""
        found = self.open()
        if found is not None:
            return iter(list(found.rows()))
        thaw = Thaw(self.value_type)
        return ((key, thaw(value)) for key, value in self.view.items())

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __len__(self) -> int:
        return sum(1 for _ in self.items())

    def as_dict(self) -> dict[Any, Any]:
        return dict(self.items())

    def tumbling(self, size: Any, expires: Any = None, key_index: bool = False) -> WindowedTable:
        """The same table with a row for each key and window of `size`.

        Args:
            size: How long a window is: a timedelta, or seconds.
            expires: How long after its end a window lives, by the clock of the stream; for ever if left out.
            key_index: Not needed: `items()` finds all windows anyway.
        """
        return self._in_windows(size, size, expires)

    def hopping(self, size: Any, step: Any, expires: Any = None, key_index: bool = False) -> WindowedTable:
        """The same with windows that begin every `step`, so that a record belongs to several."""
        return self._in_windows(size, step, expires)

    def _in_windows(self, size: Any, step: Any, expires: Any) -> WindowedTable:
        from potok.app.windowed import WindowedTable

        if self.windowed is not None:
            raise TopologyError(f'table "{self.name}" has windows already', hint="give it windows once", at=self.at)
        self.windowed = WindowedTable(self, size, step, expires)
        return self.windowed


class SetTable(Table):
    """A set for each key: `table[key].add(item)`."""

    def __init__(self, app: App, name: str, **options: Any) -> None:
        options.pop("default", None)
        super().__init__(app, name, default=set, **options)
