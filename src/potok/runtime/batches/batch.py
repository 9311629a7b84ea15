"""The batches of one query, from their offsets to their commit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import cloudpickle

from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.operators.core.batch_spec import BatchSpec, BatchTooLarge, Range
from potok.operators.core.dead_letters import InputPartition
from potok.operators.core.task_report import Report
from potok.operators.windows.expiry import NEVER
from potok.records.position import Position
from potok.runtime.batches.assignment import balance
from potok.runtime.batches.executor import Executor, Part
from potok.runtime.batches.reachability import on_one_machine
from potok.runtime.output.deliver import Deliveries
from potok.runtime.output.processing_log import report_failures
from potok.runtime.planning.pace import Pace
from potok.runtime.planning.start_offsets import check_topics
from potok.runtime.planning.watermark import advance_watermarks, windowed_steps
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.progress import QueryMetrics, Totals
from potok.state.entry import Entry, metadata_key_of
from potok.state.offsets import Offsets
from potok.state.open import StateLocation
from potok.state.output_history import OutputHistory
from potok.topology.execution_plan import Plan
from potok.topology.nodes import Aggregate, Deliver, Node, Session

log = logging.getLogger(__name__)

JUMPED = (
    'topic "%s": %d record(s) advanced the stream time of a partition by more than a day, so later records '
    'may be late; max_jump="1 hour" on the stream limits how far one record may advance it'
)

OVERFLOWED = (
    'a sum of step "%s" no longer fits into 64 bits: records are now added one by one, and those that '
    "overflow are dead letters; sum a float instead"
)

SMALL_BATCH = 10_000
"""With up to this many records, one task does everything: a shuffle costs more than a second core saves."""


@dataclass(slots=True)
class BatchRunner:
    """Run the batches of one query, one after the other."""

    executor: Executor
    broker: Broker
    plan: Plan
    ledger: Ledger
    directory: Path
    metrics: QueryMetrics
    state: StateLocation
    pace: Pace | None = None
    small_batch: int = field(default_factory=lambda: SMALL_BATCH)
    compares_batches: bool = False
    plan_bytes: bytes = b""
    _steps: Mapping[str, set[str]] = field(default_factory=dict)
    _careful: frozenset[str] = frozenset()
    _deliveries: Deliveries = field(init=False)
    _durable_intent: bool = False
    _outputs: OutputHistory = field(init=False)
    _next_outputs: OutputHistory = field(init=False)

    def __post_init__(self) -> None:
        self.plan_bytes = cloudpickle.dumps(self.plan)
        self._steps = windowed_steps(self.plan.topology)
        self._deliveries = Deliveries.opened(self.plan, self.broker, self.ledger.entry, self.executor.spark)
        before_commit = any(node.guarantee.before_commit for node in self.plan.topology.of_type(Deliver))
        self._durable_intent = before_commit or not self.broker.commits_together
        outputs = self.broker.get_metadata(metadata_key_of(self.name, "outputs"))
        self._outputs = self._next_outputs = OutputHistory.of_bytes(outputs)

    @property
    def name(self) -> str:
        return self.plan.topology.name

    def undo(self, counted: Totals, error: BaseException) -> None:
        """Discard a failed attempt: none of its output is visible, and the same batch may run again. Raise
        `QueryTakenOver` if another process runs the query.
        """
        self.metrics.totals = counted
        # First: the directory may be shared with the other process, including what it has staged.
        self.raise_if_taken_over(error)
        shutil.rmtree(self.directory / "staging", ignore_errors=True)

    def raise_if_taken_over(self, error: BaseException) -> None:
        """Raise `QueryTakenOver` from an error if another process runs the query."""
        try:
            self.ledger.check_owner()
        except QueryTakenOver as taken:
            raise taken from error
        except PotokError:
            # The owner is unknown: report the original error.
            return

    def ahead(self, end: Offsets) -> Offsets | None:
        """Return the end of a batch in the topics of this topology, or None if it has already been committed."""
        entry = self.ledger.entry
        known = self._known(entry, end)
        done = entry.offsets.reached(known) and entry.offsets.idle == known.idle
        return None if done else known

    def check(self) -> None:
        """Raise if a topic is not the one that the ledger was written for."""
        topology = self.plan.topology
        check_topics(self.broker, topology.name, topology.source_topics, self.ledger.entry)

    def deliver(self, spec: BatchSpec, report: Report) -> None:
        """Deliver output that must be visible when the batch is committed."""
        self._deliveries.before_commit(spec, report)

    def metadata_after(self, entry: Entry, position: Position) -> dict[str, bytes | None]:
        """Return the metadata key that depends on the position after the output of a batch."""
        topics = self.plan.topology.sink_topics
        if not topics:
            return {}
        written = (position | self._deliveries.written).within(topics)
        self._next_outputs = self._outputs.after(entry.batch, entry.offsets.topics, written)
        return {metadata_key_of(self.name, "outputs"): self._next_outputs.to_bytes()}

    def finish(self, spec: BatchSpec, report: Report) -> None:
        """Deliver output that follows the commit, and remove the staged files."""
        self._outputs = self._next_outputs
        # Too late for the progress of this batch: they are counted with the next one.
        self.metrics.totals.dead_letters += self._deliveries.after_commit(spec, report)
        spec.clear_staging()

    def close(self) -> None:
        """Close the sinks; the next start opens them again."""
        self._deliveries.close()

    def begin(self, end: Offsets) -> None:
        """Record the end of the batch, durably if output may be visible before the commit."""
        self.ledger.intend(end, durable=self._durable_intent)

    def part(self, spec: BatchSpec) -> Part:
        return Part(self.plan_bytes, spec, self.plan.depth, self.small_batch)

    def retry_one_by_one(self, error: AggregateOverflow, spec: BatchSpec) -> bool:
        """Prepare another attempt after a sum has overflowed; return whether one can succeed."""
        if error.step in self._careful or not _adds_one_by_one(self.plan.topology.node(error.step)):
            return False
        spec.clear_staging()
        self.ledger.begin_epoch({})
        log.warning(OVERFLOWED, error.step)
        self._careful |= {error.step}
        return True

    def shrink(self, error: BatchTooLarge, spec: BatchSpec) -> None:
        """Plan the next batch smaller, because this one exceeded the byte limit."""
        spec.clear_staging()
        metadata_keys: dict[str, bytes | None] = {}
        if self.pace is not None:
            self.pace.shrink(spec.records, error.record_bytes)
            metadata_keys[metadata_key_of(self.plan.topology.name, "pace")] = self.pace.to_bytes()
        self.ledger.begin_epoch(metadata_keys, intended=None)

    def _known(self, entry: Entry, end: Offsets) -> Offsets:
        """Restrict offsets to the topics of this topology: a batch started by an earlier version may name others."""
        topics = {
            topic: {**end.topics.get(topic, {}), **_furthest(parts, end.topics.get(topic, {}))}
            for topic, parts in entry.offsets.topics.items()
        }
        return replace(end, topics=topics)

    def spec(self, end: Offsets) -> BatchSpec:
        """Describe the next attempt for its tasks."""
        entry = self.ledger.entry
        input_partitions = [
            InputPartition(topic, partition) for topic in sorted(end.topics) for partition in sorted(end.topics[topic])
        ]
        watermarks = advance_watermarks(self._steps, end.topics, entry.stream_times, end.idle, entry.watermarks)
        ranges: list[Range] = []
        for index, input_partition in enumerate(input_partitions):
            start = entry.offsets.topics.get(input_partition.topic, {}).get(input_partition.partition, 0)
            stop = end.topics[input_partition.topic][input_partition.partition]
            if stop > start:
                ranges.append(Range(index, start, stop, self._stream_time(entry, input_partition, watermarks)))
        records = sum(len(part) for part in ranges)
        small = records <= self.small_batch
        tasks = balance(ranges, 1 if small else self.executor.parallelism, len)
        for task in tasks:
            task.sort(key=lambda part: part.input_partition)
        # A batch with one record of each partition cannot be made smaller.
        bounded = end.max_bytes if records > len(ranges) else 0
        sinks = {topic: self.broker.partitions(topic) for topic in self.plan.topology.sink_topics}
        one_machine = on_one_machine(self.executor.master)
        return BatchSpec(
            entry.fence,
            self.broker,
            self.directory,
            input_partitions,
            tasks,
            1 if small else self.plan.shards,
            watermarks,
            end.at_ms or now_ms(),
            sinks,
            self.plan.topology.name,
            self.state.at(entry),
            self._careful,
            one_machine,
            entry.cells,
            bounded // max(len(tasks), 1),
            self.compares_batches,
            keeps_output=self.broker.publishes_by_task and not one_machine and not small,
        )

    def _stream_time(self, entry: Entry, input_partition: InputPartition, watermarks: Mapping[str, int]) -> int:
        """Return the stream time a partition resumes at; one that was idle, or is new, starts at the watermark."""
        known = entry.stream_times.get(input_partition.topic, {}).get(input_partition.partition)
        if known is not None and (input_partition.topic, input_partition.partition) not in entry.offsets.idle:
            return known
        reached = [time for step, time in watermarks.items() if input_partition.topic in self._steps[step]]
        return max([NEVER if known is None else known, *reached])

    def next_entry(
        self, end: Offsets, spec: BatchSpec, report: Report, batch_ms: int
    ) -> tuple[Entry, dict[str, bytes | None]]:
        """Return the ledger's next entry, and the metadata keys that are written with it."""
        entry = self.ledger.entry
        times = {topic: dict(parts) for topic, parts in entry.stream_times.items()}
        for index, stream_time in report.stream_times.items():
            if stream_time > NEVER:
                input_partition = spec.input_partitions[index]
                times.setdefault(input_partition.topic, {})[input_partition.partition] = stream_time
        after = replace(
            entry,
            batch=entry.batch + 1,
            offsets=end,
            stream_times=times,
            next_ends=report.next_ends if self.plan.depth else {},
            next_timers=report.next_timers,
            watermarks=spec.watermarks,
            cells=spec.fence.attempt if self.plan.depth else entry.cells,
            intended=None,
            positions={**entry.positions, **report.positions},
        )
        metrics = self.metrics
        metrics.begin(batch_ms)
        metrics.state, metrics.error = "running", ""
        metrics.batch, metrics.batch_ms = after.batch, batch_ms
        # Fewer than the number of offsets where the log has gaps.
        read = sum(report.records_in[source.name] for source in self.plan.topology.sources)
        metrics.records_in, metrics.records_out = read, report.written
        metrics.lag = end.pending(self.broker.end_offsets_of(list(end.topics)))
        metrics.state_bytes |= report.state_bytes
        metrics.state_keys = report.state_keys
        metrics.offsets, metrics.watermarks = end.topics, {step: t for step, t in spec.watermarks.items() if t > NEVER}
        metrics.totals.add(report, read)
        report_failures(self.broker, self.plan.topology, spec, report)
        for topic, count in report.jumps.items():
            log.warning(JUMPED, topic, count)
        name = self.plan.topology.name
        metadata_keys: dict[str, bytes | None] = {metadata_key_of(name, "progress"): metrics.to_bytes()}
        if self.pace is not None:
            self.pace.learn(spec.records, batch_ms, report.bytes_in)
            metadata_keys[metadata_key_of(name, "pace")] = self.pace.to_bytes()
        return after, metadata_keys


def _adds_one_by_one(node: Node) -> bool:
    """Whether the records that make a sum overflow can be identified: those of a session define its bounds."""
    return isinstance(node, Aggregate) and not isinstance(node.window, Session)


def _furthest(parts: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {part: max(offset, ends.get(part, offset)) for part, offset in parts.items()}
