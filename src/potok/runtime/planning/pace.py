"""Choose the size of a batch: close to the target duration, with little time lost to the fixed cost of a batch."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, field
from itertools import pairwise
from typing import Any

from potok.runtime.planning.batch_cost import BatchCost, Sample

LEAST = 1
FIRST = 250_000
FIRST_ONE_BY_ONE = 20_000
"""Used where each record goes through a user's function, whose duration is unknown."""

WARM_UP = 2
"""The first batches after a start are slow: workers start, code is loaded, connections are made."""

WARM_UP_MS = 10_000
"""No warm-up takes longer; the rest of a slow batch is attributed to its records."""

GROWTH = 4
"""Maximum ratio between a batch and the largest before it."""

SHRINKAGE = 16
"""Maximum ratio between a batch and the next one, if it took too long and the reason is unknown."""

_TRIAL_SHARE = 24
_TRIAL_EVERY = 8
"""Every how many batches a small one is run. Its duration is nearly the fixed cost, which batches of the usual size do
not show: a small error in the slope of the line through them is a large one at its start. It takes little time."""

_SURE = 8
"""How many small batches are needed to trust the fixed cost. Until then, and while costs may have changed, every second
batch is small."""

_DURATIONS = ((0.35, 1.65), (0.4, 1.73), (0.44, 1.93), (0.48, 2.2), (0.54, 3.24))
"""How long a batch should take by its fixed cost, both in targets."""

_MOST_FIXED = 6
"""The duration of a batch, in fixed costs, that leaves enough time to the records in any case."""


@dataclass(slots=True)
class Pace:
    """Estimate the fixed cost of a batch and the cost per record, and derive the size of the next batch.

    A batch should take `target_ms`. If the fixed cost is a large part of that, batches take longer, because smaller
    ones would take nearly as long and process less: up to twice the target, so that records get at least 70 % of the
    time, and beyond that where the fixed cost exceeds 0.4 of the target. `most` and `most_bytes` bound
    the size in any case, the latter by the average size of records so far. `limit` is the current estimate, `next` the
    size of the next batch.
    """

    target_ms: int
    most: int
    limit: int = FIRST
    most_bytes: int = 0
    next: int = field(init=False)
    _cost: BatchCost = field(default_factory=BatchCost)
    _batches: int = 0
    _trial: bool = False
    _record_bytes: float = 0.0

    def __post_init__(self) -> None:
        self._set(self.limit)

    def learn(self, records: int, batch_ms: int, size: int = 0) -> int:
        """Add the measurement of a batch of `size` bytes, and return how many records the next one may have."""
        if records:
            self._learn(records, batch_ms)
            # A growing record size applies at once, a shrinking one gradually.
            self._record_bytes = max(size / records, (self._record_bytes + size / records) / 2)
        self.next = min(self.next, self._fitting())
        return self.next

    def shrink(self, records: int, record_bytes: float) -> None:
        """Make the next batch smaller than one of `records`, which had too many bytes."""
        self._record_bytes = max(self._record_bytes, record_bytes)
        self.next = max(min(self._fitting(), records // 2), LEAST)

    def _fitting(self) -> int:
        """How many records fit into half of the byte limit: some are larger than the average."""
        if not self.most_bytes or self._record_bytes * self.most <= self.most_bytes / 2:
            return self.most
        return max(int(self.most_bytes / 2 / self._record_bytes), LEAST)

    def _learn(self, records: int, batch_ms: int) -> None:
        self._batches += 1
        if self._batches <= WARM_UP:
            self._warm_up(records, batch_ms)
            return
        self._cost.add(records, batch_ms)
        self._set(self._wanted(records, max(batch_ms, 1)))
        if self._is_trial_due():
            self._trial, self.next = True, self._other_size()

    def _is_trial_due(self) -> bool:
        small = self.limit / (_TRIAL_SHARE / 2)
        sure = self._cost.count_up_to(small) >= _SURE and not self._cost.is_in_doubt(small)
        every = _TRIAL_EVERY if sure else 2
        return self._cost.since(small) >= every

    def _other_size(self) -> int:
        return max(self.limit // _TRIAL_SHARE, LEAST) if self.limit > LEAST else min(2, self.most)

    def _warm_up(self, records: int, batch_ms: int) -> None:
        """Shrink the next batch by the time beyond any warm-up, while there is no estimate."""
        beyond = batch_ms - WARM_UP_MS
        if beyond > self.target_ms and not self._cost.largest:
            self._set(min(self.limit, records) * max(self.target_ms / beyond, 1 / SHRINKAGE))

    def _wanted(self, records: int, batch_ms: int) -> float:
        cost = self._cost.cost
        if cost is None:
            return self._scaled(records, batch_ms)
        for_records = self._time(cost.fixed) - cost.fixed
        reach = GROWTH * self._cost.largest
        if for_records >= cost.per_record * reach:
            return max(self.limit, reach)
        return for_records / cost.per_record

    def _time(self, fixed_ms: float) -> float:
        """How long a batch should take, if one without records took `fixed_ms`.

        Long enough that records get 70 % of the time, and less than twice the target where both are possible in spite
        of errors of the estimate: up to a fixed cost of 0.4 of the target. From 0.6 on no size achieves both, so
        between the two the duration rises to where an error of the estimate no longer matters.
        """
        share = fixed_ms / self.target_ms
        return max(self.target_ms, min(_MOST_FIXED * fixed_ms, self.target_ms * _interpolated(share)))

    def _scaled(self, records: int, batch_ms: int) -> float:
        """Scale the size to the target while all batches have had about the same."""
        if batch_ms <= self.target_ms:
            return max(self.limit, records * min(self.target_ms / batch_ms, GROWTH))
        return max(min(self.limit, records) * max(self.target_ms / batch_ms, 1 / SHRINKAGE), LEAST)

    def _set(self, limit: float) -> None:
        self._trial = False
        self.limit = self.next = max(min(round(limit), self.most), LEAST)

    def to_bytes(self) -> bytes:
        """Serialize the measurements for the next start."""
        found = {
            "next": min(self.limit, self._fitting()) if self._trial else self.next,
            "limit": self.limit,
            "record_bytes": self._record_bytes,
            "batches": [astuple(one) for one in self._cost.samples],
        }
        return json.dumps(found).encode()

    def resume(self, data: bytes | None) -> None:
        """Continue with the measurements of an earlier run."""
        found = _load(data)
        self._cost.load([_sample(number, *one) for number, one in enumerate(found.get("batches", ()), 1)])
        self._record_bytes = found.get("record_bytes", 0.0)
        self._set(found.get("limit", self.limit))
        self.next = max(min(found.get("next", self.limit), self._fitting()), LEAST)


def _interpolated(share: float) -> float:
    for (before, least), (after, most) in pairwise(_DURATIONS):
        if share <= after:
            return least + (most - least) * max(share - before, 0.0) / (after - before)
    return _MOST_FIXED * share


def _load(data: bytes | None) -> dict[str, Any]:
    """Read what `to_bytes` wrote. Earlier versions wrote only the limit."""
    found = json.loads(data or b"{}")
    return found if isinstance(found, dict) else {"limit": int(found), "next": int(found)}


def _sample(position: int, records: int, batch_ms: int, error: float = 0.0, number: int | None = None) -> Sample:
    """Make a sample of what was stored. Earlier versions stored only records and duration."""
    return Sample(records, batch_ms, error, number or position)
