"""Small chunks and tasks for tests that drive one operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.operators.core.chunk import Chunk, Column
from potok.operators.core.dead_letters import DeadLetters, InputPartition, Original
from potok.operators.core.operator import Task
from potok.state.fence import Attempt, Fence
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.state.session import StateSession

INPUT_PARTITIONS = [InputPartition("a", 0), InputPartition("b", 0)]


class Catch:
    """Receives what an operator emits."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def push(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def rows(self) -> list[tuple[Any, Any]]:
        return [row for chunk in self.chunks for row in zip(items(chunk.key), items(chunk.value), strict=True)]

    def changes(self) -> list[tuple[Any, Any, Any]]:
        """Key, value before and value after."""
        return [
            row
            for chunk in self.chunks
            if chunk.before is not None
            for row in zip(items(chunk.key), items(chunk.before), items(chunk.value), strict=True)
        ]


def items(column: Column) -> list[Any]:
    return list(column) if isinstance(column, list) else column.to_pylist()


def chunk_of(
    keys: Column, values: Column, times: list[int] | None = None, *, input_partition: int = 0, first_offset: int = 0
) -> Chunk:
    at = np.array(times if times is not None else range(len(keys)), np.int64)
    count = len(at)
    return Chunk(
        keys,
        values,
        at,
        np.maximum.accumulate(at) if count else at,
        np.full(count, input_partition, np.int64),
        np.arange(first_offset, first_offset + count, dtype=np.int64),
        raw_key=pa.array([None if key is None else str(key).encode() for key in items(keys)], pa.binary()),
        raw_value=pa.array([repr(value).encode() for value in items(values)], pa.binary()),
        intact=True,
    )


def task_of() -> Task:
    return Task(DeadLetters(INPUT_PARTITIONS, read_again, 7))


def read_again(topic: str, partition: int, offsets: Sequence[int]) -> dict[int, Original]:
    return {offset: Original(b"key", f"{topic}/{offset}".encode()) for offset in offsets}


def letters(task: Task) -> list[dict[str, str]]:
    """The headers of the dead letters, and their key and value."""
    found = []
    rows = (row for batch in task.dead_letters.batches(LOG_SCHEMA) for row in batch.to_pylist())
    for row in rows:
        headers = {header["name"].removeprefix("potok."): header["value"].decode() for header in row["headers"]}
        found.append(headers | {"key": row["key"], "value": row["value"]})
    return found


def session_of(path: Path, batch: int = 1, epoch: int = 1, ended: dict[int, int] | None = None) -> StateSession:
    return StateSession(LmdbStore(path), Fence(Attempt(epoch, batch), ended or {}))
