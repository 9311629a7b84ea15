"""Run one stage in one task: feed its operators, finish them, and commit their state."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pyarrow as pa

import potok.operators.registry  # noqa: F401 - registers the operator factories
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.monitoring.logs import writes_json
from potok.operators.core.batch_spec import BatchSpec, Range
from potok.operators.core.dead_letters import DeadLetters
from potok.operators.core.operator import Operator, Task
from potok.operators.core.operator_factory import OperatorFactory
from potok.operators.core.read_topic import ReadBytes
from potok.operators.core.step_times import StepTimes
from potok.operators.core.task_report import Report
from potok.operators.core.wiring import Wiring
from potok.operators.exchange.shuffle_writer import ShuffleBlock, ShuffleWriter
from potok.operators.patterns.partials import partials_of
from potok.operators.patterns.runs import runs_of
from potok.operators.windows.expiry import windows_of
from potok.operators.windows.windows import open_table
from potok.runtime.batches.original import originals
from potok.runtime.output.dead_letters import stage_dead_letters
from potok.state.session import StateSession
from potok.topology.execution_plan import Plan
from potok.topology.nodes import (
    Aggregate,
    Match,
    Node,
    Session,
    Sliding,
)


class Stage:
    """The operators of one level, for one task and, above level 0, one shard."""

    def __init__(self, plan: Plan, spec: BatchSpec, level: int, task: int, broker: Broker, shard: int | None) -> None:
        self._plan, self._spec, self._level, self._broker = plan, spec, level, broker
        self._shard = shard
        self.report = Report()
        self.shuffle_writer = ShuffleWriter(task)
        dead_letters = DeadLetters(spec.input_partitions, partial(originals, broker), spec.processing_time_ms)
        times = StepTimes() if spec.trace_id is not None or writes_json() else None
        self._task = Task(dead_letters, processing_time_ms=spec.processing_time_ms, times=times)
        self._session = None if shard is None else StateSession(spec.state_of(shard), spec.fence)
        self._start_times = {part.input_partition: part.stream_time_ms for task_ in spec.tasks for part in task_}
        operator_factory = OperatorFactory(
            plan, spec, self._task, broker, self.shuffle_writer, self.report, self._session
        )
        wiring = Wiring(operator_factory, level)
        self._readers, self._receivers, self._order = wiring.readers, wiring.receivers, wiring.order
        self._bytes = ReadBytes(spec.task_bytes)
        for reader in self._readers.values():
            reader.bytes = self._bytes

    def read(self, ranges: list[Range]) -> None:
        for part in ranges:
            input_partition = self._spec.input_partitions[part.input_partition]
            reader = self._readers[input_partition.topic]
            with self._measured(reader):
                reader.read(part, input_partition.partition)

    def take(self, input_partition: int, batch: pa.RecordBatch) -> None:
        """Process records that the caller has read, in the order of their partition."""
        reader = self._readers[self._spec.input_partitions[input_partition].topic]
        with self._measured(reader):
            reader.take(batch, input_partition, self._start_times[input_partition])

    def receive(self, shuffle_blocks: list[ShuffleBlock]) -> None:
        for shuffle_block in sorted(
            shuffle_blocks, key=lambda shuffle_block: (shuffle_block.task, shuffle_block.sequence)
        ):
            self._receivers[shuffle_block.step].receive(shuffle_block.payload)

    def finish(self) -> None:
        """Finish the operators in order, and deliver shuffle blocks for the same level on the way."""
        for operator in self._order:
            with self._measured(operator):
                operator.finish()
            local = [
                shuffle_block
                for shuffle_block in self.shuffle_writer.shuffle_blocks
                if shuffle_block.level == self._level
            ]
            if local:
                self.shuffle_writer.shuffle_blocks = [
                    shuffle_block
                    for shuffle_block in self.shuffle_writer.shuffle_blocks
                    if shuffle_block.level != self._level
                ]
                self.receive(local)
        self.report.bytes_in = self._bytes.total
        for reader in self._readers.values():
            self.report.stream_times |= reader.stream_times
        self._stage_dead_letters()
        if self._session is not None:
            self._commit(self._session)
        self.report.records_in, self.report.records_out = self._task.records_in, self._task.records_out
        self.report.reasons, self.report.late = self._task.dead_letters.reasons, self._task.dead_letters.late
        self.report.reason_counts, self.report.jumps = self._task.dead_letters.reason_counts, self._task.jumps
        self.report.failures, self.report.failed = self._task.failures.counts, self._task.failures.first
        if self._task.times is not None:
            self.report.times, self.report.traces = self._task.times.steps, self._task.times.traces

    def _measured(self, operator: Operator) -> AbstractContextManager[None]:
        times = self._task.times
        return nullcontext() if times is None else times.of(operator.step)

    def _stage_dead_letters(self) -> None:
        dead_letters = self._task.dead_letters
        if len(dead_letters):
            topic = self._plan.topology.dead_letter_topic
            self.report.staged += stage_dead_letters(self._broker, self._spec.staging, topic, dead_letters)

    def _commit(self, session: StateSession) -> None:
        session.sweep(sorted({table for operator in self._order for table in operator.state_tables}))
        failpoint("state.before")
        session.commit()
        failpoint("state.written")
        store = session.store
        for node in self._plan.topology.tables:
            if self._plan.levels[node] == self._level:
                self.report.state_keys[node.name] = sum(map(session.count, _cells_of(node)))
        for pattern in self._plan.topology.of_type(Match):
            if self._plan.levels[pattern] == self._level:
                self.report.state_keys[partials_of(pattern.name)] = session.count(runs_of(pattern.name))
        for operator in self._order:
            due = operator.next_due()
            if due is not None:
                held_ms = self._plan.topology.held_back_ms(self._plan.topology.node(operator.name))
                self.report.next_ends[operator.name] = due + held_ms
            processing_timer = operator.next_timer()
            if processing_timer is not None:
                self.report.next_timers[operator.name] = processing_timer
        assert self._shard is not None
        self.report.state_bytes[self._shard] = store.size_bytes()
        if (position := store.position) is not None:
            self.report.positions[self._shard] = position
        if (requests := store.requests) is not None:
            self.report.requests.add(requests)


def _cells_of(node: Node) -> list[str]:
    """Return the cell tables that hold the rows of a table."""
    window = node.window if isinstance(node, Aggregate) else None
    if isinstance(window, Session | Sliding):
        return [node.name, open_table(node.name)]
    return [node.name] if window is None else [windows_of(node.name)]
