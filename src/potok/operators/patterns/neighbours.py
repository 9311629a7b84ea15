"""Neighbouring records of a key: what a pattern reads of them, and whether a record is the first of its key.

The cell of a key holds the last records that later ones may look back at, and those that wait for later records. It
exists once the key has had a record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from potok.operators.core.call import plain_all
from potok.operators.core.chunk import Chunk, Ints, as_objects, order_of
from potok.operators.core.dead_letters import InputPartition
from potok.operators.exchange.shards import key_column
from potok.state.cell import reading_cells
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession
from potok.topology.inference.patterns import shifted_type
from potok.topology.nodes import Match


def neighbours_of(step: str) -> str:
    """Return the table of the records that others look at."""
    return f"{step}/neighbours"


class _Kept(NamedTuple):
    """A record that waits for later ones."""

    value: dict[str, Any]
    time: int
    topic: str
    partition: int
    offset: int
    order: tuple[int, ...]
    first: bool


class Extended(NamedTuple):
    """Records with the fields of their neighbours, the numbers of their keys, and which of them are the first of their
    keys."""

    chunk: Chunk
    key_numbers: Ints
    first: np.ndarray[Any, np.dtype[np.bool_]]


class Neighbours:
    """Adds the fields of neighbouring records. A record that needs later ones waits for them."""

    def __init__(
        self,
        node: Match,
        key_type: pa.DataType | None,
        value_type: pa.DataType,
        session: StateSession,
        input_partitions: list[InputPartition],
    ) -> None:
        self.table = neighbours_of(node.name)
        self._shifts, self._before, self._ahead = node.shifts, node.before, node.ahead
        self._kept_fields = tuple(dict.fromkeys(shift.field for shift in node.shifts))
        self._key_type, self._session = key_type, session
        self._type = shifted_type(value_type, node.shifts)
        self._topic_partitions = [(one.topic, one.partition) for one in input_partitions]
        self._numbers = {topic_partition: number for number, topic_partition in enumerate(self._topic_partitions)}
        self.waiting: dict[bytes, int] = {}
        """The time of the first record that waits, for the keys that were read."""

    def extend(self, chunk: Chunk, keys: list[bytes], key_numbers: Ints) -> Extended:
        """Return the records that no longer wait, with the fields of their neighbours. Keys are those of the chunk."""
        received: list[list[_Kept]] = [[] for _ in keys]
        for number, record in zip(key_numbers.tolist(), self._records(chunk), strict=True):
            received[number].append(record)
        before = self._session.read(self.table, keys)
        cells: list[tuple[bytes, bytes | None, bytes | None]] = []
        free: list[tuple[int, _Kept, dict[str, Any]]] = []
        for number, (key, data) in enumerate(zip(keys, before, strict=True)):
            recent, waiting = self._load(data)
            if data is None and received[number]:
                received[number][0] = received[number][0]._replace(first=True)
            records = [*waiting, *received[number]]
            known = [*recent, *(record.value for record in records)]
            ready = max(len(records) - self._ahead, 0)
            for index, record in enumerate(records[:ready]):
                free.append((number, record, self._shifted(record.value, known, len(recent) + index)))
            end = len(recent) + ready
            after = self._dump(known[max(end - self._before, 0) : end] if self._before else [], records[ready:])
            self._note(key, records[ready:])
            if after != data:
                cells.append((key, after, data))
        if cells:
            self._session.write(self.table, cells)
        return self._extended(free, keys)

    def look(self, keys: list[bytes]) -> None:
        """Find the records that wait under keys without new records."""
        if self._ahead and keys:
            for key, data in zip(keys, self._session.read(self.table, keys), strict=True):
                self._note(key, self._load(data)[1])

    def _note(self, key: bytes, waiting: list[_Kept]) -> None:
        if waiting:
            self.waiting[key] = waiting[0].time

    def _records(self, chunk: Chunk) -> list[_Kept]:
        topic_partitions = [*self._topic_partitions, ("", -1)]
        columns = chunk.timestamp.tolist(), chunk.input_partition.tolist(), chunk.offset.tolist()
        orders = map(tuple, order_of(chunk).tolist())
        parts = zip(plain_all(as_objects(chunk.value)), *columns, orders, strict=True)
        return [
            _Kept(value, time, topic, partition, offset, order, False)
            for value, time, number, offset, order in parts
            for topic, partition in (topic_partitions[number],)
        ]

    def _shifted(self, value: dict[str, Any], known: list[dict[str, Any]], at: int) -> dict[str, Any]:
        found = dict(value)
        for shift in self._shifts:
            index = at + shift.by
            found[shift.name] = known[index][shift.field] if 0 <= index < len(known) else None
        return found

    def _load(self, data: bytes | None) -> tuple[list[dict[str, Any]], list[_Kept]]:
        if data is None:
            return [], []
        with reading_cells(self.table):
            recent, waiting = load_state(data)
        return (
            [dict(zip(self._kept_fields, values, strict=True)) for values in recent],
            [
                _Kept(value, time, topic, partition, offset, tuple(order), first)
                for value, time, topic, partition, offset, order, first in waiting
            ],
        )

    def _dump(self, recent: list[dict[str, Any]], waiting: list[_Kept]) -> bytes:
        kept = [[value[name] for name in self._kept_fields] for value in recent]
        return dump_state((kept, [[*record[:5], list(record.order), record.first] for record in waiting]))

    def _extended(self, free: list[tuple[int, _Kept, dict[str, Any]]], keys: list[bytes]) -> Extended:
        numbers = np.array([number for number, _, _ in free], np.int64)
        records = [record for _, record, _ in free]
        times = np.array([record.time for record in records], np.int64)
        places = [self._numbers.get((record.topic, record.partition), -1) for record in records]
        chunk = Chunk(
            key_column(pa.array([keys[number] for number in numbers.tolist()], pa.binary()), self._key_type),
            pa.array([value for _, _, value in free], self._type),
            times,
            times,
            np.array(places, np.int64),
            np.array([record.offset for record in records], np.int64),
            order=np.array([record.order for record in records], np.int64) if records else None,
        )
        return Extended(chunk, numbers, np.array([record.first for record in records], np.bool_))
