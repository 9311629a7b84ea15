"""The executor port: runs the tasks of a batch. `spark_executor` runs them on Spark, `in_process_executor` in this
process.

An error in the tasks of one query is part of that query's outcome, so other queries in the job do not fail with it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import cloudpickle

from potok.errors import PotokError
from potok.log.broker import TaskOutput
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.task_report import Report
from potok.runtime.batches.task import Busy, Job
from potok.settings import Settings
from potok.sinks.spark_access import SparkAccess


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one query in a batch."""

    plan: bytes
    spec: BatchSpec
    depth: int
    small_batch: int
    """The largest number of records of a small batch."""

    def job(self) -> Job:
        return Job(self.plan, cloudpickle.dumps(self.spec), self.depth, self.spec.query)

    @property
    def is_small(self) -> bool:
        return self.spec.records <= self.small_batch

    @property
    def one_task(self) -> bool:
        """Whether one task runs all levels."""
        return self.spec.shard_tasks == 1 and len(self.spec.tasks) <= 1

    @property
    def description(self) -> str:
        return f"{self.spec.query}: batch {self.spec.fence.attempt.batch}"


@dataclass(slots=True)
class Outcome:
    """The result of a part: the report of its tasks, or the error that voids it."""

    report: Report = field(default_factory=Report)
    error: PotokError | None = None
    busy_s: float = 0.0
    output: TaskOutput | None = None
    """Output that stayed with the tasks."""

    def release(self) -> None:
        """Release output that stayed with the tasks."""
        if self.output is not None:
            self.output.release()
            self.output = None

    def add(self, data: bytes) -> None:
        """Add the result of a task."""
        found = pickle.loads(data)
        if isinstance(found, PotokError):
            self.error = self.error or found
        elif isinstance(found, Busy):
            self.busy_s += found.seconds
        else:
            self.report.add(found)


class Executor(Protocol):
    """Run the tasks of batches."""

    @property
    def master(self) -> str:
        """Return where tasks run, as the setting `master`."""

    @property
    def parallelism(self) -> int:
        """Return the number of tasks that run at the same time."""

    @property
    def spark(self) -> SparkAccess | None:
        """Return access to Spark for sinks that write through it; None if tasks run without Spark."""

    def check(self) -> None:
        """Raise if the executor has ended and cannot run more tasks."""

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        """Run the parts of a batch in one job. Raise errors that affect all of them, such as a worker that died."""


ExecutorFactory = Callable[[Settings], Executor]
"""Start the executor of a query."""
