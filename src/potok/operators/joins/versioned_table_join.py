"""A join of a stream with a table as of the time of each record, which waits until that version is final."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from potok.log.broker import HEADERS
from potok.operators.cells.sorted_runs import Runs
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, Ints, aligned_by
from potok.operators.core.dead_letters import InputPartition
from potok.operators.core.operator import Task, all_but
from potok.operators.core.processing_order import NOWHERE, ProcessingOrder
from potok.operators.core.unserializable import data_changes, data_records
from potok.operators.exchange.shards import key_column
from potok.operators.joins.join_rows import Origins, Rows, concat_rows, rows_of_chunk
from potok.operators.joins.join_side import JoinSide, rendered_values, stored_values
from potok.operators.joins.pairing import Joiner
from potok.operators.joins.stream_table_join import Joining
from potok.operators.tables.changes import blank, present
from potok.operators.tables.history import History, Version
from potok.operators.tables.tables import TableFilter, TableMapValues
from potok.operators.windows.expiry import NEVER
from potok.records.keys import encode_each_key
from potok.state.session import StateSession
from potok.topology.inference.joins import projected
from potok.topology.nodes.joins import JoinKind


class HistoryLookup(Joining):
    """Records wait in runs until the watermark has passed the instant they look up, and the grace; without a grace
    they do not wait. Versions are kept as long as records may look them up: the grace, or the history of the table.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        how: JoinKind,
        joiner: Joiner,
        key_type: pa.DataType | None,
        home: tuple[pa.DataType | None, ...],
        value_type: pa.DataType | None,
        row_type: pa.DataType | None,
        fields: tuple[str, ...] | None,
        times: tuple[int | None, int | None],
        sides: list[JoinSide],
        session: StateSession,
        watermark_ms: int,
        input_partitions: Sequence[InputPartition],
        turns: ProcessingOrder,
    ) -> None:
        super().__init__(name, task, how, joiner, key_type, sides)
        self._home, self._value_type, self._row_type = home, value_type, projected(row_type, fields)
        grace_ms, self._history_ms = times
        self._waits, self._grace_ms = grace_ms is not None, grace_ms or 0
        self._retained_ms = self._grace_ms if self._waits else self._history_ms or 0
        self._watermark_ms, self._input_partitions, self._origins, self._turns = (
            watermark_ms,
            input_partitions,
            Origins(input_partitions),
            turns,
        )
        self._waiting = Runs(f"{name}/waiting", session, self._grace_ms + 1, marked=True)
        self._history = History(f"{name}/versions", session)

    @property
    def state_tables(self) -> list[str]:
        return [self._waiting.table, *self._history.tables]

    def next_due(self) -> int | None:
        seen = self._history.next_seen()
        dues = (self._waiting.next_due(), None if seen is None else seen + self._retained_ms + 1)
        return min((due for due in dues if due is not None), default=None)

    def finish(self) -> None:
        changes, chunk = self.taken(1), self.taken(0)
        if changes is not None and chunk is not None and not self._waits:
            changes, chunk = self._in_turn(changes, chunk)
        if changes is not None:
            self._remember(changes)
        due = self._waiting.close(self._watermark_ms)
        if chunk is not None:
            due.append(self._wait(chunk))
        self._waiting.finish()
        due = [rows for rows in due if len(rows)]
        if due:
            self._release(concat_rows(due))
        self._history.finish(self._watermark_ms - self._retained_ms - 1 if self._watermark_ms > NEVER else NEVER)

    def _in_turn(self, changes: Chunk, chunk: Chunk) -> tuple[Chunk, Chunk]:
        """Hide later versions from records that do not wait; return what follows the last such version. Only a
        version older than its turn could be mistaken for an earlier one.
        """
        older = changes.timestamp < aligned_by(changes)
        if not older.any():
            return changes, chunk
        self._remember(changes.where(~older))
        *earlier, (late, rest) = self._turns.one_after_the_other(changes.where(older), chunk)
        for versions, records in earlier:
            if len(versions):
                self._remember(versions)
            if len(records):
                self._release(self._wait(records))
        return late, rest

    def _instants(self, chunk: Chunk) -> Ints:
        """Return the time of each record or, for a late one, the least time that is not late."""
        if not self._waits:
            return chunk.timestamp
        return np.maximum(chunk.timestamp, chunk.stream_time - self._grace_ms)

    def _remember(self, chunk: Chunk) -> None:
        if self._history_ms is not None:
            # Changes too old for the table were set aside there.
            chunk = chunk.where(chunk.timestamp + self._history_ms > chunk.stream_time)
        chunk = data_records(self, chunk, self._key_type)
        assert isinstance(chunk.key, pa.Array)
        versions: list[tuple[bytes, Version]] = []
        origins = [
            None if input_partition == NO_INPUT_PARTITION else self._origin(input_partition)
            for input_partition in chunk.input_partition.tolist()
        ]
        columns = (chunk.key.to_pylist(), self._instants(chunk).tolist(), chunk.timestamp.tolist())
        values = [plain(value) for value in python_rows(chunk.value)]
        for key, seen, time, origin, offset, value in zip(
            *columns, origins, chunk.offset.tolist(), values, strict=True
        ):
            position = NOWHERE if origin is None else (*origin, offset)
            versions.append((key, Version(seen, time, position, value)))
        self._history.add(versions)

    def _origin(self, input_partition: int) -> tuple[str, int]:
        return self._input_partitions[input_partition].topic, self._input_partitions[input_partition].partition

    def _wait(self, chunk: Chunk) -> Rows:
        """Let records wait; return those that need not."""
        values, errors = stored_values(chunk, self._value_type)
        homes = pa.nulls(len(chunk), pa.binary())
        if chunk.home is not None:
            encoded = encode_each_key(chunk.home)
            homes, errors = encoded.values, {**encoded.errors, **errors}
        headers = pa.nulls(len(chunk), HEADERS) if chunk.headers is None else chunk.headers
        packed = pa.StructArray.from_arrays([values, pa.array(chunk.timestamp), homes, headers], _PACKED)
        if errors:
            packed = packed.filter(pa.array(all_but(errors, len(chunk))))
            chunk = self.set_aside(chunk, errors)
        rows = rows_of_chunk(replace(chunk, timestamp=self._instants(chunk)), packed, self._origins)
        due = rows.times + self._grace_ms < self._watermark_ms if self._waits else np.ones(len(rows), np.bool_)
        self._waiting.add(rows.where(~due), np.zeros(int((~due).sum()), np.bool_), self._watermark_ms)
        return rows.where(due)

    def _release(self, rows: Rows) -> None:
        """Join records with the rows of their instants, in their order if they waited."""
        position = rows.offsets, rows.origins
        rows = rows.take(np.lexsort((*position, rows.times) if self._waits else position))
        value, times, homes, headers = rows.values.flatten()
        home = key_column(homes, self._home[0]) if self._home else None
        chunk = Chunk(
            rows.keys,
            rendered_values(value, self._value_type),
            times.to_numpy(),
            # The instant of the lookup: the watermark of later steps is held back by the grace.
            rows.times if self._waits else rows.stream_times,
            self._origins.input_partitions(rows.origins),
            rows.offsets,
            headers=None if headers.null_count == len(headers) else headers,
            home=home,
        )
        found = self._found(rows)
        self.join(chunk, found, present(found))

    def _found(self, rows: Rows) -> Column:
        keys = rows.keys.to_pylist()
        numbers = [number for number, key in enumerate(keys) if key is not None]
        values = self._history.values([keys[number] for number in numbers], rows.times[numbers].tolist())
        found = [None] * len(keys)
        for number, value in zip(numbers, values, strict=True):
            found[number] = value
        return found if self._row_type is None else pa.array(found, self._row_type)


_PACKED = ["value", "timestamp", "home", "headers"]


class HistoryFilter(TableFilter):
    """A record of a table that does not pass its filter counts as a delete."""

    def process(self, chunk: Chunk) -> None:
        self.emit(chunk.with_value(blank(chunk.value, self._passes(chunk, report=False))))


class HistoryMapValues(TableMapValues):
    """Replace the values of a table's records; one that raises counts as a delete, and the table has set it aside. A
    value that is not data deletes too.
    """

    def process(self, chunk: Chunk) -> None:
        self.emit(data_changes(self, chunk.with_value(self._mapped(chunk, report=False))))
