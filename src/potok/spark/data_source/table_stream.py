"""Read the changes of a table as a stream of Structured Streaming.

An offset is a committed batch of the query. For each offset the reader copies the table, and the changes between two
offsets are the differences between their copies: the same whenever Spark reads them again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from potok.errors import QueryError
from potok.records.garbage_collection import collector_paused
from potok.snapshots.rows.columns import Cells, ColumnReader
from potok.snapshots.snapshot import Snapshot, read_snapshot
from potok.snapshots.table_copy import changes_between, copied_shards, copy_table
from potok.spark.data_source.options import LATEST, BadOptionError, TableOptions
from potok.spark.data_source.spark_types import fitted
from potok.spark.data_source.table_source import TableSource

UPSERT, DELETE, CHANGE = "upsert", "delete", "change"


class CopyMissingError(QueryError):
    """A copy that a checkpoint refers to, and that does not exist."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"the copy of the table at {directory} does not exist",
            hint="restore it, or start the stream with a new checkpoint and an empty directory of copies",
        )


class ChangesPartition(InputPartition):
    """The changes of one shard between two copies."""

    def __init__(self, shard: int, before: Path | None, after: Path) -> None:
        super().__init__((shard, before, after))
        self.shard, self.before, self.after = shard, before, after


def changes_schema(rows: pa.Schema) -> pa.Schema:
    """Return the columns of changes: those of the table, and whether a row was written or deleted."""
    return rows.append(pa.field(CHANGE, pa.string()))


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has changed in a table since the last trigger: the last value of each row, not the ones between."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        if options.copies is None:
            hint = 'write .option("copies", "DIRECTORY"): one of its own for each stream, like its checkpoint'
            raise BadOptionError("a stream of changes keeps copies of the table", hint)
        self._options, self._schema, self._directory = options, schema, Path(options.copies).expanduser().resolve()
        self._layout = TableSource(options).layout
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"batch": self._copy() if self._options.starting == LATEST else 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"batch": self._copy() if self._last is None else self._last}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._copy()

    def _copy(self) -> int:
        """Copy the table at the last committed batch, and return the batch."""
        source = TableSource(self._options)
        batch = source.committed().fence.attempt.batch - 1
        if batch == 0 or self._of(batch).exists():
            return batch
        reader = ColumnReader(self._layout)

        def work(snapshot: Snapshot) -> int:
            copy_table(reader, snapshot, self._of(snapshot.batch))
            return snapshot.batch

        with collector_paused():
            return read_snapshot(source.committed, work, frozen=True)

    def _of(self, batch: int) -> Path:
        return self._directory / f"{self._options.table}-{batch}"

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start["batch"] == end["batch"]:
            return []
        before, after = (self._of(offset["batch"]) if offset["batch"] else None for offset in (start, end))
        if after is None:
            raise CopyMissingError(self._of(end["batch"]))
        for copy in (before, after):
            if copy is not None and not copy.exists():
                raise CopyMissingError(copy)
        shards = max(copied_shards(copy) for copy in (before, after) if copy is not None)
        return [ChangesPartition(shard, before, after) for shard in range(shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with collector_paused():
            yield from fitted(self._batches(partition), self._schema)

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ChangesPartition):
            return  # Spark's own partition for an empty range
        reader = ColumnReader(self._layout)
        for written, deleted in changes_between(reader, partition.before, partition.after, partition.shard):
            yield from _with_change(reader, deleted, DELETE)
            yield from _with_change(reader, written, UPSERT)

    def commit(self, end: dict[str, int]) -> None:
        """Remove the copies before an offset that Spark has processed."""
        for copy in self._directory.glob(f"{self._options.table}-*"):
            number = copy.name.rpartition("-")[2]
            if number.isdecimal() and int(number) < end["batch"]:
                shutil.rmtree(copy, ignore_errors=True)


def _with_change(reader: ColumnReader, cells: Cells, change: str) -> Iterator[pa.RecordBatch]:
    for batch in reader.decoded(*cells):
        yield batch.append_column(CHANGE, pa.repeat(pa.scalar(change), batch.num_rows))
