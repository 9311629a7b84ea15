"""Runs whole batches in the process of the test: the driver of the testing kit over a stand-in for Spark's RDDs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from potok.testing.driver import TestDriver

TASKS = 3


class LocalRdd:
    """Partitions of a list, and the four verbs that the engine uses."""

    def __init__(self, partitions: list[list[Any]]) -> None:
        self._partitions = partitions

    def mapPartitions(self, work: Callable[[Iterable[Any]], Iterable[Any]]) -> LocalRdd:
        return LocalRdd([list(work(iter(items))) for items in self._partitions])

    def mapPartitionsWithIndex(self, work: Callable[[int, Iterable[Any]], Iterable[Any]]) -> LocalRdd:
        return LocalRdd([list(work(index, iter(items))) for index, items in enumerate(self._partitions)])

    def partitionBy(self, count: int, place: Callable[[Any], int]) -> LocalRdd:
        partitions: list[list[Any]] = [[] for _ in range(count)]
        for items in self._partitions:
            for key, data in items:
                partitions[place(key) % count].append((key, data))
        return LocalRdd(partitions)

    def collect(self) -> list[Any]:
        return [item for items in self._partitions for item in items]


class LocalContext:
    """What the engine asks of a SparkContext."""

    defaultParallelism = TASKS

    def parallelize(self, items: Iterable[Any], count: int) -> LocalRdd:
        rows = list(items)
        return LocalRdd([rows[index::count] for index in range(count)])


class InProcess(TestDriver):
    """A `TestDriver` whose batches run in this process, so that a test of what a batch means takes milliseconds."""

    __test__ = False

    def _context(self) -> Any:
        return LocalContext()

    def reasons(self) -> list[tuple[str, str]]:
        """The dead letters as (step, reason), in order."""
        return sorted((letter.step, letter.reason) for letter in self.dead_letters())
