"""What leaves a task: parcels for steps on other shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Parcel(NamedTuple):
    """Some rows on their way to a step on a shard. `sequence` keeps the order in which a task sent them."""

    level: int
    shard: int
    step: str
    task: int
    sequence: int
    payload: bytes


@dataclass(slots=True)
class Outbox:
    """Collects the parcels of one task."""

    task: int
    parcels: list[Parcel] = field(default_factory=list)

    def send(self, level: int, shard: int, step: str, payload: bytes) -> None:
        self.parcels.append(Parcel(level, shard, step, self.task, len(self.parcels), payload))
