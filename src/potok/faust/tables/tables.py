"""Tables of an app: dicts that agents write and everyone can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from potok.errors import Location, TopologyError
from potok.faust.records.record import Record
from potok.faust.records.values import Freeze, Thaw
from potok.faust.tables.errors import NOT_GIVEN, NotHere, OnlyAgentsWrite
from potok.faust.tables.external import NoRows, view_of
from potok.faust.tables.windowed import WindowedTable
from potok.faust.unsupported import REFUSED, without
from potok.operators.agents import context
from potok.operators.agents.tables import OpenTable
from potok.operators.agents.values import ABSENT, IMMUTABLE
from potok.records.schemas.declared_schema import declared_schema
from potok.snapshots.rows.key_ranges import span_of_prefix, span_of_range
from potok.snapshots.table_view import TableView
from potok.topology.agents import TablePart

if TYPE_CHECKING:
    import pyarrow as pa

    from potok.dsl.stream import Stream
    from potok.dsl.table import Table as DslTable
    from potok.faust.app import App
    from potok.faust.tables.windowed import Window


@without(REFUSED["Table"])
class Table:
    """A durable dict. A key without a row has the default, and in-place changes of a value are stored.

    >>> counts = app.Table("order_counts", default=int)
    >>> counts["user_001"] += 1

    Inside agents it shows the rows as of the current record; everywhere else, as of the last committed batch.
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
        # A mutable value is a separate object for each key.
        self.default: Callable[[], Any] | None = (
            default if default is None or callable(default) else partial(deepcopy, default)
        )
        if value_type is None and self.default is not None and isinstance(made := self.default(), Record):
            value_type = type(made)
        self.value_type = value_type
        self.windowed: WindowedTable | None = None
        self.help = ""
        self.changelog = ""
        """The topic that its changes are written to, if any."""
        self._view: TableView | None = None

    def __repr__(self) -> str:
        return f'<Table "{self.name}">'

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_view": None}

    def part(self, key_type: pa.DataType | None) -> TablePart:
        """Return what is sent to the workers; `key_type` is that of the agents' records, if they are spread."""
        declared = None if self.key_type is None else declared_schema(self.key_type)
        given = key_type if declared is None else declared.arrow
        return TablePart(self.name, given, self.default, Thaw(self.value_type), Freeze(self.value_type))

    def open(self) -> OpenTable | None:
        """Return the open table, or None outside of agents."""
        running = context.current()
        if running is None:
            return None
        found = running.tables.get(self.name)
        if found is None:
            raise NotHere(
                self.name,
                running.elsewhere.get(self.name, "the analysis of the program did not find that this agent uses it"),
            )
        return found

    @property
    def view(self) -> TableView | NoRows:
        """Return the rows as of the last committed batch."""
        if self._view is None:
            found = view_of(self.app, self.name)
            if isinstance(found, NoRows):
                return found
            self._view = found
        return self._view

    def __getitem__(self, key: Any) -> Any:
        running = context.current()
        if running is not None:
            found = running.tables.get(self.name)
            if type(found) is OpenTable and type(key) is str:
                entry = found.quick.get(key)
                if entry is None or (found.spread and key != running.key):
                    return found.get_or_default(key)
                if type(value := entry.value) in IMMUTABLE:
                    return value
            return (self._writable() if found is None else found).get_or_default(key)
        value = self.view.get(key, ABSENT)
        if value is not ABSENT:
            return Thaw(self.value_type)(value)
        if self.default is None:
            raise KeyError(key)
        return self.default()

    def __setitem__(self, key: Any, value: Any) -> None:
        running = context.current()
        found = None if running is None else running.tables.get(self.name)
        (self._writable() if found is None else found).set(key, value)

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
        """Return the value of a key, or `default`; the table's own default does not apply."""
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
        """Return all rows, by key."""
        found = self.open()
        if found is not None:
            return iter(list(found.rows()))
        thaw = Thaw(self.value_type)
        return ((key, thaw(value)) for key, value in self.view.items())

    def prefix(self, text: str) -> dict[Any, Any]:
        """Return the rows whose keys are text with a prefix. With `key_type=str`, only these rows are read."""
        found = self.open()
        if found is None:
            return self._thawed(self.view.prefix(text))
        rows = found.rows(*span_of_prefix(text, found.part.key_type))
        return {key: value for key, value in rows if isinstance(key, str) and key.startswith(text)}

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        """Return the rows with low <= key < high. With a `key_type=`, only these rows are read."""
        found = self.open()
        if found is None:
            return self._thawed(self.view.range(low, high))
        rows = found.rows(*span_of_range(low, high, found.part.key_type))
        return {key: value for key, value in rows if (low is None or low <= key) and (high is None or key < high)}

    def _thawed(self, rows: dict[Any, Any]) -> dict[Any, Any]:
        thaw = Thaw(self.value_type)
        return {key: thaw(value) for key, value in rows.items()}

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __len__(self) -> int:
        found = self.open()
        return sum(1 for _ in self.items()) if found is None else found.count()

    def as_dict(self) -> dict[Any, Any]:
        return dict(self.items())

    def clear(self) -> None:
        for key in list(self.keys()):
            del self[key]

    def popitem(self) -> tuple[Any, Any]:
        """Remove and return the last row."""
        rows = list(self.items())
        if not rows:
            raise KeyError(f'table "{self.name}" is empty')
        del self[rows[-1][0]]
        return rows[-1]

    def as_ansitable(
        self, *, title: str = "", key: str = "Key", value: str = "Value", sort: bool = False, **_: Any
    ) -> str:
        """Return the rows as a text table, with an optional title."""
        rows = [(str(key), str(value)), *((str(each), str(item)) for each, item in self._sorted_items(sort))]
        wide = max(len(first) for first, _ in rows)
        lines = [f"{first.ljust(wide)}  {second}".rstrip() for first, second in rows]
        return "\n".join([title.format(table=self), *lines] if title else lines)

    def _sorted_items(self, sort: bool) -> list[tuple[Any, Any]]:
        rows = list(self.items())
        return sorted(rows, key=lambda row: str(row[0])) if sort else rows

    def info(self) -> dict[str, Any]:
        return {"app": self.app, "name": self.name, "default": self.default}

    @property
    def changelog_topic(self) -> str | None:
        """Return the topic of its changes, if there is one."""
        return self.changelog or None

    @property
    def is_global(self) -> bool:
        """Return True: every key can be read everywhere."""
        return True

    def to_stream(self, *, key: Any = NOT_GIVEN, changes: bool = False, name: str = "") -> Stream[Any, Any]:
        """Return the changes of the table as a stream of the DSL: the new value, or null for a deleted row.

        Args:
            key: The type of the keys; by default `key_type` of the table, or text.
            changes: The values are `{"before": ..., "after": ...}` instead.
            name: Names the step.
        """
        stream = self.app.handle_of(self).to_stream(changes=changes, name=name)
        if self.windowed is not None or self.key_type is not None:
            return stream
        return stream.select_key(_same_key, key=str if key is NOT_GIVEN else key)

    def to_table(self, *, key: Any = NOT_GIVEN, name: str = "") -> DslTable[Any, Any]:
        """Return the table as one of the DSL, to be joined with streams and tables there; its rows are on the
        shards of their keys. `name` is that of this copy.
        """
        return self.to_stream(key=key).to_table(name=name or f"{self.name}-rows")

    def using_window(self, window: Window, **_: Any) -> WindowedTable:
        return window.of(self)

    def tumbling(self, size: Any, expires: Any = None, key_index: bool = False) -> WindowedTable:
        """Return the same table with a row for each key and window of `size`.

        Args:
            size: The length of a window: a timedelta, or seconds.
            expires: How long after its end a window is retained, by stream time; by default forever.
            key_index: Has no effect: `items()` always finds all windows.
        """
        return self._in_windows(size, size, expires)

    def hopping(self, size: Any, step: Any, expires: Any = None, key_index: bool = False) -> WindowedTable:
        """Return the same table with windows that start every `step`, so that a record belongs to several."""
        return self._in_windows(size, step, expires)

    def _in_windows(self, size: Any, step: Any, expires: Any) -> WindowedTable:
        if self.windowed is not None:
            raise TopologyError(f'table "{self.name}" already has windows', hint="define its windows once", at=self.at)
        self.windowed = WindowedTable(self, size, step, expires)
        return self.windowed


def _same_key(key: Any, value: Any) -> Any:  # noqa: ARG001
    return key


class SetTable(Table):
    """A set for each key: `table[key].add(item)`. `value_type` is that of the items."""

    def __init__(self, app: App, name: str, *, value_type: Any = None, **options: Any) -> None:
        options.pop("default", None)
        items = None if value_type is None else GenericAlias(set, value_type)
        super().__init__(app, name, default=set, value_type=items, **options)


GlobalTable = Table
"""Every table can be read under any key, by agents that are not spread."""

SetGlobalTable = SetTable
