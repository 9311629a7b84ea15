"""Output of a task for steps on other shards.

Values that cannot be sent, such as an open file, become dead letters here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.core.call import Errors, describe_error
from potok.operators.core.chunk import Chunk, Column, dump_objects
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Task, all_but
from potok.operators.exchange.shards import split
from potok.operators.tables.changes import blank, present


class ShuffleBlock(NamedTuple):
    """Some rows for a step on a shard. `sequence` keeps the order in which a task sent them."""

    level: int
    shard: int
    step: str
    task: int
    sequence: int
    payload: bytes


@dataclass(slots=True)
class ShuffleWriter:
    """Collect the shuffle blocks of one task."""

    task: int
    shuffle_blocks: list[ShuffleBlock] = field(default_factory=list)

    def send(self, level: int, shard: int, step: str, payload: bytes) -> None:
        self.shuffle_blocks.append(ShuffleBlock(level, shard, step, self.task, len(self.shuffle_blocks), payload))


Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

Pack = Callable[[Chunk, Rows], bytes]
"""Some rows of a chunk as bytes."""


def packed(
    step: str, task: Task, chunk: Chunk, keys: pa.Array, shards: int, pack: Pack, decoded: Chunk | None = None
) -> list[tuple[int, bytes]]:
    """Yield the bytes for each shard. `decoded` holds the same rows as `chunk`, in the form for dead letters."""
    homes = list(split(keys, shards))
    try:
        return [(shard, pack(chunk, rows)) for shard, rows in homes]
    except Exception:  # noqa: BLE001 - to pickle an object may run code of the user's; the rows that fail are found
        chunk, goes = _portable(step, task, chunk, chunk if decoded is None else decoded)
        left = [(shard, rows[goes[rows]]) for shard, rows in homes]
        return [(shard, pack(chunk, rows)) for shard, rows in left if len(rows)]


def _portable(step: str, task: Task, chunk: Chunk, decoded: Chunk) -> tuple[Chunk, Mask]:
    """Return the chunk without values that cannot be sent, and the rows that remain. In a change, such a value counts
    as no row.
    """
    stuck = {**_stuck(chunk.home), **_stuck(chunk.key)}
    errors = {**_stuck(chunk.value), **stuck}
    task.dead_letters.add(decoded, errors, step, Reason.ERROR)
    if chunk.before is None:
        return chunk, all_but(errors, len(chunk))
    before, after = (all_but(rows, len(chunk)) for rows in ({**_stuck(chunk.before), **stuck}, errors))
    chunk = chunk.with_value(blank(chunk.value, after))
    assert chunk.before is not None
    chunk.before = blank(chunk.before, before)
    return chunk, present(chunk.value) | present(chunk.before)


def _stuck(column: Column | None) -> Errors:
    """Return the rows whose items cannot be sent, each with the reason."""
    errors: Errors = {}
    for row, item in enumerate(column if isinstance(column, list) else ()):
        try:
            dump_objects([item])
        except Exception as error:  # noqa: BLE001
            errors[row] = describe_error(error)
    return errors
