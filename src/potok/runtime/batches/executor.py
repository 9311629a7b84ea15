"""The executor port: what runs the tasks of a batch. `spark_executor` runs them on Spark, `in_process` in this
process.

An error in the tasks of one query is part of that query's outcome, so queries that share a job do not fail with it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import cloudpickle

from potok.errors import PotokError
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.task_report import Report
from potok.runtime.batches.task import Busy, Job
from potok.settings import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """What one query has to do in a batch."""

    plan: bytes
    spec: BatchSpec
    depth: int
    small_batch: int
    """Up to so many records are a small batch."""

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
    """The result of a part: the report of its tasks, or the error that makes it void."""

    report: Report = field(default_factory=Report)
    error: PotokError | None = None
    busy_s: float = 0.0

    def add(self, data: bytes) -> None:
        """Add what a task returned."""
        found = pickle.loads(data)
        if isinstance(found, PotokError):
            self.error = self.error or found
        elif isinstance(found, Busy):
            self.busy_s += found.seconds
        else:
            self.report.add(found)


class Executor(Protocol):
    """Runs the tasks of batches."""

    @property
    def master(self) -> str:
        """Where tasks run, as the setting of that name."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""

    def check(self) -> None:
        """Raise if it has ended and can run no more tasks."""

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        """Run the parts of a batch in one job. Raises what concerns all of them, such as a worker that died."""


ExecutorFactory = Callable[[Settings], Executor]
"""Starts the executor of a query."""
