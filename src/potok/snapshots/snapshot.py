"""A consistent snapshot of all tables of a query: the state as of one committed batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from potok.backends.objects.object_client import ObjectMissing
from potok.errors import QueryError
from potok.state.cell import decode_cell, decode_fixed, values_before
from potok.state.fence import Fence
from potok.state.open import StateLocation
from potok.state.store import ShardSnapshot, SnapshotGone, original_keys

T = TypeVar("T")

TRIES = 100
LONG_TRIES = 5
"""How often a long read is retried after a commit: further attempts will not be shorter."""


class TooManyCommits(QueryError):
    """The query committed a batch during every attempt to read."""

    def __init__(self, hint: str = "try again") -> None:
        super().__init__("the query commits too often to be read", hint=hint)


class Snapshot:
    """The shards of a query at one committed batch."""

    def __init__(self, shards: list[ShardSnapshot], fence: Fence) -> None:
        self._shards, self._fence = shards, fence

    @property
    def shard_snapshots(self) -> list[ShardSnapshot]:
        """The shards with their raw cells, including those of the running batch."""
        return self._shards

    @property
    def batch(self) -> int:
        """The last committed batch, which this snapshot shows."""
        return self._fence.attempt.batch - 1

    @property
    def shards(self) -> int:
        return len(self._shards)

    def get(self, table: str, shard: int, key: bytes) -> bytes | None:
        data = self._shards[shard].get(table, key)
        return None if data is None else decode_cell(data, table, key).before(self._fence)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, shard: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a table in a range of stored keys, shard by shard, or those of one shard."""
        for snapshot in self._shards if shard is None else [self._shards[shard]]:
            for key, cell in snapshot.scan(table, start, stop):
                value = cell.before(self._fence)
                if value is not None:
                    yield key, value

    def chunks(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, shard: int
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield the keys and values of one shard in a range of stored keys, many at a time and in any order."""
        for rows in self._shards[shard].chunks(table, start, stop):
            values = values_before([data for _, data in rows], self._fence, table)
            keys = original_keys(rows, table)
            there = [row for row, value in enumerate(values) if value is not None]
            if len(there) < len(rows):
                keys = [keys[row] for row in there]
            yield keys, [value for value in values if value is not None]

    def fixed_chunks(
        self, table: str, payload: np.dtype[Any], start: bytes = b"", stop: bytes | None = None, *, shard: int
    ) -> Iterator[tuple[list[bytes], npt.NDArray[Any]]]:
        """Do the same for a table whose values have one width."""
        for rows in self._shards[shard].chunks(table, start, stop):
            values, exists = decode_fixed([data for _, data in rows], payload, self._fence, table)
            keys = original_keys(rows, table)
            if not exists.all():
                keys, values = list(compress(keys, exists.tolist())), values[exists]
            yield keys, values


@dataclass(frozen=True, slots=True)
class Committed:
    """The last committed batch of a query: the location of its cells, the number of shards, and which cells count."""

    state: StateLocation
    shards: int
    fence: Fence


def open_frozen(look: Callable[[], Committed]) -> tuple[Snapshot, ExitStack] | None:
    """Open a snapshot that never changes, until the caller closes the stack; None if the store does not support it."""
    for _ in range(TRIES):
        found = look()
        with suppress(SnapshotGone), ExitStack() as opening:
            try:
                shards = opening.enter_context(found.state.snapshots(found.shards))
            except ObjectMissing:
                if look() == found:
                    raise
                continue
            if not all(shard.frozen for shard in shards):
                return None
            if look() == found:
                return Snapshot(shards, found.fence), opening.pop_all()
    raise TooManyCommits


def read_snapshot(look: Callable[[], Committed], work: Callable[[Snapshot], T], *, frozen: bool = False) -> T:
    """Run `work` on a consistent snapshot; `look` returns what is committed.

    A cell holds the value of one batch back. So this function looks, opens the snapshots, looks again, and starts
    over if a batch was committed in between. For a snapshot that is not frozen, it looks again after `work`: while no
    batch was committed, writes of the running one count with their old values. Work that takes longer than a batch
    needs `frozen` snapshots.
    """
    return read_snapshots([look], lambda snapshots: work(snapshots[0]), frozen=frozen)


def read_snapshots(
    looks: Sequence[Callable[[], Committed]], work: Callable[[list[Snapshot]], T], *, frozen: bool = False
) -> T:
    """Run `work` on snapshots of several queries at one instant: of queries that commit together, at the same batch.

    No ledger changed between the first look at it and the second, and all first looks precede all second ones: so
    there was an instant at which all ledgers had these values.
    """
    overtaken = 0
    for _ in range(TRIES):
        committed = [look() for look in looks]
        with suppress(SnapshotGone), ExitStack() as held:
            try:
                opened = [held.enter_context(found.state.snapshots(found.shards, frozen=frozen)) for found in committed]
            except ObjectMissing:
                if [look() for look in looks] == committed:
                    raise
                # Collected since the first look.
                continue
            if [look() for look in looks] != committed:
                continue
            result = work([Snapshot(shards, found.fence) for shards, found in zip(opened, committed, strict=True)])
            still = all(snapshot.frozen for shards in opened for snapshot in shards)
            if still or [look() for look in looks] == committed:
                return result
            overtaken += 1
        if overtaken == LONG_TRIES:
            urls = ", ".join(sorted({str(found.state.where) for found in committed}))
            raise TooManyCommits(f"at {urls} a read must be shorter than a batch: read less per call")
    raise TooManyCommits
