"""The output and table changes of agents, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.operators.agents.context import NO_RECORD, Headers, Sent
from potok.operators.agents.record_order import RecordLocations, Records
from potok.operators.agents.tables import Change, OpenTable
from potok.operators.agents.windows import OpenWindows
from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.record_order import LAST, WIDTH, by_position

_HEADERS = LOG_SCHEMA.field("headers").type


def sent_chunks(
    sent: list[Sent], records: Sequence[Records | None], locations: RecordLocations
) -> Iterator[tuple[int, Chunk]]:
    """Yield what was sent to each topic, in the order of the records that led to it; output without a record comes
    last."""
    by_topic: dict[int, list[Sent]] = {}
    for item in sent:
        by_topic.setdefault(item[0], []).append(item)
    for topic, mine in sorted(by_topic.items()):
        yield topic, _chunk(mine, records, locations)


def _chunk(sent: list[Sent], records: Sequence[Records | None], locations: RecordLocations) -> Chunk:
    _, numbers, keys, values, given, headers = zip(*sent, strict=True)
    led = np.array(numbers, np.int64)
    times, stream_times, input_partitions, offsets = (np.empty(len(sent), np.int64) for _ in range(4))
    ports = np.where(led == NO_RECORD, NO_RECORD, locations.ports[led] if len(locations) else NO_RECORD)
    for port, found in enumerate(records):
        mine = np.flatnonzero(ports == port)
        if found is not None and len(mine):
            rows = locations.rows[led[mine]]
            times[mine], stream_times[mine] = found.chunk.timestamp[rows], found.chunk.stream_time[rows]
            input_partitions[mine], offsets[mine] = found.chunk.input_partition[rows], found.chunk.offset[rows]
    made = np.flatnonzero(led == NO_RECORD)
    input_partitions[made], offsets[made] = NO_INPUT_PARTITION, made
    for number in _with_explicit_time(given):
        at = given[number]
        times[number] = at
        if led[number] == NO_RECORD:
            stream_times[number] = at
    return Chunk(
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        times,
        stream_times,
        input_partitions,
        offsets,
        headers=_headers(headers),
        order=_order(input_partitions, offsets),
    )


def _with_explicit_time(given: Sequence[int | None]) -> list[int]:
    """Return those that were sent with an explicit time, including all without a record."""
    if given.count(None) == len(given):
        return []
    return [number for number, at in enumerate(given) if at is not None]


def _order(input_partitions: Any, offsets: Any) -> Any:
    made = input_partitions == NO_INPUT_PARTITION
    if not made.any():
        return None
    order = by_position(input_partitions, offsets)
    order[made, : WIDTH - 1] = LAST
    order[made, WIDTH - 1] = offsets[made]
    return order


def _headers(given: Sequence[Headers | None]) -> pa.Array | None:
    if given.count(None) == len(given):
        return None
    rows = [None if each is None else [{"name": name, "value": data} for name, data in each] for each in given]
    return pa.array(rows, _HEADERS)


def changed_rows(table: OpenTable, changes: list[Change]) -> Chunk:
    """Return the changes of a table: its rows before and after."""
    ordered = sorted(changes, key=lambda item: item[0].key)
    times = np.array([entry.time for entry, _ in ordered], np.int64)
    return change(
        [_shown_key(table, entry.key) for entry, _ in ordered],
        [None if data is None else decode_row(data)[1] for _, data in ordered],
        [None if entry.data is None else decode_row(entry.data)[1] for entry, _ in ordered],
        times,
        times,
    )


def _shown_key(table: OpenTable, cell: bytes) -> Any:
    if isinstance(table, OpenWindows):
        key, start, end = table.bounds_of(cell)
        return {"key": key, "start": start, "end": end}
    return table.key_of(cell)
