"""The tables of agents: cells are read on first use, changed in memory, and written at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from potok.errors import StateError
from potok.operators.agents.context import Running
from potok.operators.agents.row_changes import LARGE, Entry, lend, remember, settle
from potok.operators.agents.values import ABSENT, IMMUTABLE, SCALARS, SETTLED, copied
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.records.json_key import load_key
from potok.records.keys import decode_keys, encode_each_key, encode_key
from potok.state.cell import MISFIT, CellDoesNotFit
from potok.state.session import StateSession
from potok.topology.agents import TablePart

__all__ = ["ABSENT", "Change", "Entry", "OpenTable", "OutsideOfKey"]


class OutsideOfKey(StateError):
    """A partitioned agent that reads the row of another key than its record's."""

    def __init__(self, table: str, key: Any, own: Any) -> None:
        super().__init__(
            f'table "{table}" was asked for {key!r} while the record of {own!r} is processed: a spread agent can '
            "access no other row, because other rows are on other shards",
            hint="spread the agent by the key of the table, @app.agent(topic, key=Order.user_id), or leave key= out",
        )


Change = tuple[Entry, bytes | None]


class OpenTable:
    """A table of an agent group in one task. An entry is identified by its key if that is text, or else by its bytes,
    since 1 equals True, unless these are the bytes of a text, as those of an enum may be. So each cell has one entry.
    """

    def __init__(self, part: TablePart, running: Running, session: StateSession, *, spread: bool) -> None:
        self.part, self.name = part, part.name
        self._running, self._session, self.spread = running, session, spread
        self._entries: dict[Any, Entry] = {}
        self._default = None if part.make_default is None else self.frozen(part.make_default())
        self._texts = part.key_type is None or pa.types.is_string(part.key_type)
        """Whether text keys identify entries directly."""
        self.quick = self._entries
        """Entries that can be used as they are; if the agents are partitioned, those of the key of their record."""
        self._asked: list[tuple[int, Any]] | None = None
        self._flat: type | None = getattr(part.freeze, "flat", None)
        """The class whose objects are stored as their fields."""
        self._rows: int | None = None
        """The number of rows, once requested: from then on all touched entries have to be checked."""
        self._touched: dict[Entry, bool] = {}
        """Entries that may have become a row since, or ceased to be one, with whether they are counted as one."""
        self.overlaid = False
        """Whether records in flight apply their changes, and remove them again."""

    @property
    def asked(self) -> list[tuple[int, Any]] | None:
        """Return the keys that the first records read, from which the keys of the next ones can be predicted."""
        return self._asked

    @asked.setter
    def asked(self, asked: list[tuple[int, Any]] | None) -> None:
        self._asked = asked
        self.quick = {} if asked is not None or self._rows is not None else self._entries

    @property
    def tables(self) -> list[str]:
        """The names of the cell tables."""
        return [self.name]

    def get(self, key: Any) -> Any:
        """Return the value of a key, or `ABSENT`, also for a default that was only read. In-place changes are kept."""
        return self.value_of(self.entry(key))

    def get_or_default(self, key: Any) -> Any:
        """Return the value of a key; without one, the default, which is stored if it is changed in place."""
        entry = self.quick.get(key) if type(key) is str else None
        if entry is None or (self.spread and key != self._running.key):
            entry = self.entry(key)
        value = entry.value
        return value if type(value) in IMMUTABLE else self.default_of(entry, key)

    def set(self, key: Any, value: Any) -> None:
        entry = self.quick.get(key) if type(key) is str else None
        if entry is None or (self.spread and key != self._running.key):
            entry = self.entry(key)
        if type(value) not in IMMUTABLE or type(before := entry.value) not in SETTLED:
            self.put(entry, value)
            return
        running = self._running
        if entry.seen != running.turn:
            running.undo.append((entry, before, entry.time, entry.changed))
            entry.seen = running.turn
        entry.value = value
        entry.changed = True
        if running.timestamp > entry.time:
            entry.time = running.timestamp

    def delete(self, key: Any) -> None:
        entry = self.entry(key)
        if not self._is_row(entry):
            raise KeyError(key)
        self.put(entry, ABSENT)

    def value_of(self, entry: Entry) -> Any:
        if type(entry.value) not in IMMUTABLE and entry.seen != self._running.turn:
            self._remember(entry)
        return entry.value if self._is_row(entry) else ABSENT

    def default_of(self, entry: Entry, key: Any) -> Any:
        if type(entry.value) not in IMMUTABLE and entry.seen != self._running.turn:
            self._remember(entry)
        value = entry.value
        if value is not ABSENT:
            return value
        if self.part.make_default is None:
            raise KeyError(key)
        value = self.part.make_default()
        if type(value) not in IMMUTABLE:
            lend(entry, value, self._running)
        return value

    def is_default(self, value: Any) -> bool:
        return bool(self.frozen(value) == self._default)

    def _is_row(self, entry: Entry) -> bool:
        """Whether an entry has a value: not if it is only a default that was read."""
        return entry.value is not ABSENT and (entry.changed is not None or not self.is_default(entry.value))

    def put(self, entry: Entry, value: Any) -> None:
        running, before = self._running, entry.value
        if entry.seen != running.turn:
            self._remember(entry)
        if value is not before:
            # A copy, so that a value which is stored under two keys, or changed later, does not change in the table.
            entry.value = value if type(value) in SETTLED else copied(value)
            if running.held:
                running.let_go()
        entry.changed = True
        if running.timestamp > entry.time:
            entry.time = running.timestamp

    def _remember(self, entry: Entry) -> None:
        remember(entry, self._running)

    def remember_all(self) -> None:
        """Remember all rows that an agent may hold in variables."""
        for entry in self._entries.values():
            if entry.hold is not None and entry.seen != self._running.turn:
                self._remember(entry)

    def entry(self, key: Any) -> Entry:
        if self.spread:
            self.check_own(key)
        if self._asked is not None:
            self._asked.append((self._running.record, key))
        entry = self._entries.get(cache_key := self.cache_key(key))
        if entry is None:
            entry = self._load(cache_key, key)
        if self._rows is not None:
            self._touched.setdefault(entry, self._is_row(entry))
        return entry

    def check_own(self, key: Any) -> None:
        own = self._running.key
        if key != own or (type(key) is not type(own) and self.cache_key(key) != self.cache_key(own)):
            raise OutsideOfKey(self.name, key, own)

    def cache_key(self, key: Any) -> Any:
        return key if type(key) is str and self._texts else self.cache_key_of(self.canonical(key))

    def cache_key_of(self, cell: bytes) -> Any:
        """Return the identity of an entry, by its bytes."""
        if self.part.key_type is None:
            return load_key(cell) if cell.startswith(b'"') else cell
        return cell.decode() if self._texts else cell

    def canonical(self, key: Any) -> bytes:
        encoded = encode_key(key, self.part.key_type)
        if encoded is None:
            raise KeyError("None cannot be the key of a row")
        return encoded

    def _load(self, cache_key: Any, key: Any) -> Entry:
        cell = self.canonical(key)
        return self.enter(cache_key, cell, self._session.read(self.name, [cell])[0])

    def enter(self, cache_key: Any, cell: bytes, data: bytes | None) -> Entry:
        if data is None:
            entry = Entry(self, cell, None, ABSENT, 0)
        else:
            try:
                time, value = decode_row(data)
                entry = Entry(self, cell, data, value if self.part.thaw is None else self.part.thaw(value), time)
            except MISFIT as error:
                raise CellDoesNotFit(self.name, error) from error
        self._entries[cache_key] = entry
        return entry

    def read_ahead(self, keys: Sequence[Any], instants: Any) -> None:
        """Read the rows of text keys that may be requested."""
        cells = self._cells([key for key in set(keys) if type(key) is str and key not in self._entries])
        for (key, cell), data in zip(cells.items(), self._session.read(self.name, [*cells.values()]), strict=True):
            self.enter(key, cell, data)

    def _cells(self, keys: list[str]) -> dict[str, bytes]:
        """Return the cells of keys, without those that cannot have one: reading these raises an error."""
        type_ = self.part.key_type
        if not keys or (type_ is not None and not pa.types.is_string(type_)):
            return {}
        cells = encode_each_key(keys).values.to_pylist() if type_ is None else [_utf8(key) for key in keys]
        return {key: cell for key, cell in zip(keys, cells, strict=True) if cell is not None}

    def rows(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[Any, Any]]:
        """Return all rows, or those with start <= bytes of the key < stop, as the current record sees them, in the
        order of these bytes.
        """
        if self.spread:
            raise OutsideOfKey(self.name, "all its rows", self._running.key)
        stored = self._session.rows_between(self.name, [(start, stop)])[0]
        for cell, data in stored:
            if (cache_key := self.cache_key_of(cell)) not in self._entries:
                self.enter(cache_key, cell, data)
        for entry in sorted(self._entries.values(), key=lambda entry: entry.key):
            if start <= entry.key and (stop is None or entry.key < stop) and self._is_row(entry):
                yield self.key_of(entry.key), self.value_of(entry)

    def count(self) -> int:
        """Return the number of rows as the current record sees them. The first call reads them all; later ones check
        those that were touched.
        """
        if self.spread:
            raise OutsideOfKey(self.name, "all its rows", self._running.key)
        if self._rows is None:
            stored = self._session.rows_between(self.name, [(b"", None)])[0]
            self._rows, self.quick = len(stored), {}
            self._touched = {entry: entry.data is not None for entry in self._entries.values()}
        touched, turn, self._touched = self._touched, self._running.turn, {}
        for entry, counted in touched.items():
            is_row = self._is_row(entry)
            self._rows += is_row - counted
            if entry.changed is None and is_row and entry.seen != turn and entry.hold is not None:
                settle(entry, entry.hold)
            # Changes of this turn may be undone, and a default that was handed out may become a row.
            if self.overlaid or entry.seen == turn or entry.changed is None:
                self._touched[entry] = is_row
        return self._rows

    def key_of(self, cell: bytes) -> Any:
        return decode_keys([cell], self.part.key_type)[0]

    def frozen(self, value: Any) -> Any:
        return value if self.part.freeze is None else self.part.freeze(value)

    def changes(self) -> list[Change]:
        """Return the entries that have changed, with their bytes; raise if a value is not data."""
        found: list[Change] = []
        for entry in self._entries.values():
            value = entry.value
            if value is ABSENT:
                if entry.data is not None:
                    found.append((entry, None))
            elif entry.changed and type(value) in IMMUTABLE:
                found.append((entry, self._dumped(entry)))
            elif type(value) not in IMMUTABLE:
                data = self._changed_in_place(entry)
                if entry.changed or data != entry.data:
                    found.append((entry, data))
        return found

    def _dumped(self, entry: Entry) -> bytes:
        """Serialize a cell. Numbers and text need no check that they are data."""
        value = entry.value
        if type(value) in SCALARS:
            return encode_row(entry.time, value)
        if type(value) is self._flat and SCALARS.issuperset(map(type, (parts := value.__dict__).values())):
            return encode_row(entry.time, parts)
        return encode_row(entry.time, self.frozen(value))

    def _changed_in_place(self, entry: Entry) -> bytes | None:
        """Serialize a row that may have been changed in place."""
        hold = entry.hold
        if hold is not None:
            settle(entry, hold)
        if entry.changed is None:
            return None
        if not entry.changed and (hold is None or self._dumped(entry) == entry.data):
            return entry.data
        if hold is not None and (not entry.changed or hold.before is LARGE):
            # When it was changed is unknown; use the last time it was handed out.
            entry.time = max(entry.time, hold.at)
        return self._dumped(entry)

    def write(self, changes: list[Change]) -> None:
        if changes:
            self._session.write(self.name, [(entry.key, data, entry.data) for entry, data in changes])

    def forget(self) -> None:
        """Release all entries."""
        self._entries = self.quick = {}
        self._touched = {}


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
