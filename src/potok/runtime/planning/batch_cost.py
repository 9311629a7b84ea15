"""The fixed cost of a batch and the cost per record, estimated from batches of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log2

APART = 1.5
"""Minimum ratio between the largest and the smallest batch: below it, the two costs cannot be separated."""

_OF_ONE_SIZE = 10
"""How many batches of about the same size are kept. Otherwise the usual size would displace all others."""

_OLDEST = 200
"""How many batches are kept before the oldest is dropped, because costs change."""


_ROUNDS = 4
_LARGE_ERROR = 0.2


@dataclass(frozen=True, slots=True)
class Cost:
    """A linear model of the duration of a batch, in milliseconds."""

    fixed: float
    per_record: float


@dataclass(slots=True)
class BatchCost:
    """Collect durations of batches and fit the model."""

    _seen: int = 0
    _sizes: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def add(self, records: int, batch_ms: int) -> None:
        """Add a batch, which had at least one record."""
        self._seen += 1
        size = round(log2(records))
        self._sizes[size] = [*self._sizes.get(size, ()), (self._seen, records, max(batch_ms, 1))][-_OF_ONE_SIZE:]
        forgotten = self._seen - _OLDEST
        kept = {size: [one for one in found if one[0] > forgotten] for size, found in self._sizes.items()}
        self._sizes = {size: found for size, found in kept.items() if found}

    @property
    def largest(self) -> int:
        """Return the size of the largest batch kept."""
        return max((records for records, _ in self.samples()), default=0)

    @property
    def smallest(self) -> int:
        return min((records for records, _ in self.samples()), default=0)

    def count_up_to(self, size: float) -> int:
        """Count the batches kept that were no larger."""
        return sum(records <= size for records, _ in self.samples())

    def samples(self) -> Iterator[tuple[int, int]]:
        """Records and milliseconds of the batches, the oldest first."""
        everything = sorted(one for found in self._sizes.values() for one in found)
        return ((records, batch_ms) for _, records, batch_ms in everything)

    def fit(self) -> Cost | None:
        """Return the costs, neither of them negative, or None if all batches had about the same size.

        Errors are relative to the duration, and large ones count less than quadratically: a single batch that took ten
        times as long as expected, because of other load, changes little.
        """
        found = list(self.samples())
        sizes = [records for records, _ in found]
        if not found or max(sizes) < APART * min(sizes):
            return None
        times = [float(batch_ms) for _, batch_ms in found]
        cost = _line([1.0 / time**2 for time in times], sizes, times)
        for _ in range(_ROUNDS):
            expected = [cost.fixed + cost.per_record * records for records in sizes]
            errors = [abs(time / estimate - 1.0) for time, estimate in zip(times, expected, strict=True)]
            trust = [min(1.0, _LARGE_ERROR / error) if error else 1.0 for error in errors]
            cost = _line([part / estimate**2 for part, estimate in zip(trust, expected, strict=True)], sizes, times)
        return cost


def _line(weights: Sequence[float], sizes: Sequence[int], times: Sequence[float]) -> Cost:
    """Fit by weighted least squares with non-negative costs."""
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
