"""Who may write, and whose writes count.

An attempt is one try at one batch: (epoch, batch). An epoch is one start of the query. What an attempt that never
committed left behind is void, and every reader steps over it.
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
    """A write by an attempt that another one has overtaken: a task that was given up, or a second driver."""

    def __init__(self, attempt: Attempt, highest: Attempt, store: str) -> None:
        super().__init__(
            f"batch {attempt.batch} of start {attempt.epoch} may no longer write to {store}: "
            f"batch {highest.batch} of start {highest.epoch} has been there",
            hint="another process runs this query; stop one of them",
        )


@dataclass(frozen=True, slots=True)
class Fence:
    """What counts for one attempt, or for one reader.

    `ended` holds, for each epoch that is over, the last batch it committed: its later batches are void. A reader's
    attempt is the first batch after the last committed one, so that what the running batch writes is stepped over
    like void
    writes.
    """

    attempt: Attempt
    ended: Mapping[int, int] = field(default_factory=dict)

    def counts(self, epoch: int, batch: int) -> bool:
        """Whether a cell's `new` was committed before this attempt; else its `old` is what counts."""
        if epoch == self.attempt.epoch:
            return batch < self.attempt.batch
        last = self.ended.get(epoch)
        return batch <= last if last is not None else epoch < self.attempt.epoch
