"""What agents send and change, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from potok.kernels.agents_running import NO_RECORD, Sent
from potok.kernels.agents_tables import Change, OpenTable
from potok.kernels.agents_windows import OpenWindows
from potok.kernels.aggregates import change
from potok.kernels.chunk import NO_LANE, Chunk
from potok.kernels.places import LAST, WIDTH, by_position
from potok.log.broker import LOG_SCHEMA
from potok.state.codec import load_own_state

_HEADERS = LOG_SCHEMA.field("headers").type


class Found(Protocol):
    """The records of one upstream."""

    chunk: Chunk
    times: list[int]
    stream_times: list[int]


def sent_chunks(
    sent: list[Sent], records: Sequence[Found | None], places: list[tuple[int, int]]
) -> Iterator[tuple[int, Chunk]]:
    """What was sent to each topic, in the order of the records that led to it; what no record did comes last."""
    by_topic: dict[int, list[Sent]] = {}
    for item in sent:
        by_topic.setdefault(item[0], []).append(item)
    for topic, mine in sorted(by_topic.items()):
        yield topic, _chunk(mine, records, places)


def _chunk(sent: list[Sent], records: Sequence[Found | None], places: list[tuple[int, int]]) -> Chunk:
    times, stream_times, lanes, offsets = (np.empty(len(sent), np.int64) for _ in range(4))
    for number, (_, record, _, _, timestamp, _) in enumerate(sent):
        if record == NO_RECORD:
            assert timestamp is not None
            time = stream_time = timestamp
            lanes[number], offsets[number] = NO_LANE, number
        else:
            port, row = places[record]
            found = records[port]
            assert found is not None
            time, stream_time = found.times[row], found.stream_times[row]
            lanes[number], offsets[number] = found.chunk.lane[row], found.chunk.offset[row]
        times[number] = time if timestamp is None else timestamp
        stream_times[number] = stream_time
    return Chunk(
        pa.array([item[2] for item in sent], pa.binary()),
        pa.array([item[3] for item in sent], pa.binary()),
        times,
        stream_times,
        lanes,
        offsets,
        headers=_headers(sent),
        order=_order(lanes, offsets),
    )


def _order(lanes: Any, offsets: Any) -> Any:
    made = lanes == NO_LANE
    if not made.any():
        return None
    places = by_position(lanes, offsets)
    places[made, : WIDTH - 1] = LAST
    places[made, WIDTH - 1] = offsets[made]
    return places


def _headers(sent: list[Sent]) -> pa.Array | None:
    given = [item[5] for item in sent]
    if all(headers is None for headers in given):
        return None
    rows = [None if each is None else [{"name": name, "value": data} for name, data in each] for each in given]
    return pa.array(rows, _HEADERS)


def changed_rows(table: OpenTable, changes: list[Change]) -> Chunk:
    """The changes of a table: what its rows were, and what they are."""
    ordered = sorted(changes, key=lambda item: item[0].key)
    times = np.array([entry.time for entry, _ in ordered], np.int64)
    return change(
        [_shown_key(table, entry.key) for entry, _ in ordered],
        [None if data is None else load_own_state(data)[1] for _, data in ordered],
        [None if entry.data is None else load_own_state(entry.data)[1] for entry, _ in ordered],
        times,
        times,
    )


def _shown_key(table: OpenTable, cell: bytes) -> Any:
    if isinstance(table, OpenWindows):
        key, start, end = table.bounds_of(cell)
        return {"key": key, "start": start, "end": end}
    return table.key_of(cell)
