"""How large a batch may be, so that it takes about as long as it should."""

from __future__ import annotations

from dataclasses import dataclass

LEAST = 1_000
FIRST = 250_000
FIRST_ONE_BY_ONE = 20_000
"""Where each record goes through a function of the user's: there is no knowing how long that takes."""

WORTH = 2
"""A batch should spend this many times longer on its records than on what every batch costs."""

_ALIKE = 0.75
"""Batches whose sizes are closer than this tell nothing about what the difference costs."""


@dataclass(slots=True)
class Pace:
    """Grows while batches are quick and shrinks when one takes too long, so that a backlog does not blow the memory.

    It does not shrink below what is worth a batch: where every batch costs a second, however small it is, halves of
    batches would take nearly as long as the whole ones.
    """

    target_ms: int
    most: int
    limit: int = FIRST
    _last: tuple[int, int] | None = None
    _other: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.most)

    def learn(self, records: int, batch_ms: int) -> int:
        """Take one batch into account; returns the limit for the next one."""
        full = records >= self.limit * 0.9
        factor = self.target_ms / max(batch_ms, 1)
        if records > LEAST:
            self._remember(records, batch_ms)
        if factor < 1 and records > LEAST:
            self.limit = max(int(min(self.limit, records) * max(factor, 0.5)), self._worth())
        elif factor > 1 and full:
            self.limit = int(self.limit * min(factor, 4.0))
        self.limit = min(max(LEAST, self.limit), self.most)
        return self.limit

    def _remember(self, records: int, batch_ms: int) -> None:
        if self._last is not None and not _alike(records, self._last[0]):
            self._other = self._last
        self._last = records, batch_ms

    def _worth(self) -> int:
        """How many records are worth a batch, as far as two of different sizes tell; no more than the larger had."""
        if self._last is None or self._other is None:
            return 0
        (fewer, quicker), (more, slower) = sorted((self._last, self._other))
        if slower <= quicker:
            return more
        for_each = (slower - quicker) / (more - fewer)
        for_all = max(quicker - for_each * fewer, 0.0)
        return min(int(WORTH * for_all / for_each), more)


def _alike(one: int, other: int) -> bool:
    return min(one, other) > _ALIKE * max(one, other)
