"""Output of a task for steps on other shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class ShuffleBlock(NamedTuple):
    """Some rows for a step on a shard. `sequence` keeps the order in which a task sent them."""

    level: int
    shard: int
    step: str
    task: int
    sequence: int
    payload: bytes


@dataclass(slots=True)
class ShuffleWriter:
    """Collect the shuffle blocks of one task."""

    task: int
    shuffle_blocks: list[ShuffleBlock] = field(default_factory=list)

    def send(self, level: int, shard: int, step: str, payload: bytes) -> None:
        self.shuffle_blocks.append(ShuffleBlock(level, shard, step, self.task, len(self.shuffle_blocks), payload))
