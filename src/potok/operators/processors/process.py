"""Processors: the state of all keys of a batch is read at once, and what changed is written at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from potok.operators.core.call import python_rows
from potok.operators.core.chunk import Chunk, aligned_by, concat, in_order
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import SeveralOutputs, Task, all_but
from potok.operators.core.record_order import by_time
from potok.operators.exchange.shards import key_column
from potok.operators.processors.context import MAIN, Context
from potok.operators.processors.key_timers import Rows, TimerCells
from potok.operators.processors.output import Output, failed_timers, items_of
from potok.operators.processors.process_key import KeyCalls, Outcome, Records, Work
from potok.operators.processors.stores import open_store
from potok.records.keys import encode_each_key
from potok.state.session import StateSession
from potok.topology.nodes import Process
from potok.topology.stores import RowStore, is_readable


class ProcessRecords(SeveralOutputs):
    """Call a processor for each record, in order, and for each timer that is due."""

    def __init__(
        self,
        node: Process,
        task: Task,
        key_type: pa.DataType | None,
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        *,
        by_stream_time: bool,
    ) -> None:
        super().__init__(node.name, task)
        self._node, self._key_type, self._session = node, key_type, session
        self._watermark_ms, self._input_partitions, self._by_stream_time = (
            watermark_ms,
            input_partitions,
            by_stream_time,
        )
        self._timers = TimerCells(node.name, session) if node.timed else None
        self._tables = [node.cells_of(store) for store, _ in node.stores]
        # Readable stores are outputs after the named ones.
        readable = [index for index, (_, store) in enumerate(node.stores) if is_readable(store)]
        self._readable = dict(enumerate(readable, len(node.channels)))
        # The rows of a node that is a table are its main output.
        for index, (_, store) in enumerate(node.stores):
            if isinstance(store, RowStore):
                self._readable[MAIN] = index
        self._chunks: list[Chunk] = []

    @property
    def state_tables(self) -> list[str]:
        return self._tables + (self._timers.tables if self._timers is not None else [])

    def next_due(self) -> int | None:
        return None if self._timers is None else self._timers.next_due()

    def next_timer(self) -> int | None:
        return None if self._timers is None else self._timers.next_timer()

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        chunk, groups = self._grouped()
        due = set() if self._timers is None else self._timers.due(self._watermark_ms, self.task.processing_time_ms)
        keys = [*groups, *sorted(due - groups.keys())]
        if not keys:
            return
        column = key_column(pa.array(keys, pa.binary()), self._key_type)
        output = Output(self._node, self._key_type, column, chunk)
        calls = self._calls(chunk, output)
        works = self._works(keys, python_rows(column), groups)
        outcomes = [calls.run(work) for work in works]
        items = items_of(outcomes)
        misfits = output.misfits(items)
        for number in misfits:
            outcomes[number] = calls.carefully(works[number])
        self._write(keys, works, outcomes)
        self._set_aside(chunk, works, outcomes)
        for channel, made in output.chunks(items_of(outcomes) if misfits else items, keys):
            self._send(channel, made)
        for channel, index in self._readable.items():
            if self.downstream if channel == MAIN else self.outputs.get(channel):
                changes = output.changes(index, works, outcomes)
                if changes is not None:
                    self._send(channel, changes)

    def _grouped(self) -> tuple[Chunk | None, dict[bytes, list[int]]]:
        """Return the records in order, and the numbers of those of each key."""
        if not self._chunks:
            return None, {}
        whole = concat(self._chunks)
        if self._node.aligns:
            whole.order = by_time(aligned_by(whole), whole.input_partition, whole.offset)
        chunk = in_order(whole)
        self._chunks = []
        encoded = encode_each_key(chunk.key)
        keys = encoded.values.to_pylist()
        if encoded.values.null_count or encoded.errors:
            missing = {row: "the record has no key" for row, key in enumerate(keys) if key is None}
            missing = {row: text for row, text in missing.items() if row not in encoded.errors}
            self.task.dead_letters.add(chunk, encoded.errors, self.name, Reason.ERROR)
            self.task.dead_letters.add(chunk, missing, self.name, Reason.NO_KEY)
            keys = [key for row, key in enumerate(keys) if row not in missing and row not in encoded.errors]
            chunk = chunk.where(all_but({**missing, **encoded.errors}, len(chunk)))
        groups: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            groups.setdefault(key, []).append(row)
        return chunk, groups

    def _works(self, keys: list[bytes], decoded_keys: list[Any], groups: dict[bytes, list[int]]) -> list[Work]:
        cells = [self._session.read(table, keys) for table in self._tables]
        timers = [None] * len(keys) if self._timers is None else self._timers.read(keys)
        by_key: Sequence[Sequence[bytes | None]] = list(zip(*cells, strict=True)) if cells else [()] * len(keys)
        return [
            Work(number, decoded_keys[number], groups.get(key, ()), list(by_key[number]), timers[number])
            for number, key in enumerate(keys)
        ]

    def _calls(self, chunk: Chunk | None, output: Output) -> KeyCalls:
        node = self._node
        ctx = Context(
            chunk,
            self._input_partitions,
            tuple(name for name, _ in node.channels),
            self.task.processing_time_ms,
            fixed_key=node.fixed_key,
            has_timers=node.processor.has_timers,
        )
        ctx.stores = {
            name: open_store(store, ctx, self._watermark_ms, table)
            for (name, store), table in zip(node.stores, self._tables, strict=True)
        }
        processor = copy.copy(node.processor)
        processor.bind(ctx.stores)
        return KeyCalls(
            processor,
            ctx,
            list(ctx.stores.values()),
            Records(chunk),
            self._watermark_ms,
            by_stream_time=self._by_stream_time,
            check=output.check,
        )

    def _write(self, keys: list[bytes], works: list[Work], outcomes: list[Outcome]) -> None:
        for index, table in enumerate(self._tables):
            before, after = ([item.cells[index] for item in side] for side in (works, outcomes))
            self._session.write(table, _changed(keys, before, after))
        if self._timers is not None:
            self._timers.write(_changed(keys, [w.timers for w in works], [o.timers for o in outcomes]))

    def _set_aside(self, chunk: Chunk | None, works: list[Work], outcomes: list[Outcome]) -> None:
        errors = {row: text for outcome in outcomes for row, text in outcome.errors.items()}
        if chunk is not None:
            self.set_aside(chunk, errors)
        timers = failed_timers(works, outcomes)
        if timers is not None:
            self.set_aside(*timers)

    def _send(self, channel: int, chunk: Chunk) -> None:
        if channel == MAIN:
            self.emit(chunk)
            return
        self.task.records_out[self.name] += len(chunk)
        for receiver in self.outputs.get(channel, []):
            receiver.push(chunk)


def _changed(keys: list[bytes], before: list[bytes | None], after: list[bytes | None]) -> Rows:
    """Return the cells that have changed."""
    return [(key, new, old) for key, new, old in zip(keys, after, before, strict=True) if new != old]
