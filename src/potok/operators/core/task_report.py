"""The report of a task: staged output, counts, stream times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from potok.backends.objects.object_client import Requests
from potok.expressions.failures import Failure, first_of_each
from potok.log.broker import Staged
from potok.operators.core.dead_letters import ReasonCounts, add_reason_counts
from potok.operators.core.step_times import MOST_TRACES, StepTime, merge
from potok.operators.sinks.staged_output import Outgoing
from potok.sinks.guarantee import Guarantee


@dataclass(slots=True)
class Report:
    """The report of one task and, added up, of the whole batch."""

    staged: list[Staged] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)
    """The number of records for each topic whose output stayed with the tasks."""
    unfenced: dict[Guarantee, list[Staged]] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)
    records_in: Counter[str] = field(default_factory=Counter)
    records_out: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    reason_counts: ReasonCounts = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    jumps: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """How often each expression failed for a record, and was null."""
    failed: list[Failure] = field(default_factory=list)
    """The first of them."""
    stream_times: dict[int, int] = field(default_factory=dict)
    next_ends: dict[str, int] = field(default_factory=dict)
    next_timers: dict[str, int] = field(default_factory=dict)
    state_keys: dict[str, int] = field(default_factory=dict)
    state_bytes: dict[int, int] = field(default_factory=dict)
    positions: dict[int, str] = field(default_factory=dict)
    """The positions of shards in object storage."""
    requests: Requests = field(default_factory=Requests)
    """The requests to object storage."""
    written: int = 0
    order_keys: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The order key of the first record of staged output, by its id, until it is arranged."""
    bytes_in: int = 0
    times: dict[str, StepTime] = field(default_factory=dict)
    traces: list[str] = field(default_factory=list)
    """The traces of some of the records that were read, if the batch is traced."""

    def stage(self, guarantee: Guarantee, staged: Sequence[Staged], order_key: tuple[int, ...] = ()) -> None:
        """Keep output for the commit, or for before or after it."""
        if order_key:
            self.order_keys |= dict.fromkeys(map(id, staged), order_key)
        if guarantee is Guarantee.EXACTLY_ONCE:
            self.staged += staged
        else:
            self.unfenced.setdefault(guarantee, []).extend(staged)

    def arrange(self) -> None:
        """Sort what several shards have staged by the first records; a partition gets it in this order."""
        rows = [row for row, staged in enumerate(self.staged) if id(staged) in self.order_keys]
        ordered = sorted((self.staged[row] for row in rows), key=lambda staged: self.order_keys[id(staged)])
        for row, staged in zip(rows, ordered, strict=True):
            self.staged[row] = staged
        self.order_keys.clear()

    def add(self, other: Report) -> None:
        self.staged += other.staged
        self.kept += other.kept
        self.order_keys |= other.order_keys
        for guarantee, staged in other.unfenced.items():
            self.stage(guarantee, staged)
        self.outgoing += other.outgoing
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.reasons += other.reasons
        add_reason_counts(self.reason_counts, other.reason_counts)
        self.late += other.late
        self.jumps += other.jumps
        self.failures += other.failures
        self.failed = first_of_each([*self.failed, *other.failed])
        self.stream_times |= other.stream_times
        for step, end in other.next_ends.items():
            self.next_ends[step] = min(end, self.next_ends.get(step, end))
        for step, processing_timer in other.next_timers.items():
            self.next_timers[step] = min(processing_timer, self.next_timers.get(step, processing_timer))
        for table, keys in other.state_keys.items():
            self.state_keys[table] = self.state_keys.get(table, 0) + keys
        self.state_bytes |= other.state_bytes
        for shard, position in other.positions.items():
            self.positions[shard] = max(position, self.positions.get(shard, ""))
        self.requests.add(other.requests)
        self.written += other.written
        self.bytes_in += other.bytes_in
        merge(self.times, other.times)
        self.traces = [*self.traces, *other.traces][:MOST_TRACES]
