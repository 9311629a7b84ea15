"""Deliver messages that a server confirms: in rounds, each of which repeats what the one before left unconfirmed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter

CONNECT_S, CONFIRM_S = 10.0, 30.0
WINDOW = 1_000
"""The most messages that are published and not confirmed."""

M = TypeVar("M")


@dataclass(slots=True)
class Round:
    """What became of some messages until all were confirmed, or the connection ended."""

    left: list[int]
    """The messages that are neither confirmed nor failures."""

    uncertain: list[int] = field(default_factory=list)
    """Those of them that may have arrived."""

    failures: Failures = field(default_factory=dict)
    cause: str = ""
    fatal: bool = False
    """Whether a retry cannot help."""


class ConfirmedWriter(SinkWriter, Generic[M]):
    """Publishes in order, and repeats what was not confirmed, under the same ids.

    With at_most_once nothing is published twice: what may have arrived without a confirmation becomes a dead letter.
    """

    def __init__(self, label: str, give_up_after_ms: int | None, opening: Opening) -> None:
        self._label, self._give_up_after_ms, self._opening = label, give_up_after_ms, opening
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE

    def connect(self) -> None:
        """Connect for the first time, and find what is wrong before there are records."""
        try:
            self._rounds(self._opening.committed + 1, [], GIVE_UP_MS)
        except BaseException:
            self.close()
            raise

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        return self._rounds(batch.number, self.messages(batch, rows), GIVE_UP_MS if self._once else BRIEFLY_MS)

    @abstractmethod
    def messages(self, batch: Batch, rows: Rows) -> Sequence[M]:
        """Return the records as they are published."""

    @abstractmethod
    def publish(self, messages: Sequence[M], rows: list[int]) -> Round:
        """Connect if necessary, and publish some messages until all are confirmed or the connection ends."""

    def _rounds(self, batch: int, messages: Sequence[M], retry_ms: int) -> Failures:
        failures: Failures = {}
        left = list(range(len(messages)))
        retry = self._retry(retry_ms)
        while True:
            done = self.publish(messages, left)
            failures |= done.failures
            if done.fatal:
                raise self._failed(batch, done.cause, passing=False)
            if not done.cause:
                return dict(sorted(failures.items()))
            if self._once:
                failures |= dict.fromkeys(done.uncertain, f"not confirmed: {done.cause}")
                done.left = [row for row in done.left if row not in failures]
                if messages and not done.left:
                    return dict(sorted(failures.items()))
            if len(done.left) < len(left):
                retry = self._retry(retry_ms)
            left = done.left
            if not retry.wait():
                if self._once and messages:
                    return dict(sorted((failures | dict.fromkeys(left, f"not published: {done.cause}")).items()))
                raise self._failed(batch, done.cause, passing=True)

    def _retry(self, retry_ms: int) -> Retry:
        return Retry(self._give_up_after_ms or retry_ms)

    def _failed(self, batch: int, cause: str, *, passing: bool) -> DeliveryFailed:
        passing = passing and self._give_up_after_ms is None
        remedy = "pass declare=False to use the queue as it is" if "inequivalent arg" in cause else None
        step, lost = self._opening.step, self._once
        return DeliveryFailed(step, self._label, batch, cause, lost=lost, passing=passing, remedy=remedy)
