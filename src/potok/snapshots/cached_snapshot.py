"""A cached snapshot: it stays open from one read to the next, until the query commits another batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.snapshots.snapshot import TRIES, Snapshot, TooManyCommits, open_frozen
from potok.snapshots.tables import committed
from potok.state.entry import metadata_key_of
from potok.state.store import SnapshotGone

T = TypeVar("T")

_WATCHED = ("ledger", "state", "cells", "tables")


class NotFrozen(QueryError):
    """A store whose snapshots change while they are read, so that they cannot be cached."""

    def __init__(self, query: str) -> None:
        super().__init__(f'snapshots of query "{query}" cannot be cached', hint="read its tables one by one")


class CachedSnapshot:
    """The last committed batch of a query, for many small reads in one thread: opening a snapshot takes longer than
    reading a row.

    A snapshot is valid while the ledger is unchanged, so each read checks only the ledger. An open snapshot prevents
    the store from reusing its pages, so the owner must call `release` after a period without reads. Only for stores
    whose snapshots are frozen (`NotFrozen`).
    """

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self._query = broker, query
        self._names = [metadata_key_of(query, what) for what in _WATCHED]
        self._metadata: tuple[bytes | None, ...] = ()
        self._snapshot: Snapshot | None = None
        self._opened = ExitStack()

    @property
    def is_open(self) -> bool:
        return self._snapshot is not None

    def read(self, work: Callable[[Snapshot, bytes], T]) -> T:
        """Run `work` on the snapshot and the layouts of its tables, and again if the state was closed meanwhile."""
        for _ in range(TRIES):
            try:
                snapshot = self._current()
                return work(snapshot, self._metadata[-1] or b"{}")
            except SnapshotGone:
                self.release()
        raise TooManyCommits

    def release(self) -> None:
        """Close the snapshot; the next read opens another."""
        self._snapshot = None
        self._opened.close()

    def _current(self) -> Snapshot:
        metadata = self._broker.get_metadata_of(self._names)
        if self._snapshot is None or metadata != self._metadata:
            self.release()
            self._snapshot, self._opened, self._metadata = self._open()
        return self._snapshot

    def _open(self) -> tuple[Snapshot, ExitStack, tuple[bytes | None, ...]]:
        for _ in range(TRIES):
            metadata = self._broker.get_metadata_of(self._names)
            found = open_frozen(partial(committed, self._broker, self._query))
            if found is None:
                raise NotFrozen(self._query)
            if self._broker.get_metadata_of(self._names) == metadata:
                return *found, metadata
            found[1].close()
        raise TooManyCommits
