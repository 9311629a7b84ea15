"""The fixed cost of a batch and the cost per record, estimated from batches of different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log, log2

APART = 1.5
"""Minimum ratio between the largest and the smallest batch: below it, the two costs cannot be separated."""

_OF_ONE_SIZE = 24
"""How many batches of about the same size are kept. Otherwise the usual size would displace all others."""

_OLDEST = 200
"""How many batches are kept before the oldest is dropped, because costs change."""

_HALF_LIFE = 60
"""After how many batches a measurement counts half."""

_ROUNDS = 4
_LARGE_ERROR = 0.2

_CHANGED = ((2, log(2)), (3, log(1.4)), (5, log(1.2)))
"""Costs have changed if so many batches of about the same size in a row were so much slower, or so much faster, than
expected. One batch alone may be slow by accident."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A linear model of the duration of a batch, in milliseconds."""

    fixed: float
    per_record: float

    def of(self, records: int) -> float:
        """Return the expected duration of a batch."""
        return self.fixed + self.per_record * records


@dataclass(frozen=True, slots=True)
class Sample:
    """A batch that was measured; `error` is the logarithm of its duration divided by the expected one."""

    records: int
    batch_ms: int
    error: float
    number: int

    @property
    def magnitude(self) -> int:
        return round(log2(self.records))


@dataclass(slots=True)
class BatchCost:
    """Collect durations of batches, fit the model, and forget what no longer holds."""

    samples: list[Sample] = field(default_factory=list)
    cost: Cost | None = None
    """None if all batches had about the same size."""

    def add(self, records: int, batch_ms: int) -> None:
        """Add a batch, which had at least one record."""
        batch_ms = max(batch_ms, 1)
        error = log(batch_ms / max(self.cost.of(records), 1.0)) if self.cost is not None else 0.0
        new = Sample(records, batch_ms, error, self._last + 1)
        alike = [one for one in self.samples if one.magnitude == new.magnitude]
        surplus = alike[0].number if len(alike) == _OF_ONE_SIZE else 0
        self.samples = [one for one in self.samples if one.number != surplus] + [new]
        forgotten = max(new.number - _OLDEST, self._last_before_change(records))
        self.load([one for one in self.samples if one.number > forgotten])

    def load(self, samples: list[Sample]) -> None:
        """Replace all batches."""
        self.samples = samples
        self.cost = self._fit()

    @property
    def _last(self) -> int:
        return self.samples[-1].number if self.samples else 0

    def _last_before_change(self, records: int) -> int:
        """Return the number of the last batch before costs changed, judged by batches of about this size."""
        alike = [one for one in self.samples if records / 2 <= one.records <= records * 2]
        for count, error in _CHANGED:
            last = alike[-count:]
            if len(last) == count and (min(s.error for s in last) > error or max(s.error for s in last) < -error):
                return last[0].number - 1
        return 0

    @property
    def largest(self) -> int:
        """Return the size of the largest batch kept."""
        return max((one.records for one in self.samples), default=0)

    def since(self, size: float) -> int:
        """Count the batches since the last one that was no larger than `size`."""
        return self._last - max((one.number for one in self.samples if one.records <= size), default=0)

    def count_up_to(self, size: float) -> int:
        """Count the batches kept that were no larger."""
        return sum(one.records <= size for one in self.samples)

    def _fit(self) -> Cost | None:
        """Return the costs, neither of them negative.

        Errors are relative to the duration, and large ones count less than quadratically: a single batch that took ten
        times as long as expected, because of other load, changes little.
        """
        found, last = self.samples, self._last
        sizes = [one.records for one in found]
        if not found or max(sizes) < APART * min(sizes):
            return None
        times = [float(one.batch_ms) for one in found]
        recent = [0.5 ** ((last - one.number) / _HALF_LIFE) for one in found]
        cost = _line([part / time**2 for part, time in zip(recent, times, strict=True)], sizes, times)
        for _ in range(_ROUNDS):
            expected = [cost.of(records) for records in sizes]
            errors = [abs(time / estimate - 1.0) for time, estimate in zip(times, expected, strict=True)]
            trust = [part * min(1.0, _LARGE_ERROR / max(e, 1e-9)) for part, e in zip(recent, errors, strict=True)]
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
