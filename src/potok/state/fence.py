"""Which attempts may write, and whose writes count.

An attempt is one execution of one batch: (epoch, batch). An epoch is one start of the query. Writes of an attempt
that never committed are void, and every reader skips them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from potok.errors import StateError


class Attempt(NamedTuple):
    epoch: int
    batch: int


class StaleAttempt(StateError):
    """A write by an attempt that a later one has fenced: an abandoned task, or a second driver."""

    def __init__(self, attempt: Attempt, highest: Attempt, store: str) -> None:
        super().__init__(
            f"batch {attempt.batch} of start {attempt.epoch} may no longer write to {store}: "
            f"batch {highest.batch} of start {highest.epoch} has already written there",
            hint="another process runs this query; stop one of them",
        )


@dataclass(frozen=True, slots=True)
class Fence:
    """Which writes count for one attempt or one reader.

    `ended` holds, for each epoch that is over, the last batch it committed: its later batches are void. A reader's
    attempt is the first batch after the last committed one, so that it skips the writes of the running batch like
    void writes.
    """

    attempt: Attempt
    ended: Mapping[int, int] = field(default_factory=dict)

    def counts(self, epoch: int, batch: int) -> bool:
        """Return whether a cell's `new` was committed before this attempt; otherwise its `old` counts."""
        if epoch == self.attempt.epoch:
            return batch < self.attempt.batch
        last = self.ended.get(epoch)
        return batch <= last if last is not None else epoch < self.attempt.epoch
