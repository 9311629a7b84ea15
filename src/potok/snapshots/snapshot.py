"""A consistent snapshot of all tables of a query: the state as of one committed batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TypeVar

from potok.errors import QueryError
from potok.state.cell import decode_cell
from potok.state.fence import Fence
from potok.state.location import Place
from potok.state.store import ShardSnapshot, SnapshotGone

T = TypeVar("T")

TRIES = 100
LONG_TRIES = 5
"""Whoever read everything and was overtaken tries no more often: the next time will not be shorter."""


class TooManyMoves(QueryError):
    """The query committed batch after batch while somebody tried to look."""

    def __init__(self, hint: str = "try again") -> None:
        super().__init__("the query moves on too fast to be read", hint=hint)


class Snapshot:
    """The shards of a query at one committed batch."""

    def __init__(self, shards: list[ShardSnapshot], fence: Fence) -> None:
        self._shards, self._fence = shards, fence

    @property
    def shard_snapshots(self) -> list[ShardSnapshot]:
        """The shards with their raw cells, those of the running batch included."""
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
        """The rows of a table in a range of stored keys, shard by shard, or those of one shard."""
        for snapshot in self._shards if shard is None else [self._shards[shard]]:
            for key, cell in snapshot.scan(table, start, stop):
                value = cell.before(self._fence)
                if value is not None:
                    yield key, value


@dataclass(frozen=True, slots=True)
class Committed:
    """Where the last committed batch of a query is to be found: cells in so many shards, and which of them count."""

    state: Place
    shards: int
    fence: Fence


def open_frozen(look: Callable[[], Committed]) -> tuple[Snapshot, ExitStack] | None:
    """Open a snapshot that stays as it is until the caller closes the stack; None where the store has none of these."""
    for _ in range(TRIES):
        found = look()
        with suppress(SnapshotGone), ExitStack() as opening:
            shards = opening.enter_context(found.state.snapshots(found.shards))
            if not all(shard.frozen for shard in shards):
                return None
            if look() == found:
                return Snapshot(shards, found.fence), opening.pop_all()
    raise TooManyMoves


def read_snapshot(look: Callable[[], Committed], work: Callable[[Snapshot], T], *, frozen: bool = False) -> T:
    """Run `work` on a consistent snapshot; `look` tells what is committed.

    A cell remembers one batch back. So one looks, opens the snapshots, looks again, and if a batch was committed in
    between, all is done once more. Where a snapshot does not stay as it was, one looks again when `work` is done: as
    long as no batch was committed, what the running one wrote counts with its old values. Work that takes longer than a
    batch needs snapshots that are `frozen`.
    """
    return read_snapshots([look], lambda snapshots: work(snapshots[0]), frozen=frozen)


def read_snapshots(
    looks: Sequence[Callable[[], Committed]], work: Callable[[list[Snapshot]], T], *, frozen: bool = False
) -> T:
    """Run `work` on snapshots of several queries as of one instant: of those that commit together, at the same batch.

    No ledger changed between the first look at it and the second, and all first looks come before all second ones: so
    there was an instant at which all were as they are.
    """
    overtaken = 0
    for _ in range(TRIES):
        committed = [look() for look in looks]
        with suppress(SnapshotGone), ExitStack() as held:
            opened = [held.enter_context(found.state.snapshots(found.shards, frozen=frozen)) for found in committed]
            if [look() for look in looks] != committed:
                continue
            result = work([Snapshot(shards, found.fence) for shards, found in zip(opened, committed, strict=True)])
            still = all(snapshot.frozen for shards in opened for snapshot in shards)
            if still or [look() for look in looks] == committed:
                return result
            overtaken += 1
        if overtaken == LONG_TRIES:
            places = ", ".join(sorted({str(found.state.where) for found in committed}))
            raise TooManyMoves(f"at {places} a read must be shorter than a batch: read less at once")
    raise TooManyMoves
