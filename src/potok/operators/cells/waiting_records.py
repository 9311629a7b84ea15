"""Records that wait in a cell: their columns, with their positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, Ints, from_ipc, to_ipc
from potok.operators.core.dead_letters import InputPartition
from potok.state.codec import dump_state, load_state


class Waiting(NamedTuple):
    """A cell of records, and the least time among them."""

    first_ms: int
    data: bytes


def pack(chunk: Chunk, input_partitions: list[InputPartition]) -> bytes:
    """Serialize a chunk: typed columns as Arrow, others as data; partitions by topic and number, because input
    partitions are numbered per batch.
    """
    known = np.unique(chunk.input_partition[chunk.input_partition != NO_INPUT_PARTITION])
    arrays: dict[str, Any] = {
        "timestamp": pa.array(chunk.timestamp),
        "input_partition": pa.array(
            np.where(
                chunk.input_partition == NO_INPUT_PARTITION,
                NO_INPUT_PARTITION,
                np.searchsorted(known, chunk.input_partition),
            )
        ),
        "offset": pa.array(chunk.offset),
    }
    objects: dict[str, list[Any]] = {}
    for name, column in (("key", chunk.key), ("value", chunk.value)):
        if isinstance(column, list):
            objects[name] = column
        else:
            arrays[name] = column
    if chunk.headers is not None:
        arrays["headers"] = chunk.headers
    sources = [
        [input_partitions[input_partition].topic, input_partitions[input_partition].partition]
        for input_partition in known.tolist()
    ]
    return dump_state((to_ipc(pa.RecordBatch.from_pydict(arrays)), objects, sources))


def waiting_keys(data: bytes) -> Column:
    """Return the keys of the records in a cell."""
    ipc, objects, _ = load_state(data)
    keys: Column = objects["key"] if "key" in objects else from_ipc(ipc).column("key")
    return keys


def waiting_times(data: bytes) -> Ints:
    times: Ints = from_ipc(load_state(data)[0]).column("timestamp").to_numpy()
    return times


def part_of(data: bytes, rows: npt.NDArray[np.intp]) -> bytes:
    """Return a cell with some of the records."""
    ipc, objects, sources = load_state(data)
    taken = {name: [column[row] for row in rows.tolist()] for name, column in objects.items()}
    return dump_state((to_ipc(from_ipc(ipc).take(pa.array(rows))), taken, sources))


def unpack(data: bytes, input_partitions: list[InputPartition]) -> Chunk:
    """Return the records with their input partitions in this batch; one whose topic is no longer read has none."""
    ipc, objects, sources = load_state(data)
    batch = from_ipc(ipc)
    numbers = {
        (input_partition.topic, input_partition.partition): number
        for number, input_partition in enumerate(input_partitions)
    }
    known = np.array(
        [*(numbers.get(tuple(source), NO_INPUT_PARTITION) for source in sources), NO_INPUT_PARTITION], np.int64
    )
    times = batch.column("timestamp").to_numpy()

    def column(name: str) -> Any:
        return objects[name] if name in objects else batch.column(name)

    return Chunk(
        column("key"),
        column("value"),
        times,
        times,
        known[batch.column("input_partition").to_numpy()],
        batch.column("offset").to_numpy(),
        headers=batch.column("headers") if "headers" in batch.schema.names else None,
    )
