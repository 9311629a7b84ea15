"""The output of processors as columns: one chunk for each output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row
from potok.operators.core.call import python_rows
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, Ints, headers_of, order_of
from potok.operators.core.record_order import WIDTH, of_turns
from potok.operators.processors.context import MAIN, NO_ROW, SAME_KEY, Forwarded
from potok.operators.processors.process_key import Outcome, Work
from potok.records.rows import column_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.state.codec import load_state
from potok.topology.nodes import Process
from potok.topology.stores import RowStore

Item = tuple[int, Forwarded]
"""An output value, with the number of the key under which it was sent."""


class Output:
    """Puts what was sent under the types of the outputs, in the order of the records that led to it."""

    def __init__(self, node: Process, key_type: pa.DataType | None, keys: Column, chunk: Chunk | None) -> None:
        self._keys, self._chunk = keys, chunk
        self._key_schema = node.key_schema or (None if key_type is None else declared_schema(key_type))
        self._declared, self._fixed_key = node.key_schema is not None, node.fixed_key
        self._schemas = {MAIN: node.schema} | {number: schema for number, (_, schema) in enumerate(node.channels)}
        self._decoded_keys: list[Any] | None = None
        self._rows = {index for index, (_, store) in enumerate(node.stores) if isinstance(store, RowStore)}

    def check(self, item: Forwarded) -> None:
        """Raise if something does not fit the types of its output."""
        parts = [(item.value, self._schemas[item.channel])]
        if item.key is not SAME_KEY:
            parts.append((item.key, self._key_schema))
        for part, schema in parts:
            errors = {} if schema is None else column_of([part], schema).errors
            if errors:
                raise ValueError(errors[0])

    def misfits(self, items: list[Item]) -> list[int]:
        """The numbers of the keys with output that does not fit."""
        found: set[int] = set()
        for channel, schema in self._schemas.items():
            if schema is not None:
                mine = [item for item in items if item[1].channel == channel]
                errors = column_of([sent.value for _, sent in mine], schema).errors
                found |= {mine[row][0] for row in errors}
        if self._key_schema is not None and not self._fixed_key:
            moved = [item for item in items if item[1].key is not SAME_KEY or self._declared]
            errors = column_of([self._key(*item) for item in moved], self._key_schema).errors
            found |= {moved[row][0] for row in errors}
        return sorted(found)

    def chunks(self, items: list[Item], keys: list[bytes]) -> Iterator[tuple[int, Chunk]]:
        """The output of records in their order, then the output of timers after all records, by time and key."""
        end = 0 if self._chunk is None else len(self._chunk)
        items.sort(key=lambda item: (turn := item[1].turn, *((0, b"") if turn < end else (item[1].at, keys[item[0]]))))
        for channel in self._schemas:
            mine = items if len(self._schemas) == 1 else [item for item in items if item[1].channel == channel]
            if mine:
                yield channel, self._chunk_of(mine, self._schemas[channel])

    def changes(self, store: int, works: list[Work], outcomes: list[Outcome]) -> Chunk | None:
        """The previous and the current content of a store for each key that has changed."""
        pairs = list(zip(works, outcomes, strict=True))
        rows = [row for row, (work, made) in enumerate(pairs) if work.cells[store] != made.cells[store]]
        if not rows:
            return None
        load = _row if store in self._rows else _loaded
        return change(
            self._picked_keys(rows),
            [load(outcomes[row].cells[store]) for row in rows],
            [load(works[row].cells[store]) for row in rows],
            np.array([outcomes[row].timestamp for row in rows], np.int64),
            np.array([outcomes[row].stream_time for row in rows], np.int64),
        )

    def _chunk_of(self, items: list[Item], schema: Schema | None) -> Chunk:
        values = [sent.value for _, sent in items]
        rows = np.array([sent.row for _, sent in items], np.int64)
        return Chunk(
            self._key_column(items),
            values if schema is None else column_of(values, schema).column,
            np.array([sent.timestamp for _, sent in items], np.int64),
            np.array([sent.stream_time for _, sent in items], np.int64),
            *self._positions(rows),
            headers=self._headers(items, rows),
            order=self._order(items, rows == NO_ROW),
        )

    def _order(self, items: list[Item], timed: npt.NDArray[np.bool_]) -> Ints | None:
        """None where all records derive from records ordered by their positions: then so are these."""
        if self._chunk is not None and self._chunk.order is None and not timed.any():
            return None
        turns, stream_times = (np.array(part, np.int64) for part in zip(*map(_turn, items), strict=True))
        order = np.empty((0, WIDTH), np.int64) if self._chunk is None else order_of(self._chunk)
        return of_turns(order, turns, stream_times, timed)

    def _key_column(self, items: list[Item]) -> Column:
        if not self._declared and all(sent.key is SAME_KEY for _, sent in items):
            return self._picked_keys([number for number, _ in items])
        keys = [self._key(*item) for item in items]
        return keys if self._key_schema is None else column_of(keys, self._key_schema).column

    def _picked_keys(self, numbers: list[int]) -> Column:
        if isinstance(self._keys, list):
            return [self._keys[number] for number in numbers]
        return self._keys.take(pa.array(numbers))

    def _key(self, number: int, sent: Forwarded) -> Any:
        if sent.key is not SAME_KEY:
            return sent.key
        if self._decoded_keys is None:
            self._decoded_keys = self._keys if isinstance(self._keys, list) else python_rows(self._keys)
        return self._decoded_keys[number]

    def _positions(self, rows: Ints) -> tuple[Ints, Ints]:
        """Those of the records; what a timer sends has none."""
        if self._chunk is None:
            return np.full(len(rows), NO_INPUT_PARTITION, np.int64), np.zeros(len(rows), np.int64)
        timed = rows == NO_ROW
        return np.where(timed, NO_INPUT_PARTITION, _picked(self._chunk.input_partition, rows)), _picked(
            self._chunk.offset, rows
        )

    def _headers(self, items: list[Item], rows: Ints) -> pa.Array | None:
        taken = None
        if self._chunk is not None and self._chunk.headers is not None:
            taken = self._chunk.headers.take(pa.array(rows, mask=rows == NO_ROW))
        if all(sent.headers is None for _, sent in items):
            return taken
        own = [None] * len(items) if taken is None else taken.to_pylist()
        return headers_of(
            [
                known if sent.headers is None else [{"name": name, "value": value} for name, value in sent.headers]
                for known, (_, sent) in zip(own, items, strict=True)
            ]
        )


def _turn(item: Item) -> tuple[int, int]:
    return item[1].turn, item[1].stream_time


def _loaded(data: bytes | None) -> Any:
    return None if data is None else load_state(data)


def _row(data: bytes | None) -> Any:
    return None if data is None else decode_row(data)[1]


def _picked(column: Ints, rows: npt.NDArray[np.int64]) -> Ints:
    return np.where(rows == NO_ROW, 0, column[rows]) if len(column) else np.zeros(len(rows), np.int64)


def items_of(outcomes: list[Outcome]) -> list[Item]:
    return [(number, sent) for number, outcome in enumerate(outcomes) for sent in outcome.sent]


def failed_timers(works: list[Work], outcomes: list[Outcome]) -> tuple[Chunk, dict[int, str]] | None:
    """The timers whose calls raised, as records without a position in a topic, each with its error."""
    found = [
        (work.key, *failed) for work, outcome in zip(works, outcomes, strict=True) for failed in outcome.failed_timers
    ]
    if not found:
        return None
    times = np.array([timer.at for _, timer, _ in found], np.int64)
    input_partitions = np.full(len(found), NO_INPUT_PARTITION, np.int64)
    values = [{"timer": timer.name, "at": timer.at} for _, timer, _ in found]
    chunk = Chunk([key for key, _, _ in found], values, times, times, input_partitions, np.zeros(len(found), np.int64))
    return chunk, {row: text for row, (_, _, text) in enumerate(found)}
