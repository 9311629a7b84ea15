"""Tables of agents with windows: a row for each key and window, deleted when the watermark has passed its retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from potok.errors import StateError
from potok.operators.agents.context import Running
from potok.operators.agents.tables import Change, Entry, OpenTable
from potok.operators.agents.values import ABSENT, IMMUTABLE, SETTLED, Watched, check_watched, copied, keep
from potok.operators.cells.cell_codec import decode_row
from potok.operators.cells.timer_index import Timers
from potok.operators.windows.windows import time_of
from potok.records.keys import decode_keys
from potok.state.cell import MISFIT, CellDoesNotFit
from potok.state.session import StateSession
from potok.topology.agents import TablePart

TIME = 8
_BIAS = 1 << 63


class LateForWindow(StateError):
    """A record whose window has expired."""

    def __init__(self, table: str, start_ms: int) -> None:
        super().__init__(
            f'the window of table "{table}" that starts at {start_ms} has expired for this record',
            hint="keep windows for longer: .tumbling(size, expires=timedelta(days=7))",
        )


class OneOfSeveralWindows(StateError):
    """A value that was changed in place in the newest window only, while the record falls into older ones too."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'the windows of table "{table}" overlap, and a value was changed in place in only one of them',
            hint="change it in all windows of the record: table[key] += 1, a method such as table[key].append(1), or "
            "table[key].each_window(change), which calls change(value) for each",
        )


class WithoutWindow(StateError):
    """A windowed table that was read with a key only."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has a value for each window, but only a key was given',
            hint="use what tumbling() or hopping() has returned: counts = app.Table(...).tumbling(size)",
        )


class WindowEntry(Entry):
    """The cell of a window, with its start."""

    __slots__ = ("start",)
    start: int


class Closed(NamedTuple):
    """A window at its end."""

    key: Any
    start_ms: int
    end_ms: int
    value: Any
    entry: Entry


class OpenWindows(OpenTable):
    """An entry is identified by its key and the start of a window."""

    def __init__(self, part: TablePart, running: Running, session: StateSession, *, spread: bool) -> None:
        super().__init__(part, running, session, spread=spread)
        assert part.window is not None
        self._size_ms, self._advance_ms = part.window.size_ms, part.window.advance_ms
        self._ends = None if part.expires_ms is None else Timers(f"{part.name}/by_end", session)
        self._wall = part.wall
        self._own_time = not part.wall and part.instant is None
        self._life_ms = None if part.expires_ms is None else self._size_ms + part.expires_ms
        self.tumbling = self._size_ms == self._advance_ms
        self._by_start: dict[int, dict[str, WindowEntry]] = {}
        """Entries that were held, found faster than by their identity."""

    @property
    def tables(self) -> list[str]:
        return [self.name, *([] if self._ends is None else [self._ends.table])]

    def forget(self) -> None:
        super().forget()
        self._by_start = {}

    def starts(self, instant_ms: int) -> range:
        """Return the windows that contain an instant, the oldest first."""
        advance, size = self._advance_ms, self._size_ms
        last = instant_ms - instant_ms % advance
        if advance == size:
            return range(last, last + 1)
        return range(last - (size - 1 - (instant_ms - last)) // advance * advance, last + 1, advance)

    def newest(self, instant_ms: int) -> int:
        """Return the last of these."""
        return instant_ms - instant_ms % self._advance_ms

    def instant_ms(self) -> int:
        """Return the time whose windows are meant."""
        if self.part.wall:
            return self._running.processing_time_ms
        if self.part.instant is not None:
            return self.part.instant(self._running.value)
        return self._running.timestamp

    @property
    def processing_time_ms(self) -> int:
        return self._running.processing_time_ms

    @property
    def timestamp_ms(self) -> int:
        return self._running.timestamp

    def entry(self, key: Any) -> Entry:
        raise WithoutWindow(self.name)

    def look(self, key: Any, instant_ms: int) -> Any:
        """Return the value of the newest window of an instant, or `ABSENT`, also for one that has expired."""
        start = self.newest(instant_ms)
        entry = self.window(key, start)
        return ABSENT if self._over(start) else self._handed_out(entry, self.value_of(entry))

    def look_or_default(self, key: Any, instant_ms: int) -> Any:
        """The same, or the default. Changing that of an expired window raises an error."""
        start = self.newest(instant_ms)
        entry = self.window(key, start)
        return (
            self._late_default(key, start)
            if self._over(start)
            else self._handed_out(entry, self.default_of(entry, key))
        )

    def _late_default(self, key: Any, start_ms: int) -> Any:
        if self.part.make_default is None:
            raise KeyError(key)
        made = self.part.make_default()
        if type(made) not in IMMUTABLE:
            self._running.watched.append(Watched(made, LateForWindow(self.name, start_ms)))
        return made

    def _handed_out(self, entry: WindowEntry, value: Any) -> Any:
        """Return a value for reading. If windows overlap, a change of this one alone would be missing in others."""
        if not self.tumbling and type(value) not in SETTLED:
            watched = self._running.watched
            if not any(each.value is value for each in watched):
                watched.append(Watched(value, OneOfSeveralWindows(self.name), entry))
        return value

    def each(self, key: Any, change: Callable[[Any], Any]) -> Any:
        """Call a function that changes the value of each window of the current record in place; return its result for
        the newest."""
        result, handed_out = None, self.handed_out(key)
        for start in self.starts(self.instant_ms()):
            entry = self.window(key, start)
            if self._over(start):
                result = change(self._late_default(key, start))
                continue
            value = self.default_of(entry, key)
            before = copied(value)
            result = change(value)
            if value != before:
                self.put(entry, value)
        keep(handed_out)
        return result

    def handed_out(self, key: Any) -> list[Watched]:
        """Return what was handed out of the windows of the current record, before all of them are changed; raise if
        one of them was changed alone.
        """
        watched = self._running.watched
        if self.tumbling or not watched:
            return []
        mine = {self.window(key, start) for start in self.starts(self.instant_ms())}
        found = [each for each in watched if each.entry in mine]
        check_watched(found)
        return found

    def held(self, key: Any) -> WindowEntry | None:
        """Return the window that is meant, remembered for this turn, if its value can be changed in place."""
        if type(key) is not str or not self.tumbling:
            return None
        running = self._running
        at = running.timestamp if self._own_time else self.instant_ms()
        start = at - at % self._advance_ms
        life = self._life_ms
        if life is not None and start + life <= (running.processing_time_ms if self._wall else running.stream_time):
            return None
        mine = self._by_start.get(start)
        entry = None if mine is None or self._asked is not None else mine.get(key)
        if entry is None:
            entry = self.window(key, start)
            self._by_start.setdefault(start, {})[key] = entry
        elif self.spread:
            self.check_own(key)
        if type(entry.value) in SETTLED:
            return None
        if entry.seen != running.turn:
            self._remember(entry)
        return entry

    def keep(self, entry: WindowEntry) -> None:
        """Write back what was changed in place while it was held."""
        running = self._running
        if self._life_ms is not None and self._over(entry.start):
            raise LateForWindow(self.name, entry.start)
        entry.changed = True
        if running.timestamp > entry.time:
            entry.time = running.timestamp

    def enter(self, cache_key: Any, cell: bytes, data: bytes | None) -> WindowEntry:
        if data is None:
            entry = WindowEntry(self, cell, None, ABSENT, 0)
        else:
            try:
                time, value = decode_row(data)
                entry = WindowEntry(self, cell, data, value if self.part.thaw is None else self.part.thaw(value), time)
            except MISFIT as error:
                raise CellDoesNotFit(self.name, error) from error
        entry.start = cache_key[1]
        self._entries[cache_key] = entry
        return entry

    def window(self, key: Any, start_ms: int, *, change: bool = False) -> WindowEntry:
        if self.spread:
            self.check_own(key)
        if change and self._over(start_ms):
            raise LateForWindow(self.name, start_ms)
        if self._asked is not None:
            self._asked.append((self._running.record, key))
        cache_key = (self.cache_key(key), start_ms)
        entry: Any = self._entries.get(cache_key)
        if entry is None:
            cell = self.canonical(key) + (start_ms + _BIAS).to_bytes(TIME, "big")
            entry = self.enter(cache_key, cell, self._session.read(self.name, [cell])[0])
        return entry  # type: ignore[no-any-return]

    def read_ahead(self, keys: Sequence[Any], instants: Any) -> None:
        if self.part.wall or self.part.instant is not None:
            return
        times = np.asarray(instants, np.int64)
        starts = times - times % self._advance_ms
        bounds = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(starts)]
        found: dict[int, set[Any]] = {}
        for one, other in pairwise(bounds):
            if other > one:
                found.setdefault(int(starts[one]), set()).update(keys[one:other])
        pairs = [(key, start) for start, texts in found.items() for key in texts if type(key) is str]
        canonical = self._cells(list({key for key, _ in pairs}))
        new = [cache_key for cache_key in pairs if cache_key[0] in canonical and cache_key not in self._entries]
        cells = [canonical[key] + (start + _BIAS).to_bytes(TIME, "big") for key, start in new]
        for cache_key, cell, data in zip(new, cells, self._session.read(self.name, cells), strict=True):
            self.enter(cache_key, cell, data)

    def rows(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[Any, Any]]:
        """Return all windows, each under its key, start and end."""
        if self.spread:
            self.check_own(ABSENT)
        for cell, data in self._session.rows_between(self.name, [(b"", None)])[0]:
            if self._cache_key(cell) not in self._entries:
                self.enter(self._cache_key(cell), cell, data)
        for entry in sorted(self._windows(), key=lambda entry: entry.key):
            if self._is_row(entry) and not self._over(entry.start):
                bounds = entry.start, entry.start + self._size_ms
                yield (self.key_of(entry.key), bounds), self.value_of(entry)

    def count(self) -> int:
        return sum(1 for _ in self.rows())

    def _over(self, start_ms: int) -> bool:
        if self._life_ms is None:
            return False
        now_ms = self._running.processing_time_ms if self.part.wall else self._running.stream_time
        return self._due(start_ms) <= now_ms

    def _due(self, start_ms: int) -> int:
        assert self._life_ms is not None
        return start_ms + self._life_ms

    def closing(self, watermark_ms: int) -> list[Closed]:
        """Return the windows whose retention is over, the earliest first, including those of this batch."""
        if self._ends is None:
            return []
        for _, cell in self._ends.due(watermark_ms):
            cache_key = self._cache_key(cell)
            if cache_key not in self._entries:
                self.enter(cache_key, cell, self._session.read(self.name, [cell])[0])
        due = [entry for entry in self._windows() if self._due(entry.start) <= watermark_ms]
        found: list[Closed] = []
        for entry in sorted(due, key=lambda entry: (entry.start, entry.key)):
            if self._is_row(entry):
                end_ms = entry.start + self._size_ms
                found.append(Closed(self.key_of(entry.key), entry.start, end_ms, entry.value, entry))
        return found

    def _windows(self) -> Iterator[WindowEntry]:
        yield from self._entries.values()  # type: ignore[misc]

    def _cache_key(self, cell: bytes) -> tuple[Any, int]:
        return self.cache_key_of(cell[:-TIME]), time_of(cell[-TIME:])

    def key_of(self, cell: bytes) -> Any:
        return decode_keys([cell[:-TIME]], self.part.key_type)[0]

    def bounds_of(self, cell: bytes) -> tuple[Any, int, int]:
        start_ms = time_of(cell[-TIME:])
        return self.key_of(cell), start_ms, start_ms + self._size_ms

    def next_due(self) -> int | None:
        return None if self._ends is None else self._ends.next_due()

    def write(self, changes: list[Change]) -> None:
        super().write(changes)
        if changes and self._ends is not None:
            ends = [(self._due(time_of(entry.key[-TIME:])), entry.key, entry.data, data) for entry, data in changes]
            self._ends.change(
                [(due, key) for due, key, old, new in ends if old is None and new is not None],
                [(due, key) for due, key, old, new in ends if old is not None and new is None],
            )
