"""One batch, one Spark job: the stages as a chain of RDDs, between which Spark moves parcels.

A parcel is a whole column chunk for one step on one shard, so that Spark shuffles a few large byte strings instead of
many rows, and the number of Spark stages depends on the depth of the topology alone. A small batch runs all levels in
one
task and needs no shuffle at all.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import cloudpickle
import pyarrow as pa

from potok.engine.batch_spec import BatchSpec
from potok.engine.connector import Connector, Pieces
from potok.engine.plan import Plan
from potok.engine.report import Report
from potok.engine.stage import Stage
from potok.engine.step_failed import naming_step
from potok.errors import PotokError
from potok.kernels.outbox import Parcel
from potok.records.collector import collector_paused

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = tuple[int, bytes]
"""What travels: the task to go to, and a pickled parcel or report."""

ITEMS = "task int, data binary"
_ITEMS = pa.schema([("task", pa.int32()), ("data", pa.binary())])

MOST_PLANS = 64
"""How many a worker keeps: queries that share one of Spark's come to it by turns."""


def run_job(
    context: SparkContext, plan: bytes, spec: BatchSpec, depth: int, connector: Connector | None = None
) -> Report:
    """Run one attempt at a batch and add up what its tasks report."""
    job = Job(plan, cloudpickle.dumps(spec), depth)
    if runs_whole(spec, connector):
        rdd = context.parallelize([0], 1).mapPartitions(job.whole)
    else:
        rdd = levels(context, job, spec, depth, connector)
    total = Report()
    for _, data in rdd.collect():
        found = pickle.loads(data)
        if isinstance(found, PotokError):
            raise found
        total.add(found)
    return total


def runs_whole(spec: BatchSpec, connector: Connector | None) -> bool:
    """Whether one task does everything."""
    return connector is None and spec.shard_tasks == 1 and len(spec.tasks) <= 1


def levels(context: SparkContext, job: Job, spec: BatchSpec, depth: int, connector: Connector | None) -> Any:
    """The stages of a batch as a chain of RDDs."""
    rdd = _read(context, job, spec, connector)
    for level in range(1, depth + 1):
        rdd = rdd.partitionBy(spec.shard_tasks, _same).mapPartitionsWithIndex(job.level(level))
    return rdd


def _read(context: SparkContext, job: Job, spec: BatchSpec, connector: Connector | None) -> Any:
    if connector is not None:
        return connector.read(spec).mapInArrow(job.decode, ITEMS).rdd
    count = max(len(spec.tasks), 1)
    return context.parallelize(range(count), count).mapPartitionsWithIndex(job.first)


def as_row(item: Item) -> pa.RecordBatch:
    """An item as `mapInArrow` hands it on."""
    task, data = item
    return pa.RecordBatch.from_arrays([pa.array([task], pa.int32()), pa.array([data], pa.binary())], schema=_ITEMS)


def _same(key: int) -> int:
    return key


def _drain(items: Iterable[int]) -> None:
    """Spark uses a worker again only if its input was read to the end; a new one costs as much as a small batch."""
    for _ in items:
        pass


@lru_cache(maxsize=MOST_PLANS)
def _load_plan(data: bytes) -> Plan:
    return pickle.loads(data)  # type: ignore[no-any-return]


@lru_cache(maxsize=MOST_PLANS)
def _load_spec(data: bytes) -> BatchSpec:
    return pickle.loads(data)  # type: ignore[no-any-return]


class Job:
    """The functions that Spark runs; plan and spec travel as bytes, and a worker unpickles each once."""

    def __init__(self, plan: bytes, spec: bytes, depth: int) -> None:
        self._plan, self._spec, self._depth = plan, spec, depth

    def first(self, index: int, items: Iterable[int]) -> Iterator[Item]:
        """Level 0: read, and do all that needs no other shard."""
        _drain(items)
        try:
            parcels, report = self._read(index)
        except PotokError as error:
            yield self.give_up(error)
            return
        yield from self._send(parcels, report, index)

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Level 0 on what the connector read."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        index = context.partitionId()
        try:
            parcels, report = self._take(index, batches)
            items = self._send(parcels, report, index)
        except PotokError as error:
            items = iter([self.give_up(error)])
        for item in items:
            yield as_row(item)

    def level(self, level: int) -> Any:
        def run(index: int, items: Iterable[Item]) -> Iterator[Item]:
            parcels, reports = self._open(items)
            mine = [parcel for parcel in parcels if parcel.level == level]
            yield from ((index, data) for data in reports)
            try:
                sent, report = self._shards(level, index, mine)
            except PotokError as error:
                yield self.give_up(error)
                return
            yield from self._send([p for p in parcels if p.level != level] + sent, report, index)

        return run

    def whole(self, items: Iterable[int]) -> Iterator[Item]:
        """All levels in one task."""
        _drain(items)
        try:
            parcels, total = self._read(0)
            for level in range(1, self._depth + 1):
                mine = [parcel for parcel in parcels if parcel.level == level]
                sent, report = self._shards(level, 0, mine)
                parcels = [parcel for parcel in parcels if parcel.level != level] + sent
                total.add(report)
        except PotokError as error:
            yield self.give_up(error)
            return
        yield 0, pickle.dumps(total)

    def give_up(self, error: PotokError) -> Item:
        """An error that we raised on purpose comes back as itself: Spark would try again and wrap it in its own."""
        return 0, pickle.dumps(error)

    def _read(self, index: int) -> tuple[list[Parcel], Report]:
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        stage = Stage(plan, spec, 0, index, spec.broker, None)
        with collector_paused(), naming_step(None):
            stage.read(spec.tasks[index] if spec.tasks else [])
            stage.finish()
        stage.report.arrange()
        return stage.outbox.parcels, stage.report

    def _take(self, index: int, batches: Iterator[pa.RecordBatch]) -> tuple[list[Parcel], Report]:
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        stage = Stage(plan, spec, 0, index, spec.broker, None)
        with collector_paused(), naming_step(None):
            for lane, batch in Pieces(spec).of(batches):
                stage.take(lane, batch)
            stage.finish()
        stage.report.arrange()
        return stage.outbox.parcels, stage.report

    def _shards(self, level: int, index: int, parcels: list[Parcel]) -> tuple[list[Parcel], Report]:
        """Run one level on all the shards of a task; a shard without records still closes its windows."""
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        by_shard: dict[int, list[Parcel]] = defaultdict(list)
        for parcel in parcels:
            by_shard[parcel.shard].append(parcel)
        sent: list[Parcel] = []
        total = Report()
        for shard in range(index, plan.shards, spec.shard_tasks):
            with collector_paused(), naming_step(shard):
                stage = Stage(plan, spec, level, shard, spec.broker, shard)
                stage.receive(by_shard[shard])
                stage.finish()
            sent += stage.outbox.parcels
            total.add(stage.report)
        total.arrange()
        return sent, total

    def _send(self, parcels: list[Parcel], report: Report, index: int) -> Iterator[Item]:
        tasks = _load_spec(self._spec).shard_tasks
        yield index % tasks, pickle.dumps(report)
        for parcel in parcels:
            yield parcel.shard % tasks, pickle.dumps(parcel, protocol=5)

    def _open(self, items: Iterable[Item]) -> tuple[list[Parcel], list[bytes]]:
        parcels: list[Parcel] = []
        reports: list[bytes] = []
        for _, data in items:
            item = pickle.loads(data)
            if isinstance(item, Parcel):
                parcels.append(item)
            else:
                reports.append(data)
        return parcels, reports
