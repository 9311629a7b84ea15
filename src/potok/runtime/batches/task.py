"""The tasks of a batch: functions over shuffle blocks, the same on every executor.

Errors in a task are returned as data: Spark would otherwise retry the task, and fail the parts of other queries with
it.
"""

from __future__ import annotations

import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from potok.errors import PotokError
from potok.monitoring.logs import log_context
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.task_report import Report
from potok.operators.exchange.shuffle_writer import ShuffleBlock
from potok.records.garbage_collection import collector_paused
from potok.records.schema_registry.connection import using_connection
from potok.runtime.batches.failure_cause import QueryFailed, described
from potok.runtime.batches.stage import Stage
from potok.runtime.batches.step_failed import naming_step
from potok.topology.execution_plan import Plan

Item = tuple[int, bytes]
"""What a task returns: the task of the next level to send it to, and a pickled shuffle block, report or error."""

Split = Callable[[BatchSpec], Iterator[tuple[int, pa.RecordBatch]]]
"""Reads the records of a batch by input partition."""

MOST_PLANS = 64
"""How many plans a worker caches: the queries of a group use it in turn."""


@dataclass(frozen=True, slots=True)
class Busy:
    """How long a task ran."""

    seconds: float


@lru_cache(maxsize=MOST_PLANS)
def _load_plan(data: bytes) -> Plan:
    return pickle.loads(data)  # type: ignore[no-any-return]


@lru_cache(maxsize=MOST_PLANS)
def _load_spec(data: bytes) -> BatchSpec:
    return pickle.loads(data)  # type: ignore[no-any-return]


class Job:
    """The functions that an executor calls. Plan and spec travel as bytes, and a worker unpickles each once."""

    def __init__(self, plan: bytes, spec: bytes, depth: int, query: str) -> None:
        self._plan, self._spec, self._depth, self._query = plan, spec, depth, query

    def read(self, index: int, items: Iterable[object]) -> Iterator[Item]:
        """Run level 0: read, and run all operators that need no other shard."""
        _drain(items)
        return self._guarded(self._read_level(index))

    def decode(self, index: int, split: Split) -> Iterator[Item]:
        """Run level 0 on records that the caller has read."""
        return self._guarded(self._decode_level(index, split))

    def run_level(self, level: int, index: int, items: Iterable[Item]) -> Iterator[Item]:
        """Run a level after a shuffle, on all shards of a task."""
        return self._guarded(self._shard_level(level, index, items))

    def all_levels(self, items: Iterable[object]) -> Iterator[Item]:
        """Run all levels in one task."""
        _drain(items)
        return self._guarded(self._whole())

    def _guarded(self, items: Iterator[Item]) -> Iterator[Item]:
        """Return an error as an item, followed by the duration of the task."""
        began = time.perf_counter()
        try:
            yield from items
        except PotokError as error:
            yield 0, pickle.dumps(error)
        except Exception as error:  # noqa: BLE001 - raised by the driver
            yield 0, pickle.dumps(QueryFailed(self._query, described(error)))
        yield 0, pickle.dumps(Busy(time.perf_counter() - began))

    def _read_level(self, index: int) -> Iterator[Item]:
        yield from self._send(*self._read(index), index)

    def _decode_level(self, index: int, split: Split) -> Iterator[Item]:
        yield from self._send(*self._take(index, split), index)

    def _shard_level(self, level: int, index: int, items: Iterable[Item]) -> Iterator[Item]:
        shuffle_blocks, others = self._open(items)
        mine = [shuffle_block for shuffle_block in shuffle_blocks if shuffle_block.level == level]
        yield from ((index, data) for data in others)
        sent, report = self._shards(level, index, mine)
        yield from self._send([p for p in shuffle_blocks if p.level != level] + sent, report, index)

    def _whole(self) -> Iterator[Item]:
        shuffle_blocks, total = self._read(0)
        for level in range(1, self._depth + 1):
            mine = [shuffle_block for shuffle_block in shuffle_blocks if shuffle_block.level == level]
            sent, report = self._shards(level, 0, mine)
            shuffle_blocks = [shuffle_block for shuffle_block in shuffle_blocks if shuffle_block.level != level] + sent
            total.add(report)
        yield 0, pickle.dumps(total)

    def _read(self, index: int) -> tuple[list[ShuffleBlock], Report]:
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        stage = Stage(plan, spec, 0, index, spec.broker, None)
        with collector_paused(), _logged(spec), naming_step(None), using_connection(plan.schema_registry):
            stage.read(spec.tasks[index] if spec.tasks else [])
            stage.finish()
        stage.report.arrange()
        return stage.shuffle_writer.shuffle_blocks, stage.report

    def _take(self, index: int, split: Split) -> tuple[list[ShuffleBlock], Report]:
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        stage = Stage(plan, spec, 0, index, spec.broker, None)
        with collector_paused(), _logged(spec), naming_step(None), using_connection(plan.schema_registry):
            for input_partition, batch in split(spec):
                stage.take(input_partition, batch)
            stage.finish()
        stage.report.arrange()
        return stage.shuffle_writer.shuffle_blocks, stage.report

    def _shards(self, level: int, index: int, shuffle_blocks: list[ShuffleBlock]) -> tuple[list[ShuffleBlock], Report]:
        """Run one level on all shards of a task; a shard without records still closes its windows."""
        plan, spec = _load_plan(self._plan), _load_spec(self._spec)
        by_shard: dict[int, list[ShuffleBlock]] = defaultdict(list)
        for shuffle_block in shuffle_blocks:
            by_shard[shuffle_block.shard].append(shuffle_block)
        sent: list[ShuffleBlock] = []
        total = Report()
        for shard in range(index, plan.shards, spec.shard_tasks):
            with collector_paused(), _logged(spec), naming_step(shard), using_connection(plan.schema_registry):
                stage = Stage(plan, spec, level, shard, spec.broker, shard)
                stage.receive(by_shard[shard])
                stage.finish()
            sent += stage.shuffle_writer.shuffle_blocks
            total.add(stage.report)
        total.arrange()
        return sent, total

    def _send(self, shuffle_blocks: list[ShuffleBlock], report: Report, index: int) -> Iterator[Item]:
        tasks = _load_spec(self._spec).shard_tasks
        yield index % tasks, pickle.dumps(report)
        for shuffle_block in shuffle_blocks:
            yield shuffle_block.shard % tasks, pickle.dumps(shuffle_block, protocol=5)

    def _open(self, items: Iterable[Item]) -> tuple[list[ShuffleBlock], list[bytes]]:
        shuffle_blocks: list[ShuffleBlock] = []
        reports: list[bytes] = []
        for _, data in items:
            item = pickle.loads(data)
            if isinstance(item, ShuffleBlock):
                shuffle_blocks.append(item)
            else:
                reports.append(data)
        return shuffle_blocks, reports


def _logged(spec: BatchSpec) -> AbstractContextManager[None]:
    attempt = spec.fence.attempt
    return log_context(query=spec.query, batch=attempt.batch, epoch=attempt.epoch, trace_id=spec.trace_id)


def _drain(items: Iterable[object]) -> None:
    """Read the input to its end, or Spark starts a new worker, which takes as long as a small batch."""
    for _ in items:
        pass
