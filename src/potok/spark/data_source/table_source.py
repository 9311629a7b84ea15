"""Read a table of a query as a DataFrame: one Spark partition for each shard, all at one committed batch."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.open import NoLogThere, log_exists, open_broker
from potok.records.garbage_collection import collector_paused
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.lock import is_held
from potok.settings import Settings
from potok.snapshots.rows.columns import EVERYTHING, ColumnReader, Part
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.versions import NoHistory, check_retained
from potok.snapshots.snapshot import Committed, Snapshot, read_snapshot
from potok.snapshots.table_copy import copied_shards, copy_table, read_copy
from potok.snapshots.tables import NoSuchTable, Tables, committed, known_queries
from potok.spark.data_source.filters import part_of, pushes_filters
from potok.spark.data_source.options import BadOptionError, TableOptions
from potok.spark.data_source.spark_types import fitted, spark_schema
from potok.state.fence import Attempt, Fence
from potok.state.store import ShardSnapshot

KEEP_S = 24 * 3600
"""How long copies of running queries are kept: Spark does not say when it has read them."""


class SnapshotOvertakenError(QueryError):
    """The query committed another batch before a task had read its shard."""

    def __init__(self, table: str, batch: int) -> None:
        super().__init__(
            f'table "{table}" cannot be read at batch {batch} any more: the query has committed later batches',
            hint='read it again; or pass .option("snapshot", "copy"), which copies the table first',
        )


class NoSuchBatchError(QueryError):
    """A batch whose values are no longer in the state, or not yet."""

    def __init__(self, query: str, wanted: int, last: int) -> None:
        super().__init__(
            f'query "{query}" cannot be read as of batch {wanted}: its last batch is {last}',
            hint=f"state holds two batches: pass as_of_batch={last} or {max(last - 1, 0)}; for instants, keep versions "
            "with builder.table(..., history=) and pass as_of",
        )


class TableSource:
    """A table and its query, looked up by the options."""

    def __init__(self, options: TableOptions) -> None:
        self.options = options

    @cached_property
    def broker(self) -> Broker:
        if not log_exists(self.options.broker):
            raise NoLogThere(self.options.broker)
        return open_broker(self.options.broker, Settings.load(broker=self.options.broker))

    @cached_property
    def tables(self) -> Tables:
        if self.options.query is not None:
            return Tables(self.broker, self.options.query)
        every = [Tables(self.broker, query) for query in known_queries(self.broker)]
        having = [tables for tables in every if self.options.table in tables.names()]
        if not having:
            names = sorted({name for tables in every for name in tables.names()})
            raise NoSuchTable(self.options.table, ", ".join(tables.query for tables in every) or "none", names)
        if len(having) > 1:
            queries = ", ".join(tables.query for tables in having)
            hint = f'write .option("query", "{having[0].query}")'
            raise BadOptionError(f'several queries have a table "{self.options.table}": {queries}', hint)
        return having[0]

    @cached_property
    def layout(self) -> TableLayout:
        layouts = self.tables.layouts()
        if self.options.table not in layouts:
            raise NoSuchTable(self.options.table, self.tables.query, sorted(layouts))
        return layouts[self.options.table]

    @property
    def arrow_schema(self) -> pa.Schema:
        return ColumnReader(self.layout).schema

    @property
    def schema(self) -> StructType:
        return spark_schema(self.arrow_schema)

    def committed(self) -> Committed:
        """Return what to read: the last committed batch, or the one before it."""
        found, wanted = committed(self.broker, self.tables.query), self.options.as_of_batch
        last = found.fence.attempt.batch - 1
        if wanted is None or wanted == last:
            return found
        if not 0 <= last - 1 == wanted:
            raise NoSuchBatchError(self.tables.query, wanted, last)
        ended = {epoch: min(batch, wanted) for epoch, batch in found.fence.ended.items()}
        return replace(found, fence=Fence(Attempt(found.fence.attempt.epoch, wanted + 1), ended))

    def runs(self) -> bool:
        """Return whether the query is running, so that it may commit a batch at any time."""
        return is_held(query_directory(self.broker, self.tables.query))


class ShardPartition(InputPartition):
    """One shard of the table, in the state or in a copy."""

    def __init__(self, shard: int, copy: Path | None = None) -> None:
        super().__init__((shard, copy))
        self.shard, self.copy = shard, copy


class RowsPartition(InputPartition):
    """Rows that were read while planning."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        super().__init__(None)
        self.rows = rows


class TableReader(DataSourceReader):
    """Plans and reads a table. What the tasks need is set by `partitions`."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options, self._schema, self._part = options, schema, EVERYTHING
        source = TableSource(options)
        self._layout = source.layout
        found = source.committed()
        self._committed = replace(found, state=found.state.with_password())

    def partitions(self) -> Sequence[InputPartition]:
        source = TableSource(self._options)
        if self._options.as_of is not None:
            return [RowsPartition(_as_of(source, self._options.as_of))]
        chosen = self._options.snapshot
        if chosen == "copy" or (chosen == "auto" and source.runs()):
            copy = _copied(source, self._part)
            return [ShardPartition(shard, copy) for shard in range(copied_shards(copy))]
        return [ShardPartition(shard) for shard in self._shards()]

    def _shards(self) -> list[int]:
        shards = self._committed.shards
        if self._part.keys is None:
            return list(range(shards))
        return sorted({self._layout.shard_of(key, shards) for key in self._part.keys})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with collector_paused():
            yield from fitted(self._batches(partition), self._schema)

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, RowsPartition):
            yield partition.rows
            return
        assert isinstance(partition, ShardPartition)
        reader = ColumnReader(self._layout)
        if partition.copy is not None:
            for keys, data in read_copy(partition.copy, partition.shard):
                yield from reader.decoded(keys, data)
        else:
            yield from self._of_state(reader, partition.shard)

    def _of_state(self, reader: ColumnReader, shard: int) -> Iterator[pa.RecordBatch]:
        fence, shards = self._committed.fence, self._committed.shards
        with self._committed.state.snapshot(shard) as opened:
            snapshot = Snapshot([opened] * shards, fence)
            check_not_overtaken(opened, snapshot.batch, self._layout.table)
            yield from reader.batches(snapshot, shard, self._part)
            if not opened.frozen:
                check_not_overtaken(opened, snapshot.batch, self._layout.table)


class FilteredTableReader(TableReader):
    """Reads only the part of a table that satisfies filters on keys and windows."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._part = part_of(filters, self._layout)
        return filters


def check_not_overtaken(shard: ShardSnapshot, batch: int, table: str) -> None:
    """Raise if a shard does not hold the values of a batch any more.

    A cell holds the value of one batch back, so writes of the next batch do no harm.
    """
    highest = shard.attempt()
    if highest is not None and highest.batch > batch + 1:
        raise SnapshotOvertakenError(table, batch)


def table_reader(options: TableOptions, schema: StructType) -> TableReader:
    return (FilteredTableReader if pushes_filters() else TableReader)(options, schema)


def _copied(source: TableSource, part: Part) -> Path:
    """Copy a table at its last committed batch, and remove old copies."""
    given = source.options.copies
    parent = Path(given) if given else Path(tempfile.gettempdir()) / f"potok-copies-{os.getuid()}"
    for old in parent.glob("*"):
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - KEEP_S:
                shutil.rmtree(old)
    directory = parent / uuid.uuid4().hex
    reader = ColumnReader(source.layout)

    def work(snapshot: Snapshot) -> None:
        for shard in snapshot.shard_snapshots:
            check_not_overtaken(shard, snapshot.batch, source.layout.table)
        copy_table(reader, snapshot, directory, part)

    with collector_paused():
        read_snapshot(source.committed, work, frozen=True)
    return directory


def _as_of(source: TableSource, instant_ms: int) -> pa.RecordBatch:
    layout = source.layout
    if not layout.history_ms:
        raise NoHistory(layout.table)
    check_retained(layout, source.tables.watermark_ms(layout.table), instant_ms)
    reader = ColumnReader(layout)
    return source.tables.read(lambda snapshot: reader.as_of(snapshot, instant_ms), frozen=True)
