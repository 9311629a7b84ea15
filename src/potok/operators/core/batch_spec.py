"""The specification of one attempt at a batch, sent to its tasks: the ranges to read, the watermarks and the
processing time. Tasks read no other clock.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.operators.core.dead_letters import InputPartition
from potok.state.fence import Attempt, Fence
from potok.state.open import StateLocation
from potok.state.store import Store, check_not_behind


@dataclass(frozen=True, slots=True)
class Range:
    """Records of one partition, and the stream time before them."""

    input_partition: int
    start: int
    end: int
    stream_time_ms: int

    def __len__(self) -> int:
        return self.end - self.start


class BatchTooLarge(QueryError):
    """A task that has read more bytes than allowed; the batch is planned again with fewer records."""

    def __init__(self, record_bytes: float) -> None:
        self.record_bytes = record_bytes
        super().__init__(f"records of {record_bytes:,.0f} bytes are too large for a batch of this size")

    def __reduce__(self) -> tuple[object, ...]:
        return BatchTooLarge, (self.record_bytes,)


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """One attempt at one batch. The sums of the `careful` steps have overflowed: they are added record by record."""

    fence: Fence
    broker: Broker
    directory: Path
    input_partitions: list[InputPartition]
    tasks: list[list[Range]]
    shard_tasks: int
    watermarks: dict[str, int]
    processing_time_ms: int
    partitions: dict[str, int]
    query: str
    state: StateLocation
    careful: frozenset[str] = frozenset()
    one_machine: bool = True
    """Whether the driver sees the files that tasks write."""
    cells: Attempt | None = None
    """The last committed attempt, which every shard must have seen."""
    task_bytes: int = 0
    """How many bytes each reading task may read; 0 for no limit."""
    compares_batches: bool = False
    """Whether functions of columns are called again with other chunks of the same records, to compare the results."""
    keeps_output: bool = False
    """Whether output stays where tasks produce it, until they publish it."""
    trace_id: str | None = None
    """The trace of the batch, if it is traced: its tasks measure their steps and sample the traces of their input."""

    @property
    def records(self) -> int:
        """Return the number of records to read, an upper bound where the log has gaps."""
        return sum(len(part) for task in self.tasks for part in task)

    @property
    def staging(self) -> Path | None:
        """Return where tasks put output that is too large for their report; None if the driver cannot read it."""
        return self._staging if self.one_machine else None

    @property
    def _staging(self) -> Path:
        return self.directory / "staging" / f"{self.fence.attempt.epoch}-{self.fence.attempt.batch}"

    def clear_staging(self) -> None:
        shutil.rmtree(self._staging, ignore_errors=True)

    def state_of(self, shard: int) -> Store:
        store = self.state.store(shard)
        check_not_behind(store, self.cells)
        return store
