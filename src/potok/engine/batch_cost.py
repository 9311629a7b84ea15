"""What a batch costs: so much for itself, and so much for each record, learnt from batches of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log2

APART = 1.5
"""The largest batch must be so many times larger than the smallest: others do not tell the two costs apart."""

_OF_ONE_SIZE = 10
"""So many batches of about the same size are kept. Otherwise those of the usual size would displace all others."""

_OLDEST = 200
"""After so many batches, one is forgotten: costs change."""


_ROUNDS = 4
_LARGE_ERROR = 0.2


@dataclass(frozen=True, slots=True)
class Cost:
    """A line through the times of batches, in milliseconds."""

    fixed: float
    per_record: float


@dataclass(slots=True)
class BatchCost:
    """Remembers the time that batches took."""

    _seen: int = 0
    _sizes: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def add(self, records: int, batch_ms: int) -> None:
        """Take a batch into account that had at least one record."""
        self._seen += 1
        size = round(log2(records))
        self._sizes[size] = [*self._sizes.get(size, ()), (self._seen, records, max(batch_ms, 1))][-_OF_ONE_SIZE:]
        forgotten = self._seen - _OLDEST
        kept = {size: [one for one in found if one[0] > forgotten] for size, found in self._sizes.items()}
        self._sizes = {size: found for size, found in kept.items() if found}

    @property
    def largest(self) -> int:
        """The size of the largest batch that is remembered."""
        return max((records for records, _ in self.samples()), default=0)

    @property
    def smallest(self) -> int:
        return min((records for records, _ in self.samples()), default=0)

    def count_up_to(self, size: float) -> int:
        """How many batches are remembered that were no larger."""
        return sum(records <= size for records, _ in self.samples())

    def samples(self) -> Iterator[tuple[int, int]]:
        """Records and milliseconds of the batches, the oldest first."""
        everything = sorted(one for found in self._sizes.values() for one in found)
        return ((records, batch_ms) for _, records, batch_ms in everything)

    def fit(self) -> Cost | None:
        """The costs, neither of them negative; None if all batches had about the same size.

        Errors count in proportion to the time, and large ones for less than their square: one batch that took ten times
        as long as it should have, because something else was going on, changes little.
        """
        found = list(self.samples())
        sizes = [records for records, _ in found]
        if not found or max(sizes) < APART * min(sizes):
            return None
        times = [float(batch_ms) for _, batch_ms in found]
        cost = _line([1.0 / time**2 for time in times], sizes, times)
        for _ in range(_ROUNDS):
            expected = [cost.fixed + cost.per_record * records for records in sizes]
            errors = [abs(time / told - 1.0) for time, told in zip(times, expected, strict=True)]
            trust = [min(1.0, _LARGE_ERROR / error) if error else 1.0 for error in errors]
            cost = _line([part / told**2 for part, told in zip(trust, expected, strict=True)], sizes, times)
        return cost


def _line(weights: Sequence[float], sizes: Sequence[int], times: Sequence[float]) -> Cost:
    """Weighted least squares, where costs below zero are zero."""
    total = sum(weights)
    mean_size = sum(w * n for w, n in zip(weights, sizes, strict=True)) / total
    mean_time = sum(w * t for w, t in zip(weights, times, strict=True)) / total
    spread = sum(w * (n - mean_size) ** 2 for w, n in zip(weights, sizes, strict=True))
    together = sum(w * (n - mean_size) * (t - mean_time) for w, n, t in zip(weights, sizes, times, strict=True))
    per_record = together / spread
    fixed = mean_time - per_record * mean_size
    if per_record <= 0:
        return Cost(mean_time, 0.0)
    if fixed < 0:
        squares = sum(w * n * n for w, n in zip(weights, sizes, strict=True))
        products = sum(w * n * t for w, n, t in zip(weights, sizes, times, strict=True))
        return Cost(0.0, products / squares)
    return Cost(fixed, per_record)
