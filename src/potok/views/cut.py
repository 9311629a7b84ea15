"""One consistent cut through all tables of a query: the state as of one committed batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from potok.errors import QueryError
from potok.state.cell import decode_cell
from potok.state.fence import Fence
from potok.state.snapshot import ShardSnapshot

T = TypeVar("T")

TRIES = 100


class TooManyMoves(QueryError):
    """The query committed batch after batch while somebody tried to look."""

    def __init__(self) -> None:
        super().__init__("the query moves on too fast to be read", hint="try again")


class Cut:
    """Snapshots of all shards that belong to one committed batch."""

    def __init__(self, shards: list[ShardSnapshot], fence: Fence) -> None:
        self._shards, self._fence = shards, fence

    @property
    def batch(self) -> int:
        """The last committed batch, which this cut shows."""
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


def with_cut(directory: Path, shards: int, fence_of: Callable[[], Fence], work: Callable[[Cut], T]) -> T:
    """Run `work` on a consistent cut.

    A cell remembers one batch back. So the fence is read, the snapshots are opened, the fence is read again, and
    if a batch was committed in between, all is done once more.
    """
    for _ in range(TRIES):
        fence = fence_of()
        with ExitStack() as stack:
            snapshots = [
                stack.enter_context(ShardSnapshot(directory / "state" / str(shard))) for shard in range(shards)
            ]
            if fence_of() == fence:
                return work(Cut(snapshots, fence))
    raise TooManyMoves
