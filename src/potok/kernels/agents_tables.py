"""The tables of agents at work: cells are read when they are asked for, changed in memory, and written at the end."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from potok.errors import StateError
from potok.kernels.agents_running import NO_RECORD, Running
from potok.kernels.agents_values import ABSENT, IMMUTABLE, SCALARS, SETTLED, copied, models
from potok.records.keys import decode_keys, encode_each_key, encode_key
from potok.state.codec import dump_state, load_own_state
from potok.state.session import StateSession
from potok.topology.agents import TablePart

__all__ = ["ABSENT", "Change", "Entry", "OpenTable", "OutsideOfKey"]


class OutsideOfKey(StateError):
    """A spread agent that asks for the row of another key than its record's."""

    def __init__(self, table: str, key: Any, own: Any) -> None:
        super().__init__(
            f'table "{table}" was asked for {key!r} while the record of {own!r} is at hand: a spread agent may touch '
            "no other row, because others are on other shards",
            hint="spread the agent by the key of the table, @app.agent(topic, key=Order.user_id), or leave key= out",
        )


class Entry:
    """One cell: its key, its bytes as they were before the batch, its value, and the time of the last change."""

    __slots__ = ("changed", "data", "key", "seen", "table", "time", "value")

    def __init__(self, table: OpenTable, key: bytes, data: bytes | None, value: Any, time: int) -> None:
        self.table, self.key, self.data, self.value, self.time = table, key, data, value, time
        self.changed = False
        self.seen = NO_RECORD - 1


Change = tuple[Entry, bytes | None]

_new: Any = object.__new__


class OpenTable:
    """A table of a crew in one task. A place is a key; one that is no text stands as its bytes, since 1 equals True."""

    def __init__(self, part: TablePart, running: Running, session: StateSession, *, spread: bool) -> None:
        self.part, self.name = part, part.name
        self._running, self._session, self.spread = running, session, spread
        self._entries: dict[Any, Entry] = {}
        self._default = None if part.make_default is None else self.frozen(part.make_default())
        self.quick = self._entries
        """Entries that need nothing but to be found; if the agents are spread, of the key of their record."""
        self._asked: list[tuple[int, Any]] | None = None
        self._flat: type | None = getattr(part.freeze, "flat", None)
        """The class whose objects are kept as their fields."""

    @property
    def asked(self) -> list[tuple[int, Any]] | None:
        """For a while, which keys the records ask for: the next records may ask for the same of theirs."""
        return self._asked

    @asked.setter
    def asked(self, asked: list[tuple[int, Any]] | None) -> None:
        self._asked = asked
        self.quick = {} if asked is not None else self._entries

    @property
    def tables(self) -> list[str]:
        """The names under which there are cells."""
        return [self.name]

    def get(self, key: Any) -> Any:
        """The value of a key, or `ABSENT`. What is changed in place in it is kept."""
        return self.value_of(self.entry(key))

    def get_or_default(self, key: Any) -> Any:
        """The value of a key; one that has none gets the default, which is kept if it is changed in place."""
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
        if entry.value is ABSENT:
            raise KeyError(key)
        self.put(entry, ABSENT)

    def value_of(self, entry: Entry) -> Any:
        value = entry.value
        if type(value) not in IMMUTABLE and entry.seen != self._running.turn:
            self._remember(entry)
        return value

    def default_of(self, entry: Entry, key: Any) -> Any:
        value = self.value_of(entry)
        if value is not ABSENT:
            return value
        if self.part.make_default is None:
            raise KeyError(key)
        value = self.part.make_default()
        if type(value) not in IMMUTABLE:
            entry.value = value
        return value

    def put(self, entry: Entry, value: Any) -> None:
        running, before = self._running, entry.value
        if entry.seen != running.turn:
            self._remember(entry)
        if value is not before:
            # A copy, so that a value which is put under two keys, or changed later, is not changed in the table.
            entry.value = value if type(value) in SETTLED else copied(value)
            if running.held:
                running.let_go()
        entry.changed = True
        if running.timestamp > entry.time:
            entry.time = running.timestamp

    def _remember(self, entry: Entry) -> None:
        running, value = self._running, entry.value
        kind = type(value)
        if kind in SETTLED:
            kept = value
        elif kind in models and IMMUTABLE.issuperset(map(type, (parts := value.__dict__).values())):
            kept = _new(kind)
            kept.__dict__ = parts.copy()
        else:
            kept = copied(value)
        running.undo.append((entry, kept, entry.time, entry.changed))
        entry.seen = running.turn

    def entry(self, key: Any) -> Entry:
        if self.spread:
            self.check_own(key)
        if self._asked is not None:
            self._asked.append((self._running.record, key))
        entry = self._entries.get(key if type(key) is str else self.canonical(key))
        return self._load(key) if entry is None else entry

    def check_own(self, key: Any) -> None:
        own = self._running.key
        if key != own or type(key) is not type(own):
            raise OutsideOfKey(self.name, key, own)

    def canonical(self, key: Any) -> bytes:
        encoded = encode_key(key, self.part.key_type)
        if encoded is None:
            raise KeyError("None cannot be the key of a row")
        return encoded

    def _load(self, key: Any) -> Entry:
        cell = self.canonical(key)
        return self.enter(key if type(key) is str else cell, cell, self._session.read(self.name, [cell])[0])

    def enter(self, place: Any, cell: bytes, data: bytes | None) -> Entry:
        if data is None:
            entry = Entry(self, cell, None, ABSENT, 0)
        else:
            time, value = load_own_state(data)
            entry = Entry(self, cell, data, value if self.part.thaw is None else self.part.thaw(value), time)
        self._entries[place] = entry
        return entry

    def read_ahead(self, keys: Sequence[Any], instants: Any) -> None:
        """Read the rows of keys that may be asked for, those that are text."""
        cells = self._cells([key for key in set(keys) if type(key) is str and key not in self._entries])
        for (key, cell), data in zip(cells.items(), self._session.read(self.name, [*cells.values()]), strict=True):
            self.enter(key, cell, data)

    def _cells(self, keys: list[str]) -> dict[str, bytes]:
        """The cells of keys, but for those that can have none: who asks for these will hear of it."""
        type_ = self.part.key_type
        if not keys or (type_ is not None and not pa.types.is_string(type_)):
            return {}
        cells = encode_each_key(keys).values.to_pylist() if type_ is None else [_utf8(key) for key in keys]
        return {key: cell for key, cell in zip(keys, cells, strict=True) if cell is not None}

    def rows(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[Any, Any]]:
        """All rows, or those with start <= bytes of the key < stop, as the record at hand sees them, in the order of
        these bytes."""
        if self.spread:
            raise OutsideOfKey(self.name, "all its rows", self._running.key)
        stored = self._session.rows_between(self.name, [(start, stop)])[0]
        for cell, data in stored:
            key = self.key_of(cell)
            place = key if type(key) is str else cell
            if place not in self._entries:
                self.enter(place, cell, data)
        for entry in sorted(self._entries.values(), key=lambda entry: entry.key):
            if entry.value is not ABSENT and start <= entry.key and (stop is None or entry.key < stop):
                yield self.key_of(entry.key), self.value_of(entry)

    def key_of(self, cell: bytes) -> Any:
        return decode_keys([cell], self.part.key_type)[0]

    def frozen(self, value: Any) -> Any:
        return value if self.part.freeze is None else self.part.freeze(value)

    def changes(self) -> list[Change]:
        """The entries that are not as they were, with the bytes that they have; raises if something is no data."""
        found: list[Change] = []
        for entry in self._entries.values():
            value = entry.value
            if value is ABSENT:
                if entry.data is not None:
                    found.append((entry, None))
            elif entry.changed:
                found.append((entry, self._dumped(entry)))
            elif type(value) not in IMMUTABLE and (data := self._changed_in_place(entry)) is not None:
                found.append((entry, data))
        return found

    def _dumped(self, entry: Entry) -> bytes:
        """The bytes of a cell. Nobody has to look whether numbers and texts are data."""
        value = entry.value
        if type(value) in SCALARS:
            return pickle.dumps((entry.time, value), 5)
        if type(value) is self._flat and SCALARS.issuperset(map(type, (parts := value.__dict__).values())):
            return pickle.dumps((entry.time, parts), 5)
        return dump_state((entry.time, self.frozen(value)))

    def _changed_in_place(self, entry: Entry) -> bytes | None:
        frozen = self.frozen(entry.value)
        if entry.data is None and frozen == self._default:
            return None
        data = self._dumped(entry)
        return None if data == entry.data else data

    def write(self, changes: list[Change]) -> None:
        if changes:
            self._session.write(self.name, [(entry.key, data, entry.data) for entry, data in changes])


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
