"""Rows of tables by key, range and window, without a statement."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import pyarrow as pa

from potok.backends.state_url import FILE
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.monitoring.families import PULL_SECONDS
from potok.monitoring.histogram import Histogram
from potok.records.keys import UnusableKeyError, encode_key
from potok.server.errors import BadRequest, NotThere, TooManyRows
from potok.server.tables.row_shape import ALIAS, RowShape
from potok.snapshots.cached_snapshot import CachedSnapshot
from potok.snapshots.rows.key_ranges import ALL, Span, span_of_prefix, span_of_range
from potok.snapshots.rows.row_reader import RowReader, Starts
from potok.snapshots.snapshot import Snapshot, read_snapshot
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import NoSuchQuery, committed
from potok.sql.analysis.scope import WINDOW_BOUNDS, slot_of
from potok.sql.budget import allowance, reserve, settle
from potok.sql.catalog import Catalog, Source
from potok.sql.errors import Refused, closest
from potok.sql.expressions.conversions.casts import can_cast, cast_column
from potok.sql.functions.function import Context
from potok.sql.types import VARCHAR, quoted, type_name
from potok.statements.database import Database
from potok.statements.frames import Frame, stacked, typed_column
from potok.statements.prepared import prepared_for
from potok.statements.pull.tables import Access, stored_keys, table_frames


@dataclass(frozen=True, slots=True)
class Windows:
    """Selected windows: those that contain a timestamp, or that start in a range (end exclusive)."""

    at: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def starts(self) -> Starts:
        low = -math.inf if self.start is None else self.start
        high = math.inf if self.end is None else self.end - 1
        return (low, high) if self.at is None else (low, min(high, self.at))

    @property
    def any(self) -> bool:
        return self is EVERY or self == EVERY


EVERY = Windows()


@dataclass(frozen=True, slots=True)
class Keys:
    """Selected keys: from `low` to `high` (exclusive), or those with a `prefix`."""

    low: Any = None
    high: Any = None
    prefix: str | None = None

    def of_texts(self, source: Source) -> Keys:
        """Return a copy with bounds of the key's type."""
        if self == Keys():
            return self
        type_ = source.keys[0].type
        if self.prefix is not None and (type_ != VARCHAR or self.low is not None or self.high is not None):
            raise BadRequest("prefix requires a text key, and excludes from and to", hint="use from and to")
        low, high = (None if text is None else value_of(text, type_, source) for text in (self.low, self.high))
        return Keys(low, high, self.prefix)

    def span(self, key_type: pa.DataType | None) -> Span:
        if self == Keys():
            return ALL
        if self.prefix is not None:
            return span_of_prefix(self.prefix, key_type)
        return span_of_range(self.low, self.high, key_type)

    def hold(self, key: Any) -> bool:
        if self.prefix is not None:
            return bool(key.startswith(self.prefix))
        return (self.low is None or self.low <= key) and (self.high is None or key < self.high)


def source_named(catalog: Catalog, name: str, *, is_table: bool) -> Source:
    """Find a stream or table by the name in a path: exact, in upper case, or as the program names it."""
    found = find_source(catalog, name)
    kind = "table" if is_table else "stream"
    if found is None:
        known = [source.name for source in catalog.sources.values() if source.is_table == is_table]
        hint = closest(name, known) or (
            f"there are: {', '.join(sorted(known))}" if known else f"there is no {kind} yet"
        )
        raise NotThere(f"there is no {kind} {quoted(name)}", hint=hint)
    if found.is_table != is_table:
        path = f"/tables/{found.name}" if found.is_table else f"/streams/{found.name}"
        raise NotThere(f"{quoted(found.name)} is a {found.kind.lower()}", hint=f"GET {path}")
    return found


def find_source(catalog: Catalog, name: str) -> Source | None:
    known_as = catalog.sources.get(name) or catalog.sources.get(name.upper())
    return known_as or catalog.built_in.get(name.upper()) or _of_program(catalog, name)


def _of_program(catalog: Catalog, name: str) -> Source | None:
    kept = (
        source
        for source in catalog.sources.values()
        if source.stored_table is not None and source.stored_table.table == name
    )
    return next(kept, None)


class TableReads:
    """Read the tables of a database; each result is from one snapshot."""

    def __init__(self, database: Database, most: int) -> None:
        self._database, self._most = database, most
        self._readers = prepared_for(database).readers
        self._shapes: dict[str, RowShape] = {}
        self._cached: dict[str, CachedSnapshot] = {}
        self.seconds = Histogram(PULL_SECONDS.buckets)
        """The durations of reads."""

    def local_table(self, name: str) -> Source | None:
        """Return a table whose rows can be read by key within microseconds, so that the event loop need not hand the
        read to a thread: its state is on this machine, and a key has one row. None for any other."""
        source = find_source(self._database.catalog, name)
        return source if source is not None and source.is_table and self._shape(source).is_local else None

    def local_row(self, source: Source, text: str) -> dict[str, Any] | None:
        """Return the row of a key of a local table, out of a cached snapshot. All calls come from one thread."""
        cached = self._cached.get(source.table_of)
        if cached is None:
            cached = self._cached[source.table_of] = CachedSnapshot(self._database.broker, source.table_of)
        wanted = key_of(source, text)

        def work(snapshot: Snapshot, layouts: bytes) -> dict[str, Any] | None:
            return self._row(source, self._readers.reader_of(source, layouts), snapshot, wanted, text)

        began = time.perf_counter()
        try:
            return cached.read(work)
        except NoSuchQuery:
            return None  # nothing is committed yet
        finally:
            self.seconds.observe(time.perf_counter() - began)

    def release(self) -> None:
        """Close the cached snapshots; the next read opens others."""
        for cached in self._cached.values():
            cached.release()

    def by_key(self, name: str, text: str, windows: Windows) -> list[dict[str, Any]]:
        """Return the row of a key; for a windowed table, the rows of its windows in time order."""
        with self.seconds.time():
            return self._by_key(name, text, windows)

    def _by_key(self, name: str, text: str, windows: Windows) -> list[dict[str, Any]]:
        source, reader, look = self._opened(name, windows)
        if reader is None:
            return []
        wanted = key_of(source, text)
        if source.stored_table is not None:
            access = Access(stored_keys(source.stored_table, (wanted,), reader), windows.starts)
            return self._rows(source, reader, access, look, windows, None)
        if reader.windowed:
            key = _canonical(source, reader, wanted, text)
            access = Access(() if key is None else (key,), windows.starts)
            return self._rows(source, reader, access, look, windows, None)
        try:
            row = read_snapshot(look, lambda snapshot: self._row(source, reader, snapshot, wanted, text))
        except NoSuchQuery:
            return []
        return [] if row is None else [row]

    def _row(
        self, source: Source, reader: RowReader, snapshot: Snapshot, wanted: Any, text: str
    ) -> dict[str, Any] | None:
        key = _canonical(source, reader, wanted, text)
        return None if key is None else self._shape(source).row(snapshot, reader, wanted, key)

    def in_range(self, name: str, keys: Keys, windows: Windows, limit: int | None) -> list[dict[str, Any]]:
        with self.seconds.time():
            return self._in_range(name, keys, windows, limit)

    def _in_range(self, name: str, keys: Keys, windows: Windows, limit: int | None) -> list[dict[str, Any]]:
        source, reader, look = self._opened(name, windows)
        if keys != Keys() and (len(source.keys) != 1 or source.window is not None):
            hint = "request one key, or use SQL: POST /sql"
            raise BadRequest("ranges require a table with one key column and no windows", hint=hint)
        wanted = keys.of_texts(source)
        if reader is None:
            return []
        access = Access(starts=windows.starts, span=wanted.span(reader.key_type))
        return self._rows(source, reader, access, look, windows, limit, wanted)

    def _opened(self, name: str, windows: Windows) -> tuple[Source, RowReader | None, Any]:
        database = self._database
        source = source_named(database.catalog, name, is_table=True)
        if not source.table_of:
            hint = f"CREATE TABLE queryable_{source.name} AS SELECT * FROM {quoted(source.name)} keeps its rows"
            raise Refused(f"table {quoted(source.name)} is not materialized", hint=hint)
        if not windows.any and source.window is None:
            raise BadRequest(f"table {quoted(source.name)} has no windows", hint="omit at, from and to")
        reader = self._readers.reader(source)
        return source, reader, partial(committed, database.broker, source.table_of)

    def _rows(
        self,
        source: Source,
        reader: RowReader,
        access: Access,
        look: Any,
        windows: Windows,
        limit: int | None,
        keys: Keys = Keys(),
    ) -> list[dict[str, Any]]:
        shape = self._shape(source)
        most = self._most + 1 if limit is None else limit

        def work(snapshot: Snapshot) -> Frame:
            found, count = [], 0
            settle(0)
            for frame in table_frames(
                source, ALIAS, reader, snapshot, access, shape.slots, limited=access.keys is None
            ):
                kept = _among(_holding(frame, windows, reader), keys, source)
                reserve(kept.size)
                found.append(kept)
                count += kept.rows
                if count >= most:
                    break
            return stacked(found, shape.fields)

        with allowance():
            try:
                frame = read_snapshot(look, work).head(most)
            except NoSuchQuery:
                return []  # nothing is committed yet
            if limit is None and frame.rows > self._most:
                raise TooManyRows(self._most)
            return shape.named(frame)

    def _shape(self, source: Source) -> RowShape:
        known = self._shapes.get(source.name)
        if known is None or known.source is not source:
            known = self._shapes[source.name] = RowShape(source, is_local=self._is_local(source))
        return known

    def _is_local(self, source: Source) -> bool:
        broker = self._database.broker
        if not source.table_of or source.window is not None or source.stored_table is not None:
            return False
        return isinstance(broker, EmbeddedBroker) and state_of(broker, source.table_of).where.kind == FILE


def no_row(source: Source) -> NotThere:
    return NotThere(f"table {quoted(source.name)} has no row for this key", hint=f"GET /tables/{source.name}")


def _holding(frame: Frame, windows: Windows, reader: RowReader) -> Frame:
    """Return the rows whose window is selected. The end of session and sliding windows is inclusive."""
    starts, ends = (frame.columns.get(slot_of(ALIAS, name)) for name in WINDOW_BOUNDS)
    if windows.any or starts is None or ends is None:
        return frame
    low, high = windows.starts
    last = reader.layout.window != "fixed"
    pairs = zip(starts.to_pylist(), ends.to_pylist(), strict=True)
    kept = [
        index
        for index, (start, end) in enumerate(pairs)
        if low <= start <= high and (windows.at is None or windows.at < end or (last and windows.at == end))
    ]
    return frame if len(kept) == frame.rows else frame.take(pa.array(kept, pa.int64()))


def _among(frame: Frame, keys: Keys, source: Source) -> Frame:
    """Return the rows whose key is selected. A scan may return others if keys are long or unordered."""
    if keys == Keys():
        return frame
    found = frame.columns[slot_of(ALIAS, source.keys[0].name)].to_pylist()
    kept = [index for index, key in enumerate(found) if keys.hold(key)]
    return frame if len(kept) == frame.rows else frame.take(pa.array(kept, pa.int64()))


def key_of(source: Source, text: str) -> Any:
    """Parse a key in a path: one column as text, several as a JSON array or object."""
    keys = source.keys
    if len(keys) == 1:
        return value_of(text, keys[0].type, source)
    try:
        parts = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f'"{text}" is not a key of {quoted(source.name)}', hint=_key_hint(source)) from error
    if isinstance(parts, list) and len(parts) == len(keys):
        parts = {column.name: part for column, part in zip(keys, parts, strict=True)}
    if not isinstance(parts, Mapping) or parts.keys() != {column.name for column in keys}:
        raise BadRequest(f'"{text}" is not a key of {quoted(source.name)}', hint=_key_hint(source))
    return {c.name: value_of(_as_text(parts[c.name]), c.type, source) for c in keys}


def value_of(text: str, type_: pa.DataType, source: Source) -> Any:
    """Convert text to a type like CAST; nested types are JSON."""
    if type_ == VARCHAR:
        return text
    if can_cast(VARCHAR, type_) and not pa.types.is_nested(type_):
        column = cast_column(pa.array([text.strip()], VARCHAR), type_, Context())
    else:
        try:
            column = typed_column([orjson.loads(text)], type_)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f'"{text}" is not a {type_name(type_)}', hint="write it as JSON") from error
    if column.null_count:
        raise BadRequest(f'"{text}" is not a {type_name(type_)}', hint=_key_hint(source))
    return column[0].as_py()


def _canonical(source: Source, reader: RowReader, wanted: Any, text: str) -> bytes | None:
    try:
        return encode_key(wanted, reader.key_type)
    except UnusableKeyError as error:
        raise BadRequest(f'"{text}" is not a key of {quoted(source.name)}: {error}', hint=_key_hint(source)) from error


def _as_text(part: Any) -> str:
    return part if isinstance(part, str) else orjson.dumps(part).decode()


def _key_hint(source: Source) -> str:
    rendered = ", ".join(f"{quoted(column.name)} {type_name(column.type)}" for column in source.keys)
    return f"its key is {rendered}" + ("; write a JSON array" if len(source.keys) > 1 else "")
