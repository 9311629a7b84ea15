"""The executor that programs run on: a batch is one Spark job.

Each level of a topology is a stage, and Spark moves shuffle blocks between them. A block is a whole column chunk for
one step on one shard, so Spark shuffles a few large byte strings instead of many rows. A small batch runs all levels in
one task and needs no shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from potok.log.broker import Slots
from potok.operators.core.task_report import Report
from potok.records.position import Position
from potok.runtime.batches.assignment import balance
from potok.runtime.batches.executor import Outcome, Part
from potok.runtime.batches.task import Item, Job
from potok.runtime.batches.task_output import by_slot, position_after, publish_slot, without_output
from potok.settings import Settings
from potok.spark.connector import ROW_TYPE, Connector, connector_of, read_rows
from potok.spark.driver_spark import DriverSpark
from potok.spark.session import spark_context
from potok.spark.start.lost_jvm import JvmGone, jvm_is_gone
from potok.spark.worker_logs import set_up_logs

if TYPE_CHECKING:
    from pyspark import SparkContext

FIXED_COST = 500
"""The fixed cost of a part, in records."""

JAVA_CLASSES = {
    "PythonRDD": ("collectAndServe", "valueOfPair"),
    "PythonUtils": ("getBroadcastThreshold",),
    "SimplePythonFunction": (),
    "PairwiseRDD": (),
    "PythonPartitioner": (),
}
"""The Java classes that pyspark uses in each batch, and their static methods."""

Group = list[tuple[int, Job]]
"""Parts that one task runs, each with its number."""


class SparkExecutor:
    """Run batches on a Spark context."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        _remember_classes(context)
        self.master = str(context.master)
        self.parallelism = int(context.defaultParallelism)
        self._numbers: dict[int, Any] = {}

    @property
    def spark(self) -> DriverSpark:
        return DriverSpark()

    def check(self) -> None:
        if jvm_is_gone():
            raise JvmGone

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        """Run all parts in one job. Parts of a single task are grouped into few tasks: starting a task takes longer
        than running one of them.
        """
        from pyspark import StorageLevel

        outcomes = [Outcome() for _ in parts]
        rdds: list[Any] = []
        kept: dict[int, Any] = {}
        connectors = [None if part.is_small else connector_of(self._context, part.spec) for part in parts]
        small = [number for number, part in enumerate(parts) if part.one_task and connectors[number] is None]
        if small:
            groups = _grouped(parts, small, self.parallelism)
            rdds.append(self._tasks(len(groups)).mapPartitionsWithIndex(partial(_run_group, groups)))
        for number, part in enumerate(parts):
            if number not in small:
                rdd = self._levels(part, connectors[number])
                if part.spec.keeps_output:
                    kept[number] = rdd.persist(StorageLevel.MEMORY_AND_DISK)
                    rdd = rdd.mapPartitions(without_output)
                rdds.append(rdd.mapPartitions(partial(_numbered, number)))
        if not rdds:
            return outcomes
        self._context.setJobDescription("; ".join(part.description for part in parts))
        try:
            for number, data in (rdds[0] if len(rdds) == 1 else self._context.union(rdds)).collect():
                outcomes[number].add(data)
        except BaseException:
            for rdd in kept.values():
                rdd.unpersist()
            raise
        for number, rdd in kept.items():
            if outcomes[number].report.kept:
                outcomes[number].output = SparkOutput(rdd, outcomes[number].report)
            else:
                rdd.unpersist()
        return outcomes

    def _tasks(self, count: int) -> Any:
        """Return an RDD of tasks without data. It is cached: creating it takes several calls to the JVM."""
        if count not in self._numbers:
            self._numbers[count] = self._context.parallelize(range(count), count)
        return self._numbers[count]

    def _levels(self, part: Part, connector: Connector | None) -> Any:
        """Return the stages of a batch as a chain of RDDs."""
        job, spec = part.job(), part.spec
        if connector is not None:
            rdd: Any = connector.read(spec).mapInArrow(partial(read_rows, job), ROW_TYPE).rdd
        else:
            readers = max(len(spec.tasks), 1)
            rdd = self._tasks(readers).mapPartitionsWithIndex(job.read)
        for level in range(1, part.depth + 1):
            rdd = rdd.partitionBy(spec.shard_tasks, _same).mapPartitionsWithIndex(partial(job.run_level, level))
        return rdd


class SparkOutput:
    """Output in the memory and on the disks of Spark's executors. Spark recomputes the part of an executor that is
    lost; functions that are not deterministic may then produce other records."""

    def __init__(self, rdd: Any, report: Report) -> None:
        self._rdd, self._topics = rdd, sorted(report.kept)

    @property
    def topics(self) -> Sequence[str]:
        return self._topics

    def publish(self, slots: Slots) -> Position:
        divided = self._rdd.mapPartitionsWithIndex(partial(by_slot, slots)).partitionBy(slots.count, _same)
        return position_after(divided.mapPartitionsWithIndex(partial(publish_slot, slots)).collect())

    def release(self) -> None:
        self._rdd.unpersist()


def start_spark(settings: Settings) -> SparkExecutor:
    """Start an executor on the context of this process."""
    set_up_logs(settings.log_level, settings.log_format)
    return SparkExecutor(spark_context(settings))


def _remember_classes(context: SparkContext) -> None:
    """Keep the Java classes and methods that every batch needs as attributes of what they are looked up on: py4j would
    otherwise ask the JVM for them again, six times in each batch.
    """
    jvm: Any = context._jvm
    for name, methods in JAVA_CLASSES.items():
        found = getattr(jvm, name)
        setattr(jvm, name, found)
        for method in methods:
            setattr(found, method, getattr(found, method))


def _grouped(parts: Sequence[Part], numbers: Sequence[int], tasks: int) -> list[Group]:
    groups = balance(numbers, tasks, lambda number: parts[number].spec.records + FIXED_COST)
    return [[(number, parts[number].job()) for number in group] for group in groups]


def _run_group(groups: Sequence[Group], index: int, items: Iterable[object]) -> Iterator[Item]:
    for _ in items:
        pass
    for number, job in groups[index]:
        for _, data in job.all_levels(()):
            yield number, data


def _numbered(number: int, items: Iterable[Item]) -> Iterator[Item]:
    for _, data in items:
        yield number, data


def _same(key: int) -> int:
    return key
