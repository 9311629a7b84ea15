"""How large a batch may be, so that it takes about as long as it should and wastes little on what every batch costs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from potok.engine.batch_cost import APART, BatchCost

LEAST = 1
FIRST = 250_000
FIRST_ONE_BY_ONE = 20_000
"""Where each record goes through a function of the user's: there is no knowing how long that takes."""

WARM_UP = 2
"""The first batches after a start are slow: workers start, code is loaded, connections are made."""

WARM_UP_MS = 10_000
"""No warm-up takes longer: what goes beyond it, the records took."""

GROWTH = 4
"""A batch is no larger than so many times the largest before it."""

_SURE = 3
"""So many small batches tell what every batch costs: a single one may be slow by accident."""

_TRY_EVERY = 12
"""One batch in so many has half the size, or twice the size, so that other sizes than the usual one stay known, and
what was learnt by accident is found to be wrong."""


@dataclass(slots=True)
class Pace:
    """Learns what a batch and what a record costs, and finds the size of the next batch from that.

    A batch should take `target_ms`. Where what every batch costs is a good part of that, it takes longer, because
    smaller batches would take nearly as long and do less: up to 1.9 times the target to give at least three quarters of
    the time to the records, and as long as that takes where what every batch costs is over half of the target.
    `most` bounds the size in any case. `limit` is the size found so far, `next` that of the next batch.
    """

    target_ms: int
    most: int
    limit: int = FIRST
    next: int = field(init=False)
    _cost: BatchCost = field(default_factory=BatchCost)
    _batches: int = 0
    _learnt: int = 0

    def __post_init__(self) -> None:
        self._set(self.limit)

    def learn(self, records: int, batch_ms: int) -> int:
        """Take one batch into account; returns how many records the next one may have."""
        if not records:
            return self.next
        self._batches += 1
        if self._batches <= WARM_UP:
            self._warm_up(records, batch_ms)
            return self.next
        self._cost.add(records, batch_ms)
        self._learnt += 1
        self._set(self._wanted(records, max(batch_ms, 1)))
        if self._learnt % _TRY_EVERY == 0:
            self.next = self._other_size()
        return self.next

    def _other_size(self) -> int:
        """Half of the limit, and the next time twice as much."""
        half = self._learnt // _TRY_EVERY % 2 == 1 or self.limit == self.most
        return max(self.limit // 2, LEAST) if half and self.limit > LEAST else min(self.limit * 2, self.most)

    def _warm_up(self, records: int, batch_ms: int) -> None:
        """Make the next batch smaller by what no warm-up can explain, if nothing better is known."""
        beyond = batch_ms - WARM_UP_MS
        if beyond > self.target_ms and not self._cost.largest:
            self._set(min(self.limit, records) * max(self.target_ms / beyond, 1 / GROWTH))

    def _wanted(self, records: int, batch_ms: int) -> float:
        cost, smallest = self._cost.fit(), self._cost.smallest
        if cost is None:
            return self._apart(records, batch_ms)
        for_records = self._time(cost.fixed) - cost.fixed
        if cost.fixed + for_records > self.target_ms:
            # Larger than the target asks for: not before small batches have told what every batch costs.
            if cost.fixed < cost.per_record * smallest and smallest > LEAST:
                return smallest / 2
            if self._cost.count_up_to(APART * smallest) < _SURE:
                return smallest
        reach = GROWTH * self._cost.largest
        if for_records >= cost.per_record * reach:
            return max(self.limit, reach)
        wanted = for_records / cost.per_record
        # Half of the way, as a ratio, so that times which scatter do not make the size swing.
        return float((wanted * self.limit) ** 0.5) if wanted / 2 < self.limit < wanted * 2 else wanted

    def _time(self, fixed_ms: float) -> float:
        """How long a batch should take, if one without records took `fixed_ms`."""
        target = self.target_ms
        return max(target, min(5 * fixed_ms, max(1.9 * target, 6 * fixed_ms - 1.1 * target)))

    def _apart(self, records: int, batch_ms: int) -> float:
        """While all batches have had about the same size: another one, far enough away to tell a difference."""
        if batch_ms * APART <= self.target_ms:
            return max(self.limit, records * min(self.target_ms / batch_ms, GROWTH))
        smaller = min(self.limit, records) * max(min(self.target_ms / batch_ms, 0.5), 1 / GROWTH)
        return smaller if smaller >= LEAST else 2 * records

    def _set(self, limit: float) -> None:
        self.limit = self.next = max(min(round(limit), self.most), LEAST)

    def to_bytes(self) -> bytes:
        """What the planner and the next start need to know."""
        found = {"next": self.next, "limit": self.limit, "learnt": self._learnt, "batches": list(self._cost.samples())}
        return json.dumps(found).encode()

    def resume(self, data: bytes | None) -> None:
        """Continue with what an earlier run has learnt."""
        found = _load(data)
        for records, batch_ms in found.get("batches", ()):
            self._cost.add(records, batch_ms)
        self._learnt = found.get("learnt", 0)
        self._set(found.get("limit", self.limit))
        self.next = max(min(found.get("next", self.limit), self.most), LEAST)


def next_size(data: bytes | None) -> int | None:
    """How many records the next batch may have, by what was learnt; None if nothing was."""
    size: int | None = _load(data).get("next")
    return size


def _load(data: bytes | None) -> dict[str, Any]:
    """What `to_bytes` wrote. Earlier versions wrote the limit alone."""
    found = json.loads(data or b"{}")
    return found if isinstance(found, dict) else {"limit": int(found), "next": int(found)}
