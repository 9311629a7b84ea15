"""One batch from its offsets to its commit."""

from __future__ import annotations

import copy
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle

from potok.engine.batch_spec import BatchSpec, BatchTooLarge, Range
from potok.engine.beginning import check_topics
from potok.engine.clock import closing_clocks, windowed_steps
from potok.engine.connector import Connector
from potok.engine.deliver import Deliveries
from potok.engine.job import run_job
from potok.engine.ledger import Ledger
from potok.engine.lock import QueryTakenOver
from potok.engine.pace import Pace
from potok.engine.plan import Plan
from potok.engine.processing_log import tell_failures
from potok.engine.progress import Pulse, Totals
from potok.engine.report import Report
from potok.errors import PotokError
from potok.kernels.dead_letters import Lane
from potok.kernels.expiry import NEVER
from potok.kernels.pre_aggregate import AggregateOverflow
from potok.log.broker import Broker
from potok.state.entry import Entry, mark_of
from potok.state.offsets import Offsets
from potok.state.place import Place
from potok.topology.nodes import Aggregate, Node, Session

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

JUMPED = (
    'topic "%s": %d record(s) moved the clock of a partition by more than a day, so that what comes after may be late; '
    'max_jump="1 hour" on the stream bounds how far one record may move it'
)

OVERFLOWED = (
    'a sum of step "%s" no longer fits into 64 bits: it takes its records one by one from here on, and those that '
    "overflow are dead letters; sum a float instead"
)

SMALL_BATCH = 10_000
"""Up to so many records, one task does everything: a shuffle costs more than the second core brings."""


@dataclass(slots=True)
class BatchRunner:
    """Runs the batches of one query, one after the other."""

    context: SparkContext
    broker: Broker
    plan: Plan
    ledger: Ledger
    directory: Path
    pulse: Pulse
    parallelism: int
    state: Place
    pace: Pace | None = None
    small_batch: int = field(default_factory=lambda: SMALL_BATCH)
    connector: Connector | None = None
    one_machine: bool = True
    plan_bytes: bytes = b""
    _steps: Mapping[str, set[str]] = field(default_factory=dict)
    _careful: frozenset[str] = frozenset()
    _deliveries: Deliveries = field(init=False)

    def __post_init__(self) -> None:
        self.plan_bytes = cloudpickle.dumps(self.plan)
        self._steps = windowed_steps(self.plan.topology)
        self._deliveries = Deliveries.opened(self.plan, self.broker, self.ledger.entry)

    def run(self, end: Offsets) -> Report | None:
        """Run the batch that ends at `end`, unless it has been committed before.

        Whatever goes wrong after another process has taken the query over, that is the reason: what this one reads of
        the state may be half of its own and half of the other's.
        """
        ahead = self.ahead(end)
        if ahead is None:
            return None
        counted = copy.deepcopy(self.pulse.totals)
        try:
            return self._run(ahead)
        except Exception as error:
            self.undo(counted, error)
            raise

    def undo(self, counted: Totals, error: BaseException) -> None:
        """Forget an attempt that failed: nothing of it is visible, and the same batch may be run again. Raises
        `QueryTakenOver` if another process runs the query by now."""
        self.pulse.totals = counted
        # First: the directory may be that of the other process too, with what it has staged.
        self.blame_owner(error)
        shutil.rmtree(self.directory / "staging", ignore_errors=True)

    def blame_owner(self, error: BaseException) -> None:
        """Raise `QueryTakenOver` from an error, if another process runs the query by now."""
        try:
            self.ledger.check_owner()
        except QueryTakenOver as taken:
            raise taken from error
        except PotokError:
            # Nobody can say: what went wrong first is told.
            return

    def _run(self, ahead: Offsets) -> Report | None:
        began = time.monotonic()
        self.check()
        attempted = self._attempt(ahead)
        if attempted is None:
            return None
        spec, report = attempted
        self.deliver(spec, report)
        after, marks = self.books(ahead, spec, report, int((time.monotonic() - began) * 1000))
        self.ledger.commit(after, report.staged, marks)
        self.finish(spec, report)
        return report

    def ahead(self, end: Offsets) -> Offsets | None:
        """Where a batch ends in the topics of this topology; None if it has been committed before."""
        entry = self.ledger.entry
        known = self._known(entry, end)
        done = entry.offsets.reached(known) and entry.offsets.idle == known.idle
        return None if done else known

    def check(self) -> None:
        """Whether the topics are those that the ledger tells of."""
        topology = self.plan.topology
        check_topics(self.broker, topology.name, topology.source_topics, self.ledger.entry)

    def deliver(self, spec: BatchSpec, report: Report) -> None:
        """Hand over what must be out when the batch is committed."""
        self._deliveries.before_commit(spec, report)

    def finish(self, spec: BatchSpec, report: Report) -> None:
        """What comes after the commit."""
        # Too late for the progress of this batch: they are told with the next.
        self.pulse.totals.dead_letters += self._deliveries.after_commit(spec, report)
        spec.clear_staging()

    def close(self) -> None:
        """Close the sinks; the next start opens them again."""
        self._deliveries.close()

    def _attempt(self, end: Offsets) -> tuple[BatchSpec, Report] | None:
        """Run the batch. If a sum overflows, the attempt is void, and the next one has that step take record by record,
        so that it can set aside those which overflow; as they may go on doing so, it stays at that. A batch of too many
        bytes is void too, and None: it is planned again with fewer records."""
        while True:
            spec = self.spec(end)
            try:
                return spec, run_job(self.context, self.plan_bytes, spec, self.plan.depth, self.connector_for(spec))
            except AggregateOverflow as error:
                if not self.give_way(error, spec):
                    raise
            except BatchTooLarge as error:
                self.shrink(error, spec)
                return None

    def give_way(self, error: AggregateOverflow, spec: BatchSpec) -> bool:
        """Make ready for the next attempt after a sum has overflowed; whether there is any use in one."""
        if error.step in self._careful or not _takes_singly(self.plan.topology.node(error.step)):
            return False
        spec.clear_staging()
        self.ledger.begin_epoch({})
        log.warning(OVERFLOWED, error.step)
        self._careful |= {error.step}
        return True

    def shrink(self, error: BatchTooLarge, spec: BatchSpec) -> None:
        """Have the next batch planned smaller, after this one was found to be too large."""
        spec.clear_staging()
        marks: dict[str, bytes | None] = {}
        if self.pace is not None:
            self.pace.shrink(spec.records, error.record_bytes)
            marks[mark_of(self.plan.topology.name, "pace")] = self.pace.to_bytes()
        self.ledger.begin_epoch(marks)

    def connector_for(self, spec: BatchSpec) -> Connector | None:
        """What reads the batch in the JVM; a small one is read where it is decoded."""
        return self.connector if spec.records > self.small_batch else None

    def _known(self, entry: Entry, end: Offsets) -> Offsets:
        """The offsets in the topics of this topology: a batch that an earlier version began may name others."""
        topics = {
            topic: {**end.topics.get(topic, {}), **_furthest(parts, end.topics.get(topic, {}))}
            for topic, parts in entry.offsets.topics.items()
        }
        return replace(end, topics=topics)

    def spec(self, end: Offsets) -> BatchSpec:
        """What the tasks of the next attempt are told."""
        entry = self.ledger.entry
        lanes = [Lane(topic, partition) for topic in sorted(end.topics) for partition in sorted(end.topics[topic])]
        clocks = closing_clocks(self._steps, end.topics, entry.stream_times, end.idle, entry.clocks)
        ranges: list[Range] = []
        for index, lane in enumerate(lanes):
            start = entry.offsets.topics.get(lane.topic, {}).get(lane.partition, 0)
            stop = end.topics[lane.topic][lane.partition]
            if stop > start:
                ranges.append(Range(index, start, stop, self._stream_time(entry, lane, clocks)))
        records = sum(len(part) for part in ranges)
        small = records <= self.small_batch
        tasks = share_out(ranges, 1 if small else self.parallelism)
        # With a single record of each partition, there is no smaller batch.
        bounded = end.max_bytes if records > len(ranges) else 0
        sinks = {topic: self.broker.partitions(topic) for topic in self.plan.topology.sink_topics}
        return BatchSpec(
            entry.fence,
            self.broker,
            self.directory,
            lanes,
            tasks,
            1 if small else self.plan.shards,
            clocks,
            end.at_ms or int(time.time() * 1000),
            sinks,
            self.plan.topology.name,
            self.state,
            self._careful,
            self.one_machine,
            entry.cells,
            bounded // max(len(tasks), 1),
        )

    def _stream_time(self, entry: Entry, lane: Lane, clocks: Mapping[str, int]) -> int:
        """Where a partition's stream time goes on; one that was idle, or is new, starts at the closing clock."""
        known = entry.stream_times.get(lane.topic, {}).get(lane.partition)
        if known is not None and (lane.topic, lane.partition) not in entry.offsets.idle:
            return known
        reached = [clock for step, clock in clocks.items() if lane.topic in self._steps[step]]
        return max([NEVER if known is None else known, *reached])

    def books(
        self, end: Offsets, spec: BatchSpec, report: Report, batch_ms: int
    ) -> tuple[Entry, dict[str, bytes | None]]:
        """The ledger's next entry, and the marks that are set with it."""
        entry = self.ledger.entry
        times = {topic: dict(parts) for topic, parts in entry.stream_times.items()}
        for index, stream_time in report.stream_times.items():
            if stream_time > NEVER:
                lane = spec.lanes[index]
                times.setdefault(lane.topic, {})[lane.partition] = stream_time
        after = replace(
            entry,
            batch=entry.batch + 1,
            offsets=end,
            stream_times=times,
            next_ends=report.next_ends if self.plan.depth else {},
            next_alarms=report.next_alarms,
            clocks=spec.clocks,
            cells=spec.fence.attempt if self.plan.depth else entry.cells,
        )
        pulse = self.pulse
        pulse.begin(batch_ms)
        pulse.state, pulse.error = "running", ""
        pulse.batch, pulse.batch_ms = after.batch, batch_ms
        # Fewer than there are offsets where the log has gaps.
        read = sum(report.records_in[source.name] for source in self.plan.topology.sources)
        pulse.records_in, pulse.records_out = read, report.written
        pulse.lag = end.pending(self.broker.end_offsets_of(list(end.topics)))
        pulse.state_bytes |= report.state_bytes
        pulse.state_keys = report.state_keys
        pulse.offsets, pulse.clocks = end.topics, {step: t for step, t in spec.clocks.items() if t > NEVER}
        pulse.totals.add(report, read)
        tell_failures(self.broker, self.plan.topology, spec, report)
        for topic, count in report.jumps.items():
            log.warning(JUMPED, topic, count)
        name = self.plan.topology.name
        marks: dict[str, bytes | None] = {mark_of(name, "progress"): pulse.to_bytes()}
        if self.pace is not None:
            self.pace.learn(spec.records, batch_ms, report.bytes_in)
            marks[mark_of(name, "pace")] = self.pace.to_bytes()
        return after, marks


def _takes_singly(node: Node) -> bool:
    """Whether the records that make a sum overflow can be told apart: those of a session decide what it is."""
    return isinstance(node, Aggregate) and not isinstance(node.window, Session)


def _furthest(parts: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {part: max(offset, ends.get(part, offset)) for part, offset in parts.items()}


def share_out(ranges: list[Range], tasks: int) -> list[list[Range]]:
    """The ranges over at most so many tasks, the largest first, each to the task that has least."""
    count = min(tasks, len(ranges))
    shares: list[list[Range]] = [[] for _ in range(count)]
    loads = [0] * count
    for part in sorted(ranges, key=len, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(part)
        loads[least] += len(part)
    for share in shares:
        share.sort(key=lambda part: part.lane)
    return shares
