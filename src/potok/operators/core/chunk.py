"""A chunk: some records of one step, as columns."""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, TypeAlias

import cloudpickle
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.log.broker import HEADERS
from potok.operators.core.record_order import WIDTH, by_position, sorted_rows
from potok.records.rows import rows_of

Column: TypeAlias = pa.Array | list[Any]
"""Typed values are an Arrow array; dynamic ones are a list of plain Python objects."""

Ints: TypeAlias = npt.NDArray[np.int64]

NO_INPUT_PARTITION = -1
"""The input partition of a record that has no single input record, such as a change of a table."""


@dataclass(slots=True)
class Chunk:
    """Records in their order of arrival.

    An input partition is one topic partition, by its index in the batch; with the offset it is a record's position.
    `before` is set for the changes of a table only. `home` is the key to return to while records look something up
    under another key. `raw_key` and `raw_value` are the bytes as they were read, while they are available; `intact`
    means that the value still corresponds to those bytes. `order` holds the order keys
    (`operators/core/record_order.py`) of records whose order is not that of their positions. `cause` is the position
    of the record that caused a change, as pairs of input partition and offset. `alignment_time` is the time by which
    inputs are aligned (`runtime/planning/alignment.py`), where it differs from the stream time.
    """

    key: Column
    value: Column
    timestamp: Ints
    stream_time: Ints
    input_partition: Ints
    offset: Ints
    before: Column | None = None
    headers: pa.Array | None = None
    raw_key: pa.Array | None = None
    raw_value: pa.Array | None = None
    intact: bool = False
    expired: bool = False
    home: Column | None = None
    order: Ints | None = None
    cause: Ints | None = None
    alignment_time: Ints | None = None

    def __len__(self) -> int:
        return len(self.timestamp)

    def take(self, rows: npt.NDArray[np.intp]) -> Chunk:
        indices, numbers = pa.array(rows), rows.tolist()

        def pick(column: Column) -> Column:
            return _items(column, numbers) if isinstance(column, list) else column.take(indices)

        return Chunk(
            pick(self.key),
            pick(self.value),
            self.timestamp[rows],
            self.stream_time[rows],
            self.input_partition[rows],
            self.offset[rows],
            None if self.before is None else pick(self.before),
            None if self.headers is None else self.headers.take(indices),
            None if self.raw_key is None else self.raw_key.take(indices),
            None if self.raw_value is None else self.raw_value.take(indices),
            self.intact,
            self.expired,
            None if self.home is None else pick(self.home),
            None if self.order is None else self.order[rows],
            None if self.cause is None else self.cause[rows],
            None if self.alignment_time is None else self.alignment_time[rows],
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Chunk:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_value(self, value: Column) -> Chunk:
        return replace(self, value=value, intact=False)

    def with_key(self, key: Column) -> Chunk:
        return replace(self, key=key)


def _items(column: list[Any], numbers: list[int]) -> list[Any]:
    return list(itemgetter(*numbers)(column)) if len(numbers) > 1 else [column[i] for i in numbers]


def concat_columns(columns: Sequence[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    types = {None if isinstance(column, list) else column.type for column in columns}
    if None in types or len(types) > 1:
        return list(chain.from_iterable(map(as_objects, columns)))
    return pa.concat_arrays(columns)


def as_objects(column: Column) -> list[Any]:
    """Convert a column to dynamic values."""
    return (
        column if isinstance(column, list) else [dict(row) if isinstance(row, dict) else row for row in rows_of(column)]
    )


def concat(chunks: Sequence[Chunk]) -> Chunk:
    """Concatenate chunks. The raw values are kept if all are intact."""
    if len(chunks) == 1:
        return chunks[0]
    intact = all(chunk.intact and chunk.raw_value is not None for chunk in chunks)
    return Chunk(
        concat_columns([chunk.key for chunk in chunks]),
        concat_columns([chunk.value for chunk in chunks]),
        np.concatenate([chunk.timestamp for chunk in chunks]),
        np.concatenate([chunk.stream_time for chunk in chunks]),
        np.concatenate([chunk.input_partition for chunk in chunks]),
        np.concatenate([chunk.offset for chunk in chunks]),
        None if chunks[0].before is None else concat_columns([_before(chunk) for chunk in chunks]),
        _concat_headers(chunks),
        raw_value=pa.concat_arrays([chunk.raw_value for chunk in chunks]) if intact else None,
        intact=intact,
        home=None if chunks[0].home is None else concat_columns([_home(chunk) for chunk in chunks]),
        order=None if all(c.order is None for c in chunks) else np.concatenate([order_of(chunk) for chunk in chunks]),
        cause=None if all(c.cause is None for c in chunks) else np.concatenate([cause_of(chunk) for chunk in chunks]),
        alignment_time=None
        if all(chunk.alignment_time is None for chunk in chunks)
        else np.concatenate([aligned_by(chunk) for chunk in chunks]),
    )


def _home(chunk: Chunk) -> Column:
    assert chunk.home is not None
    return chunk.home


def _before(chunk: Chunk) -> Column:
    assert chunk.before is not None
    return chunk.before


def _concat_headers(chunks: Sequence[Chunk]) -> pa.Array | None:
    type_ = next((chunk.headers.type for chunk in chunks if chunk.headers is not None), None)
    if type_ is None:
        return None
    filled = [pa.nulls(len(c), type_) if c.headers is None else c.headers for c in chunks]
    return pa.concat_arrays(filled)


def order_of(chunk: Chunk) -> Ints:
    """Return the order keys of records."""
    return by_position(chunk.input_partition, chunk.offset) if chunk.order is None else chunk.order


def cause_of(chunk: Chunk) -> Ints:
    """Return the positions of the records that caused changes; no input partition if there is no single cause."""
    return np.full((len(chunk), 2), NO_INPUT_PARTITION, np.int64) if chunk.cause is None else chunk.cause


def aligned_by(chunk: Chunk) -> Ints:
    """Return the time of each record by which the inputs of a query are aligned."""
    return chunk.stream_time if chunk.alignment_time is None else chunk.alignment_time


def headers_of(rows: list[Any]) -> pa.Array | None:
    """Return a column of headers; None if no record has any."""
    return pa.array(rows, HEADERS) if any(row is not None for row in rows) else None


def positions_of(chunk: Chunk) -> Ints:
    return np.stack([chunk.input_partition, chunk.offset], axis=1)


def causes_of(chunk: Chunk) -> Ints:
    """Return the positions of records, and for changes those of the records that caused them; no input partition
    where no single record did.
    """
    own = positions_of(chunk)
    return own if chunk.cause is None else np.where(own[:, :1] == NO_INPUT_PARTITION, chunk.cause, own)


def position_of(chunk: Chunk, row: int) -> tuple[int, int]:
    """Return the position of a record, or of the one that caused a change; no input partition if no single record
    did."""
    input_partition, offset = int(chunk.input_partition[row]), int(chunk.offset[row])
    if input_partition == NO_INPUT_PARTITION and chunk.cause is not None:
        input_partition, offset = chunk.cause[row].tolist()
    return (NO_INPUT_PARTITION, -1) if input_partition == NO_INPUT_PARTITION else (input_partition, offset)


def gathered(chunks: Sequence[Chunk]) -> Chunk:
    """Concatenate chunks, in order."""
    return in_order(concat(_one_after_the_other(chunks)))


def _one_after_the_other(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Return chunks that do not overlap in their positions in order, so that nothing is left to sort; others as they
    came."""
    if len(chunks) < 2 or any(chunk.order is not None or not len(chunk) for chunk in chunks):
        return chunks
    spans = [
        ((chunk.input_partition[0], chunk.offset[0]), (chunk.input_partition[-1], chunk.offset[-1])) for chunk in chunks
    ]
    order = sorted(range(len(chunks)), key=lambda number: spans[number][0])
    apart = all(spans[one][1] < spans[two][0] for one, two in pairwise(order))
    return [chunks[number] for number in order] if apart else chunks


def in_order(chunk: Chunk) -> Chunk:
    """Sort records by their order keys, or by position; those with one position keep their order."""
    order = sorted_rows(chunk.order, chunk.input_partition, chunk.offset)
    return chunk if np.array_equal(order, np.arange(len(chunk))) else chunk.take(order)


def to_wire(chunk: Chunk, *, as_read: bool = False) -> bytes:
    """Serialize a chunk for a shuffle; raw bytes of intact values are included.

    `as_read` says that the values hold only what JSON can hold.
    """
    arrays: dict[str, Any] = {
        "timestamp": pa.array(chunk.timestamp),
        "stream_time": pa.array(chunk.stream_time),
        "input_partition": pa.array(chunk.input_partition),
        "offset": pa.array(chunk.offset),
    }
    objects: dict[str, bytes] = {}
    for name, column in (("key", chunk.key), ("value", chunk.value), ("before", chunk.before), ("home", chunk.home)):
        if isinstance(column, list):
            objects[name] = dump_objects(column, as_read=name == "value" and (as_read or chunk.intact))
        elif column is not None:
            arrays[name] = column
    if chunk.headers is not None:
        arrays["headers"] = chunk.headers
    if chunk.order is not None:
        arrays["order"] = pa.FixedSizeListArray.from_arrays(pa.array(chunk.order.ravel()), WIDTH)
    if chunk.cause is not None:
        arrays["cause"] = pa.FixedSizeListArray.from_arrays(pa.array(chunk.cause.ravel()), 2)
    if chunk.alignment_time is not None:
        arrays["alignment_time"] = pa.array(chunk.alignment_time)
    if chunk.intact and chunk.raw_value is not None:
        arrays["raw_value"] = chunk.raw_value
    batch = pa.RecordBatch.from_pydict(arrays)
    return pickle.dumps((to_ipc(batch), objects, chunk.expired), protocol=5)


def from_wire(data: bytes) -> Chunk:
    ipc, objects, expired = pickle.loads(data)
    batch = from_ipc(ipc)
    names = set(batch.schema.names)

    def column(name: str) -> Any:
        if name in objects:
            return load_objects(objects[name])
        return batch.column(name) if name in names else None

    return Chunk(
        column("key"),
        column("value"),
        batch.column("timestamp").to_numpy(),
        batch.column("stream_time").to_numpy(),
        batch.column("input_partition").to_numpy(),
        batch.column("offset").to_numpy(),
        column("before"),
        column("headers"),
        raw_value=column("raw_value"),
        intact="raw_value" in names,
        expired=expired,
        home=column("home"),
        order=batch.column("order").flatten().to_numpy().reshape(-1, WIDTH) if "order" in names else None,
        cause=batch.column("cause").flatten().to_numpy().reshape(-1, 2) if "cause" in names else None,
        alignment_time=batch.column("alignment_time").to_numpy() if "alignment_time" in names else None,
    )


def to_ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        batch: pa.RecordBatch = reader.read_next_batch()
        return batch


def dump_objects(objects: list[Any], *, as_read: bool = False) -> bytes:
    """Serialize objects; those read from JSON in the fast way. Results of a user's function may be of any type, and
    `marshal` would silently turn some into bytes, such as numbers of NumPy.
    """
    if as_read:
        try:
            return b"m" + marshal.dumps(objects)
        except ValueError:
            pass  # nested more deeply than marshal allows
    try:
        return b"p" + pickle.dumps(objects, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data: bytes = cloudpickle.dumps(objects, protocol=5)
        return b"p" + data


def load_objects(data: bytes) -> list[Any]:
    loads = marshal.loads if data[:1] == b"m" else pickle.loads
    return loads(memoryview(data)[1:])  # type: ignore[no-any-return]
