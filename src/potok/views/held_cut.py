"""A cut that is kept open from one read to the next, until the query commits another batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.state.entry import mark_of
from potok.state.store import SnapshotGone
from potok.views.cut import TRIES, Cut, TooManyMoves
from potok.views.tables import committed

T = TypeVar("T")

_WATCHED = ("ledger", "state", "cells", "tables")


class NotFrozen(QueryError):
    """Cells in a store whose snapshots change while they are read: no cut of it can be kept."""

    def __init__(self, query: str) -> None:
        super().__init__(f'no cut of query "{query}" can be kept', hint="read its tables one by one")


class HeldCut:
    """The last committed batch of a query, for many small reads of one thread: to open snapshots takes longer than to
    read a row.

    What a snapshot shows beside its ledger stays right for as long as the ledger stays: so each read asks for the
    ledger, and for nothing else. A snapshot keeps its pages from being used again, so somebody must call `release`
    when nobody has read for a while. Only for stores whose snapshots are frozen (`NotFrozen`).
    """

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self._query = broker, query
        self._names = [mark_of(query, what) for what in _WATCHED]
        self._marks: tuple[bytes | None, ...] = ()
        self._cut: Cut | None = None
        self._snapshots = ExitStack()

    @property
    def is_open(self) -> bool:
        return self._cut is not None

    def read(self, work: Callable[[Cut, bytes], T]) -> T:
        """Run `work` on the cut and the layouts of the tables in it; again, if the cells were closed meanwhile."""
        for _ in range(TRIES):
            try:
                cut = self._current()
                return work(cut, self._marks[-1] or b"{}")
            except SnapshotGone:
                self.release()
        raise TooManyMoves

    def release(self) -> None:
        """Let go of the snapshots; the next read opens others."""
        self._cut = None
        self._snapshots.close()

    def _current(self) -> Cut:
        marks = self._broker.marks_named(self._names)
        if self._cut is None or marks != self._marks:
            self.release()
            self._cut, self._marks = self._opened()
        return self._cut

    def _opened(self) -> tuple[Cut, tuple[bytes | None, ...]]:
        for _ in range(TRIES):
            marks = self._broker.marks_named(self._names)
            found = committed(self._broker, self._query)
            with ExitStack() as opening:
                snapshots = opening.enter_context(found.state.snapshots(found.shards))
                if not all(snapshot.frozen for snapshot in snapshots):
                    raise NotFrozen(self._query)
                if self._broker.marks_named(self._names) == marks:
                    self._snapshots = opening.pop_all()
                    return Cut(snapshots, found.fence), marks
        raise TooManyMoves
