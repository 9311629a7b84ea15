"""The parts of all members in one Spark job. What goes wrong in a part comes back as data, so that it is nobody else's
trouble."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import cloudpickle
import pyarrow as pa

from potok.engine.batch_spec import BatchSpec
from potok.engine.connector import Connector
from potok.engine.job import Item, Job, as_row, levels, runs_whole
from potok.engine.report import Report
from potok.errors import PotokError, QueryError

if TYPE_CHECKING:
    from pyspark import SparkContext

ALONE = 500
"""What a part costs however few records it has, in records."""


class TaskFailed(QueryError):
    """Something that nobody expected, in a task of one query."""

    def __init__(self, query: str, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        super().__init__(
            f'query "{query}" failed in a task: {type(error).__name__}: {error}{place}',
            hint="nothing of the batch is visible; mend what it names, and start the query again",
        )


@dataclass(frozen=True, slots=True)
class Busy:
    """How long a task worked."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Part:
    """What one member has to do."""

    plan: bytes
    spec: BatchSpec
    depth: int
    connector: Connector | None

    def job(self) -> GuardedJob:
        return GuardedJob(self.plan, cloudpickle.dumps(self.spec), self.depth, self.spec.query)

    @property
    def whole(self) -> bool:
        return runs_whole(self.spec, self.connector)


@dataclass(slots=True)
class Outcome:
    """What came of a part: a report, or the error that makes it void."""

    report: Report = field(default_factory=Report)
    error: PotokError | None = None
    busy_s: float = 0.0

    def take(self, data: bytes) -> None:
        found = pickle.loads(data)
        if isinstance(found, PotokError):
            self.error = self.error or found
        elif isinstance(found, Busy):
            self.busy_s += found.seconds
        else:
            self.report.add(found)


class GuardedJob(Job):
    """A job that raises nothing, and says how long it took."""

    def __init__(self, plan: bytes, spec: bytes, depth: int, query: str) -> None:
        super().__init__(plan, spec, depth)
        self._query = query

    def first(self, index: int, items: Iterable[int]) -> Iterator[Item]:
        return self._guarded(super().first(index, items))

    def whole(self, items: Iterable[int]) -> Iterator[Item]:
        return self._guarded(super().whole(items))

    def level(self, level: int) -> Any:
        return partial(self._run_level, level)

    def _run_level(self, level: int, index: int, items: Iterable[Item]) -> Iterator[Item]:
        return self._guarded(super().level(level)(index, items))

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        began = time.perf_counter()
        try:
            yield from super().decode(batches)
        except Exception as error:  # noqa: BLE001 - told by the outcome
            yield as_row(self.give_up(TaskFailed(self._query, error)))
        yield as_row(_busy(began))

    def _guarded(self, items: Iterator[Item]) -> Iterator[Item]:
        began = time.perf_counter()
        try:
            yield from items
        except Exception as error:  # noqa: BLE001 - told by the outcome
            yield self.give_up(TaskFailed(self._query, error))
        yield _busy(began)


def _busy(began: float) -> Item:
    return 0, pickle.dumps(Busy(time.perf_counter() - began))


def run_parts(context: SparkContext, parts: Sequence[Part], tasks: int) -> list[Outcome]:
    """Run all parts in one job. Small ones go together into few tasks: to begin a task takes longer than they do."""
    outcomes = [Outcome() for _ in parts]
    rdds = []
    groups = grouped([(number, part) for number, part in enumerate(parts) if part.whole], tasks)
    if groups:
        rdds.append(context.parallelize(groups, len(groups)).mapPartitions(_run_group))
    for number, part in enumerate(parts):
        if not part.whole:
            chain = levels(context, part.job(), part.spec, part.depth, part.connector)
            rdds.append(chain.mapPartitions(partial(_numbered, number)))
    found = (rdds[0] if len(rdds) == 1 else context.union(rdds)).collect() if rdds else []
    for number, data in found:
        outcomes[number].take(data)
    return outcomes


Group = list[tuple[int, GuardedJob]]


def grouped(parts: Sequence[tuple[int, Part]], tasks: int) -> list[Group]:
    """Small parts over at most so many tasks, the largest first, each to the task that has least."""
    groups: list[Group] = [[] for _ in range(min(tasks, len(parts)))]
    loads = [0] * len(groups)
    for number, part in sorted(parts, key=lambda item: item[1].spec.records, reverse=True):
        least = loads.index(min(loads))
        groups[least].append((number, part.job()))
        loads[least] += part.spec.records + ALONE
    return groups


def _run_group(groups: Iterable[Group]) -> Iterator[Item]:
    for group in list(groups):
        for number, job in group:
            for _, data in job.whole(()):
                yield number, data


def _numbered(number: int, items: Iterable[Item]) -> Iterator[Item]:
    for _, data in items:
        yield number, data
