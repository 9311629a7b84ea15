"""Land what a stream of changes delivers, and the chunks of snapshots between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from potok.sources.cdc.landing.landing import CapturePosition, Landing, Output
from potok.sources.cdc.landing.snapshots import Snapshots, Transactions
from potok.sources.cdc.progress import Progress

_STORE_S = 1.0
"""How often a position is stored behind which nothing has landed."""


class Follower:
    """What a session does with what it has read, whatever the database.

    Args:
        stored: Called with each position that has become durable.
    """

    def __init__(
        self,
        landing: Landing,
        transactions: Transactions,
        snapshots: Snapshots,
        position: CapturePosition,
        progress: Progress,
        stored: Callable[[CapturePosition], None],
    ) -> None:
        self._landing, self._transactions, self._snapshots = landing, transactions, snapshots
        self._progress, self._stored = progress, stored
        self._stored_at = time.monotonic()
        self.position = position
        """What is durable."""

    def begin(self) -> None:
        self._progress.update(state="snapshot" if self._snapshots.table else "streaming", problem=None)
        self._snapshots.request_next(self._transactions)

    def land(self) -> None:
        """Land what is pending, with the position behind it."""
        pending = self._transactions.pending
        if pending.count:
            count, position = pending.count, self._transactions.position(self.position)
            self._store(self._landing.land(pending.take(), position))
            self._progress.add_changes(count)

    def land_outputs(self, outputs: Sequence[Output]) -> None:
        """Land records behind those that have landed; nothing may be pending."""
        self._store(self._landing.land(outputs, self._transactions.position(self.position)))

    def land_chunk(self) -> None:
        """Land the rows of a chunk behind all changes that it has seen, and ask for the next."""
        pending = self._transactions.pending
        count = pending.count
        merged = self._snapshots.merge(self._transactions, self.position)
        outputs = pending.take()
        position = self._transactions.position(self.position)
        if merged is not None:
            outputs += merged.outputs
            position = position.with_table(merged.table, merged.progress)
        if merged is not None or outputs:
            self._store(self._landing.land(outputs, position))
        self._progress.add_changes(count)
        self._snapshots.landed(self.position)
        self._snapshots.request_next(self._transactions)
        if not self._snapshots.table:
            self._progress.update(state="streaming")

    def idle(self) -> None:
        """Land what is pending, and store the position now and then: there is nothing to read."""
        self.land()
        self._progress.caught_up()
        self._snapshots.check()
        position = self._transactions.position(self.position)
        if position.stream != self.position.stream and time.monotonic() - self._stored_at > _STORE_S:
            self._landing.store(position)
            self._store(position)

    def _store(self, position: CapturePosition) -> None:
        self._snapshots.check()
        self.position = position
        self._stored_at = time.monotonic()
        self._stored(position)
