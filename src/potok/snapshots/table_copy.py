"""Copies of a table at one committed batch, for readers that take longer than a batch, and the changes between two.

A copy is a directory with one file of cells for each shard, so that a reader decodes a shard, or only its changes. A
directory that has its name is complete.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from potok.permissions import private_directory
from potok.snapshots.rows.columns import EVERYTHING, Cells, ColumnReader, Part, split
from potok.snapshots.snapshot import Snapshot
from potok.state.store import CHUNK

_SCHEMA = pa.schema([("key", pa.binary()), ("cell", pa.binary())])


class Changes(NamedTuple):
    """What is different in a later copy."""

    written: Cells
    """Rows that are new, or have another value."""
    deleted: Cells
    """Rows that no longer exist, with their last value."""


def copy_table(reader: ColumnReader, snapshot: Snapshot, directory: Path, part: Part = EVERYTHING) -> None:
    """Write the cells of a table to a directory, unless it exists."""
    if directory.exists():
        return
    private_directory(directory.parent)
    draft = directory.with_name(f".{uuid.uuid4().hex}")
    private_directory(draft)
    for shard in range(snapshot.shards):
        with pa.OSFile(str(_file(draft, shard)), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            for keys, data in reader.cells(snapshot, shard, part):
                for start in range(0, len(keys), CHUNK):
                    both = keys[start : start + CHUNK], data[start : start + CHUNK]
                    writer.write_batch(pa.record_batch([pa.array(column, pa.binary()) for column in both], _SCHEMA))
    try:
        os.rename(draft, directory)
    except OSError:
        # Another reader has made the same copy meanwhile.
        shutil.rmtree(draft, ignore_errors=True)
        if not directory.exists():
            raise


def copied_shards(directory: Path) -> int:
    """Return the number of shards of a copy."""
    return len(list(directory.glob("*.arrow")))


def read_copy(directory: Path, shard: int) -> Iterator[Cells]:
    """Yield the cells of one shard of a copy; none if the copy has fewer shards."""
    path = _file(directory, shard)
    if not path.exists():
        return
    with pa.memory_map(str(path)) as file:
        opened = pa.ipc.open_file(file)
        for number in range(opened.num_record_batches):
            batch = opened.get_batch(number)
            yield batch.column(0).to_pylist(), batch.column(1).to_pylist()


def changes_between(reader: ColumnReader, before: Path | None, after: Path, shard: int) -> Iterator[Changes]:
    """Yield the changes of one shard between two copies, many at a time; without an earlier copy, all rows are new."""
    old: dict[bytes, bytes] = {}
    if before is not None:
        for keys, data in read_copy(before, shard):
            old.update(zip(keys, data, strict=True))
    for keys, data in read_copy(after, shard):
        rows = zip(keys, data, map(old.pop, keys, repeat(None)), strict=True)
        changed = [row for row in rows if row[1] != row[2]]
        if changed:
            gone = reader.hidden([cell for _, cell, _ in changed])
            written = [(key, cell) for (key, cell, _), hides in zip(changed, gone, strict=True) if not hides]
            deleted = [
                (key, was) for (key, _, was), hides in zip(changed, gone, strict=True) if hides and was is not None
            ]
            yield Changes(split(written), split(deleted))
    rest = iter(old.items())
    while part := list(islice(rest, CHUNK)):
        yield Changes(([], []), split(part))


def _file(directory: Path, shard: int) -> Path:
    return directory / f"{shard:05}.arrow"
