"""The position of a query in its source topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Ends = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Offsets:
    """The next offset of each partition, the number of empty batches, and the partitions that no longer hold back the
    watermark."""

    topics: dict[str, dict[int, int]] = field(default_factory=dict)
    empty_batches: int = 0
    idle: frozenset[tuple[str, int]] = frozenset()
    at_ms: int = field(default=0, compare=False)
    max_bytes: int = field(default=0, compare=False)
    """Byte limit of the batch that ends here, stored so that a replay has the same; 0 means no limit."""

    def to_json(self) -> dict[str, Any]:
        return {
            "topics": {t: {str(p): o for p, o in sorted(ps.items())} for t, ps in sorted(self.topics.items())},
            "empty_batches": self.empty_batches,
            "idle": sorted([topic, partition] for topic, partition in self.idle),
            "at": self.at_ms,
            **({"max_bytes": self.max_bytes} if self.max_bytes else {}),
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Offsets:
        topics = {topic: {int(p): int(o) for p, o in parts.items()} for topic, parts in data["topics"].items()}
        idle = frozenset((topic, int(partition)) for topic, partition in data.get("idle", []))
        return cls(topics, int(data["empty_batches"]), idle, int(data.get("at", 0)), int(data.get("max_bytes", 0)))

    def reached(self, other: Offsets) -> bool:
        """Return whether these offsets have reached all of `other`."""
        if other.empty_batches > self.empty_batches:
            return False
        return all(
            self.topics.get(topic, {}).get(partition, 0) >= offset
            for topic, parts in other.topics.items()
            for partition, offset in parts.items()
        )

    def pending(self, ends: Ends) -> int:
        """Count the records between these offsets and the ends."""
        return sum(
            max(0, end - self.topics.get(topic, {}).get(partition, 0))
            for topic, parts in ends.items()
            for partition, end in parts.items()
        )

    def advance(self, ends: Ends, limit: int) -> Offsets:
        """Advance by at most `limit` records, split in proportion to the pending records of each partition."""
        waiting = {
            (topic, partition): end - self.topics.get(topic, {}).get(partition, 0)
            for topic, parts in ends.items()
            for partition, end in parts.items()
        }
        total = sum(count for count in waiting.values() if count > 0)
        topics = {topic: dict(parts) for topic, parts in self.topics.items()}
        left = limit
        for (topic, partition), count in sorted(waiting.items()):
            here = topics.setdefault(topic, {})
            start = here.setdefault(partition, 0)
            if count <= 0:
                continue
            share = count if total <= limit else min(count, left, max(1, count * limit // total))
            here[partition] = start + share
            left -= share
        return replace(self, topics=topics)
