"""Which dead letters somebody means."""

from __future__ import annotations

from dataclasses import dataclass

from potok.dead_letters.read import DeadLetter

AnyPlace = tuple[int | None, int]
"""Partition and offset of a letter; without a partition, in any."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Letters of a step, of a reason, of records of a topic, set aside between two instants, and at some places.

    What is left out is not asked for. `until_ms` itself is not included.
    """

    step: str | None = None
    reason: str | None = None
    topic: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    places: frozenset[AnyPlace] = frozenset()

    def __call__(self, letter: DeadLetter) -> bool:
        return (
            self.step in (None, letter.step)
            and self.reason in (None, letter.reason)
            and self.topic in (None, letter.topic)
            and (self.since_ms is None or letter.set_aside_at_ms >= self.since_ms)
            and (self.until_ms is None or letter.set_aside_at_ms < self.until_ms)
            and (not self.places or letter.place in self.places or (None, letter.place[1]) in self.places)
        )


EVERYTHING = Wanted()
