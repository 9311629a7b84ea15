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
    `most` bounds the size in any case, and so does `most_bytes`, by what records had so far. `limit` is the size found
    so far, `next` that of the next batch.
    """

    target_ms: int
    most: int
    limit: int = FIRST
    most_bytes: int = 0
    next: int = field(init=False)
    _cost: BatchCost = field(default_factory=BatchCost)
    _batches: int = 0
    _learnt: int = 0
    _record_bytes: float = 0.0

    def __post_init__(self) -> None:
        self._set(self.limit)

    def learn(self, records: int, batch_ms: int, size: int = 0) -> int:
        """Take one batch of `size` bytes into account; returns how many records the next one may have."""
        if records:
            self._learn(records, batch_ms)
            # Records that became larger count at once; that they became smaller is believed by and by.
            self._record_bytes = max(size / records, (self._record_bytes + size / records) / 2)
        self.next = min(self.next, self._fitting())
        return self.next

    def shrink(self, records: int, record_bytes: float) -> None:
        """Let the next batch be smaller than one of so many records, which had too many bytes."""
        self._record_bytes = max(self._record_bytes, record_bytes)
        self.next = max(min(self._fitting(), records // 2), LEAST)

    def _fitting(self) -> int:
        """How many records have about as many bytes as a batch may; fewer, since some are larger than others."""
        if not self.most_bytes or self._record_bytes * self.most <= self.most_bytes / 2:
            return self.most
        return max(int(self.most_bytes / 2 / self._record_bytes), LEAST)

    def _learn(self, records: int, batch_ms: int) -> None:
        self._batches += 1
        if self._batches <= WARM_UP:
            self._warm_up(records, batch_ms)
            return
        self._cost.add(records, batch_ms)
        self._learnt += 1
        self._set(self._wanted(records, max(batch_ms, 1)))
        if self._learnt % _TRY_EVERY == 0:
            self.next = self._other_size()

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
        found = {
            "next": self.next,
            "limit": self.limit,
            "learnt": self._learnt,
            "record_bytes": self._record_bytes,
            "batches": list(self._cost.samples()),
        }
        return json.dumps(found).encode()

    def resume(self, data: bytes | None) -> None:
        """Continue with what an earlier run has learnt."""
        found = _load(data)
        for records, batch_ms in found.get("batches", ()):
            self._cost.add(records, batch_ms)
        self._learnt, self._record_bytes = found.get("learnt", 0), found.get("record_bytes", 0.0)
        self._set(found.get("limit", self.limit))
        self.next = max(min(found.get("next", self.limit), self._fitting()), LEAST)


def next_size(data: bytes | None) -> int | None:
    """How many records the next batch may have, by what was learnt; None if nothing was."""
    size: int | None = _load(data).get("next")
    return size


def _load(data: bytes | None) -> dict[str, Any]:
    """What `to_bytes` wrote. Earlier versions wrote the limit alone."""
    found = json.loads(data or b"{}")
    return found if isinstance(found, dict) else {"limit": int(found), "next": int(found)}
