"""Select dead letters by step, reason, topic, time and position."""

from __future__ import annotations

from dataclasses import dataclass

from potok.dead_letters.read import DeadLetter

AnyPosition = tuple[int | None, int]
"""Partition and offset of a dead letter; without a partition, in any."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters of a step, a reason, a source topic, a time range and some positions.

    A criterion that is not given selects everything. `until_ms` is exclusive.
    """

    step: str | None = None
    reason: str | None = None
    topic: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    positions: frozenset[AnyPosition] = frozenset()

    def __call__(self, dead_letter: DeadLetter) -> bool:
        return (
            self.step in (None, dead_letter.step)
            and self.reason in (None, dead_letter.reason)
            and self.topic in (None, dead_letter.topic)
            and (self.since_ms is None or dead_letter.set_aside_at_ms >= self.since_ms)
            and (self.until_ms is None or dead_letter.set_aside_at_ms < self.until_ms)
            and (
                not self.positions
                or not self.positions.isdisjoint({dead_letter.position, (None, dead_letter.position[1])})
            )
        )


EVERYTHING = Selection()
