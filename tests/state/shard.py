"""A shard of a query for a test, in any of the stores."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from potok.backends.state_url import Where
from potok.state.open import close_store, open_snapshots, open_store
from potok.state.store import ShardSnapshot, Store


@dataclass(frozen=True)
class Shard:
    """The first shard of a query with a unique name."""

    where: Where
    query: str = field(default_factory=lambda: uuid.uuid4().hex)

    def store(self, *, create: bool = True) -> Store:
        return open_store(self.where, self.query, 0, create=create)

    @contextmanager
    def snapshot(self) -> Iterator[ShardSnapshot]:
        with open_snapshots(self.where, self.query, 1) as snapshots:
            yield snapshots[0]

    def close(self) -> None:
        close_store(self.where, self.query, 0)
