"""The fixed cost of a batch and the cost per record, estimated from batches of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log, log2, sqrt

APART = 1.5
"""Minimum ratio between the largest and the smallest batch: below it, the two costs cannot be separated."""

_OF_ONE_SIZE = 24
"""How many batches of about the same size are kept. Otherwise the usual size would displace all others."""

_OLDEST = 200
"""How many batches are kept before the oldest is dropped, because costs change."""

_HALF_LIFE = 60
"""After how many batches a measurement counts half."""

_ROUNDS = 4
_LARGE_ERROR = 0.4

_CHANGED = 3.4
"""Costs have changed if the last batches of about the same size, at least three, were slower or faster than expected by
so many standard errors."""

_LEAST_CHANGE = 0.1
_CHANGE_AFTER = 3

_DOUBTFUL = 2.2
"""From so many standard errors on, more batches are needed to see whether costs have changed."""

_LEAST_NOISE, _MOST_NOISE = 0.02, 0.5
_LARGE_DEVIATION = 2.5
_FEW = 8


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
    noise: float = _LEAST_NOISE
    """The standard deviation of durations, relative to the expected ones."""

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
        self.noise = self._noise()

    @property
    def _last(self) -> int:
        return self.samples[-1].number if self.samples else 0

    def _last_before_change(self, records: int) -> int:
        """Return the number of the last batch before costs changed, judged by batches of about this size."""
        if self.cost is None:
            return 0
        alike = [one for one in self.samples if records / 2 <= one.records <= records * 2]
        scores = {
            alike[-count].number - 1: score
            for count, (mean, score) in enumerate(self._deviations(alike), 1)
            if count >= _CHANGE_AFTER and mean > _LEAST_CHANGE and score > _CHANGED
        }
        return max(scores, key=scores.__getitem__, default=0)

    def _deviations(self, samples: Sequence[Sample]) -> Iterator[tuple[float, float]]:
        """Return by how much the last one, two, ... batches deviated from what was expected: on average, and in
        standard errors. A single one counts little, however slow it was.
        """
        most, total = _LARGE_DEVIATION * max(_LEAST_CHANGE, self.noise), 0.0
        for count, one in enumerate(samples[::-1], 1):
            total += max(-most, min(one.error, most))
            yield abs(total) / count, abs(total) / (self.noise * sqrt(count))

    def is_in_doubt(self, size: float) -> bool:
        """Return whether costs may have changed, judged by the last batches that were no larger than `size`."""
        small = [one for one in self.samples if one.records <= size][-_FEW:]
        return any(score > _DOUBTFUL for _, score in self._deviations(small))

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
        found = self.samples
        sizes = [one.records for one in found]
        if not found or max(sizes) < APART * min(sizes):
            return None
        times = [float(one.batch_ms) for one in found]
        recent = self._weights()
        cost = _line([part / time**2 for part, time in zip(recent, times, strict=True)], sizes, times)
        for _ in range(_ROUNDS):
            expected = [cost.of(records) for records in sizes]
            errors = [abs(time / estimate - 1.0) for time, estimate in zip(times, expected, strict=True)]
            trust = [part * min(1.0, _LARGE_ERROR / max(e, 1e-9)) for part, e in zip(recent, errors, strict=True)]
            cost = _line([part / estimate**2 for part, estimate in zip(trust, expected, strict=True)], sizes, times)
        return cost

    def _noise(self) -> float:
        cost = self.cost
        if cost is None:
            return _LEAST_NOISE
        weights = self._weights()
        errors = [min(abs(one.batch_ms / max(cost.of(one.records), 1.0) - 1.0), _MOST_NOISE) for one in self.samples]
        square = sum(weight * error**2 for weight, error in zip(weights, errors, strict=True)) / sum(weights)
        return max(sqrt(square), _LEAST_NOISE)

    def _weights(self) -> list[float]:
        """Return how much each batch counts: recent ones more."""
        return [0.5 ** ((self._last - one.number) / _HALF_LIFE) for one in self.samples]


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
