"""Read the tables of a pull query from a snapshot: the rows that match its condition, or all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from potok.log.broker import Broker
from potok.records.keys import UnusableKeyError, encode_key
from potok.snapshots.rows.key_ranges import ALL, Span, span_of_prefix, span_of_range
from potok.snapshots.rows.layout import load_layouts
from potok.snapshots.rows.row_reader import EVER, RowReader, Starts
from potok.snapshots.snapshot import Snapshot
from potok.snapshots.tables import NoSuchTable
from potok.sql.analysis.scope import slot_of
from potok.sql.budget import held, in_time
from potok.sql.catalog import Source, StoredTable
from potok.state.entry import metadata_key_of
from potok.state.store import stored_stop
from potok.statements.frames import Frame, table_frame
from potok.statements.pull.allowed_values import Allowed
from potok.statements.pull.row_selection import choice_of

FIRST, CHUNK = 64, 4_096
"""How many rows are read before a LIMIT is checked: few at first, then more."""


class Readers:
    """Cached table readers, valid as long as the layouts of their queries are the same."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[tuple[str, str], tuple[bytes, RowReader]] = {}

    def reader(self, source: Source) -> RowReader | None:
        """Return None for a table whose query has not started: it has no rows yet."""
        data = self._broker.get_metadata(metadata_key_of(source.table_of, "tables"))
        return None if data is None else self.reader_of(source, data)

    def reader_of(self, source: Source, data: bytes) -> RowReader:
        """Return the reader of a table, by the stored layouts of its query."""
        name = source.name if source.stored_table is None else source.stored_table.table
        key = (source.table_of, name)
        known = self._known.get(key)
        if known is not None and known[0] == data:
            return known[1]
        layouts = load_layouts(data)
        if name not in layouts:
            raise NoSuchTable(name, source.table_of, sorted(layouts))
        reader = RowReader(layouts[name])
        self._known[key] = (data, reader)
        return reader


@dataclass(frozen=True, slots=True)
class Access:
    """The rows of a table to read: those of `keys`, or those in a `span` of stored keys. `in_range` says that the
    condition restricts the key to a range, even if rows are not stored in the order of their keys."""

    keys: tuple[bytes, ...] | None = None
    starts: Starts = EVER
    span: Span = ALL
    in_range: bool = False


def access_of(source: Source, alias: str, reader: RowReader, allowed: Mapping[str, Allowed]) -> Access:
    """Return the smallest part of a table that covers the condition."""
    choice = choice_of(source, alias, allowed, windows=reader.windowed)
    if choice.within is not None:
        span = _span(choice.within, reader)
        return Access(span=span, in_range=span != ALL)
    if choice.keys is None:
        in_range = reader.windowed and len(source.keys) == 1 and slot_of(alias, source.keys[0].name) in allowed
        return Access(starts=_starts(source, alias, allowed) if reader.windowed else EVER, in_range=in_range)
    starts, names = _starts(source, alias, allowed), _stored_names(source, reader)
    if source.stored_table is not None:
        return Access(stored_keys(source.stored_table, choice.keys[0], reader), starts)
    keys = [_key(dict(zip(names, chosen, strict=True)), reader) for chosen in product(*choice.keys)]
    return Access(tuple(dict.fromkeys(key for key in keys if key is not None)), starts)


def _stored_names(source: Source, reader: RowReader) -> list[str]:
    """Return the stored names of the key columns, which may differ from those of the topic."""
    if len(source.keys) > 1 and reader.key_type is not None:
        return [field.name for field in reader.key_type]
    return [column.name for column in source.keys]


def stored_keys(stored_table: StoredTable, values: Iterable[Any], reader: RowReader) -> tuple[bytes, ...]:
    """Return the stored keys under which a program may have rows for these keys."""
    found = (_key({"": stored}, reader) for value in values for stored in stored_table.keys(value))
    return tuple(dict.fromkeys(key for key in found if key is not None))


def _key(parts: dict[str, Any], reader: RowReader) -> bytes | None:
    try:
        return encode_key(parts if len(parts) > 1 else next(iter(parts.values())), reader.key_type)
    except UnusableKeyError:
        return None


def _span(allowed: Allowed, reader: RowReader) -> Span:
    if allowed.prefix:
        return span_of_prefix(allowed.prefix, reader.key_type)
    start, stop = span_of_range(allowed.low, allowed.high, reader.key_type)
    if stop is None or allowed.high is None:
        return start, stop
    high = encode_key(allowed.high, reader.key_type)
    # The upper bound is inclusive: no key sorts between a key and the same key followed by a zero byte.
    return start, None if high is None else stored_stop(high + b"\0")


def _starts(source: Source, alias: str, allowed: Mapping[str, Allowed]) -> Starts:
    """Return the start times of the selected windows; an end implies a start if windows have a fixed size."""
    low, high = _instants(allowed.get(slot_of(alias, "WINDOWSTART")))
    size = source.window.size_ms if source.window is not None else None
    if size is not None:
        first, last = _instants(allowed.get(slot_of(alias, "WINDOWEND")))
        low, high = max(low, first - size), min(high, last - size)
    return low, high


def _instants(allowed: Allowed | None) -> Starts:
    if allowed is None:
        return EVER
    if allowed.values is not None:
        return min(allowed.values, default=math.inf), max(allowed.values, default=-math.inf)
    return (
        -math.inf if allowed.low is None else allowed.low,
        math.inf if allowed.high is None else allowed.high,
    )


def table_frames(
    source: Source,
    alias: str,
    reader: RowReader,
    snapshot: Snapshot,
    access: Access,
    wanted: frozenset[str],
    *,
    limited: bool,
) -> Iterator[Frame]:
    """Yield the rows of a table, in the order of the keys in the condition, else of the stored keys; in small chunks if
    the caller may stop early."""
    if access.keys is not None:
        for first in range(0, max(len(access.keys), 1), FIRST):
            cells = reader.of_keys(snapshot, access.keys[first : first + FIRST], access.starts)
            yield table_frame(reader.decoded(cells), source, alias, wanted)
    elif limited:
        found, count = in_time(reader.in_span(snapshot, access.span, in_order=True)), FIRST
        while piece := list(islice(found, count)):
            yield table_frame(reader.decoded(piece), source, alias, wanted)
            count = min(2 * count, CHUNK)
    else:
        cells = sorted(held(reader.in_span(snapshot, access.span)))
        yield table_frame(reader.decoded(cells), source, alias, wanted)
