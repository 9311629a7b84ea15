"""What the tasks of one batch are told: the attempt, the ranges to read, and the clocks. Nothing else is read from a
clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from potok.kernels.dead_letters import Lane
from potok.state.fence import Fence


@dataclass(frozen=True, slots=True)
class Range:
    """Records of one partition, and the stream time that stood before them."""

    lane: int
    start: int
    end: int
    stream_time_ms: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """One attempt at one batch."""

    fence: Fence
    broker_url: str
    directory: Path
    lanes: list[Lane]
    tasks: list[list[Range]]
    shard_tasks: int
    clocks: dict[str, int]
    processing_time_ms: int
    partitions: dict[str, int]

    @property
    def staging(self) -> Path:
        return self.directory / "staging" / f"{self.fence.attempt.epoch}-{self.fence.attempt.batch}"

    def state_of(self, shard: int) -> Path:
        return self.directory / "state" / str(shard)
