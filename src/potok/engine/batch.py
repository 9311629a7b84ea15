"""One batch from its offsets to its commit."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle

from potok.engine.batch_spec import BatchSpec, Range
from potok.engine.clock import closing_clocks, windowed_steps
from potok.engine.job import run_job
from potok.engine.ledger import Ledger
from potok.engine.pace import Pace
from potok.engine.plan import Plan
from potok.engine.progress import Pulse
from potok.engine.report import Report
from potok.kernels.dead_letters import Lane
from potok.kernels.expiry import NEVER
from potok.log.broker import Broker
from potok.state.entry import Entry, mark_of
from potok.state.offsets import Offsets

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

JUMPED = (
    'topic "%s": %d record(s) moved the clock of a partition by more than a day, so that what comes after may be late; '
    'max_jump="1 hour" on the stream bounds how far one record may move it'
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
    pace: Pace | None = None
    small_batch: int = SMALL_BATCH
    _plan_bytes: bytes = b""
    _steps: Mapping[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plan_bytes = cloudpickle.dumps(self.plan)
        self._steps = windowed_steps(self.plan.topology)

    def run(self, end: Offsets) -> Report | None:
        """Run the batch that ends at `end`, unless it has been committed before."""
        entry = self.ledger.entry
        end = self._known(entry, end)
        if entry.offsets.reached(end) and entry.offsets.idle == end.idle:
            return None
        began = time.monotonic()
        spec = self._spec(entry, end)
        report = run_job(self.context, self._plan_bytes, spec, self.plan.depth)
        records = sum(len(part) for task in spec.tasks for part in task)
        self._commit(entry, end, spec, report, records, int((time.monotonic() - began) * 1000))
        shutil.rmtree(spec.staging, ignore_errors=True)
        return report

    def _known(self, entry: Entry, end: Offsets) -> Offsets:
        """The offsets in the topics of this topology: a batch that an earlier version began may name others."""
        topics = {
            topic: {part: max(offset, end.topics.get(topic, {}).get(part, offset)) for part, offset in parts.items()}
            for topic, parts in entry.offsets.topics.items()
        }
        return replace(end, topics=topics)

    def _spec(self, entry: Entry, end: Offsets) -> BatchSpec:
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
        sinks = {topic: self.broker.partitions(topic) for topic in self.plan.topology.sink_topics}
        return BatchSpec(
            entry.fence,
            self.broker.url,
            self.directory,
            lanes,
            share_out(ranges, 1 if small else self.parallelism),
            1 if small else self.plan.shards,
            clocks,
            end.at_ms or int(time.time() * 1000),
            sinks,
        )

    def _stream_time(self, entry: Entry, lane: Lane, clocks: Mapping[str, int]) -> int:
        """Where a partition's stream time goes on; one that was idle, or is new, starts at the closing clock."""
        known = entry.stream_times.get(lane.topic, {}).get(lane.partition)
        if known is not None and (lane.topic, lane.partition) not in entry.offsets.idle:
            return known
        reached = [clock for step, clock in clocks.items() if lane.topic in self._steps[step]]
        return max([NEVER if known is None else known, *reached])

    def _commit(self, entry: Entry, end: Offsets, spec: BatchSpec, report: Report, records: int, batch_ms: int) -> None:
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
        )
        pulse = self.pulse
        pulse.state, pulse.batch, pulse.batch_ms = "running", after.batch, batch_ms
        pulse.records_in, pulse.records_out = records, report.written
        pulse.lag = end.pending(self.broker.end_offsets_of(list(end.topics)))
        pulse.state_bytes |= report.state_bytes
        pulse.state_keys = report.state_keys
        pulse.offsets, pulse.clocks = end.topics, {step: t for step, t in spec.clocks.items() if t > NEVER}
        pulse.totals.add(report, records)
        for topic, count in report.jumps.items():
            log.warning(JUMPED, topic, count)
        name = self.plan.topology.name
        marks: dict[str, bytes | None] = {mark_of(name, "progress"): pulse.to_bytes()}
        if self.pace is not None:
            marks[mark_of(name, "pace")] = str(self.pace.learn(records, batch_ms)).encode()
        self.ledger.commit(after, report.staged, marks)


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
