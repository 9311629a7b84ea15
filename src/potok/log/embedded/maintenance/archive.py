"""Move old segments to the archive: write the file durably, update the metadata, then delete the segment."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from potok.errors import LogError
from potok.log.embedded import catalog
from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.maintenance.archived import ARCHIVE_SCHEMA, ArchivedSegment, archive_directory, file_name
from potok.log.embedded.metadata import NO_ROOM, Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.embedded.segments.assemble import Assembler
from potok.log.embedded.segments.read import read_segment
from potok.log.embedded.segments.segment import delete_files, segment_path, sync_data, sync_directory
from potok.log.errors import CorruptSegment, DiskFull
from potok.log.failpoint import failpoint
from potok.log.maintenance import ArchivedFile
from potok.permissions import private_directory, private_opener

_UNFINISHED = ".writing"
_NAME = re.compile(r"(\d{20})\.parquet")


class Archiver:
    """Archives the oldest segments of one partition. Used under its maintenance lock."""

    def __init__(self, metadata: Metadata, topics: Path, topic: Topic, partition: int, directory: Path, root: Path):
        self._metadata, self._topics, self._topic, self._partition = metadata, topics, topic, partition
        self._directory = directory
        self._archive = archive_directory(root, topic, partition)

    def move(self, segments: Sequence[Segment]) -> list[ArchivedFile]:
        """Archive segments, which are the oldest ones, until one of them has changed meanwhile."""
        if segments:
            self._prepare()
        moved = []
        for segment in segments:
            file = self._move(segment)
            if file is None:
                break
            moved.append(file)
        return moved

    def _move(self, segment: Segment) -> ArchivedFile | None:
        path = self._archive / file_name(segment.base_offset)
        try:
            self._write(segment, path)
        except CorruptSegment:
            if self._metadata.read(lambda txn: self._still_there(txn, segment)):
                raise
            return None  # retention was faster
        size, portable = path.stat().st_size, archived.portable(self._topics, path)
        bounds = segment.base_offset, segment.end_offset
        entry = ArchivedSegment(*bounds, segment.held, size, portable, archived.part_sums(path))
        if not self._metadata.write(lambda txn: self._record(txn, segment, entry)):
            path.unlink(missing_ok=True)
            return None
        failpoint("log.archive.committed")
        delete_files([segment_path(self._directory, segment.base_offset, segment.generation)])
        failpoint("log.archive.deleted")
        return ArchivedFile(self._partition, *entry[:4], path=str(path))

    def _prepare(self) -> None:
        """Create the directory and remove the files of an interrupted run.

        A file is only removed if the log still holds its records: the directory may contain files of others.
        """
        try:
            private_directory(self._archive)
        except OSError as error:
            raise LogError(
                f"cannot archive to {self._archive}: {error.strerror}", hint="name a directory that can be written"
            ) from error
        sealed.sweep_unknown(self._metadata, self._directory, self._topic, self._partition)
        start = self._metadata.read(lambda txn: catalog.get_state(txn, self._topic, self._partition)).start_offset
        for path in self._archive.iterdir():
            name = _NAME.fullmatch(path.name.removesuffix(_UNFINISHED))
            if name and (path.suffix == _UNFINISHED or int(name[1]) >= start):
                path.unlink(missing_ok=True)

    def _write(self, segment: Segment, path: Path) -> None:
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            self._write_parquet(segment, unfinished)
            failpoint("log.archive.written")
            with unfinished.open("rb+") as file:
                sync_data(file.fileno())
            unfinished.rename(path)
            sync_directory(self._archive)
        except LogError:
            unfinished.unlink(missing_ok=True)
            raise
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            if error.errno in NO_ROOM:
                raise DiskFull(path, os.strerror(error.errno)) from error
            raise LogError(f"cannot write {path}: {error}", hint="nothing was archived; check the disk") from error
        failpoint("log.archive.renamed")

    def _write_parquet(self, segment: Segment, path: Path) -> None:
        assembler = Assembler(segment.base_offset, segment.end_offset)
        with (
            open(path, "wb", opener=private_opener) as file,
            pq.ParquetWriter(
                file,
                ARCHIVE_SCHEMA,
                compression="zstd",
                use_dictionary=["key", "partition"],
                write_statistics=["offset", "timestamp", "ingested"],
                write_page_checksum=True,
            ) as writer,
        ):
            for batch in read_segment(self._directory, segment, assembler):
                partition = pa.array(np.full(len(batch), self._partition, np.int32))
                writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, partition], schema=ARCHIVE_SCHEMA))

    def _still_there(self, txn: Transaction, segment: Segment) -> bool:
        return sealed.still_there(txn, self._topic, self._partition, [segment])

    def _record(self, txn: Transaction, segment: Segment, entry: ArchivedSegment) -> bool:
        """Record the archived segment; return False if the segment has changed meanwhile."""
        if not self._still_there(txn, segment):
            return False
        archived.put(txn, self._topic, self._partition, entry)
        sealed.replace_segments(txn, self._topic, self._partition, [segment], None)
        return True
