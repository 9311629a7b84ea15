"""A query that shares its batches with others, and is a query of its own in everything else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from potok.engine.batch import BatchRunner
from potok.engine.batch_loop import QueryFailed
from potok.engine.beginning import Places, protect
from potok.engine.cause import cause_of
from potok.engine.clock import windowed_steps
from potok.engine.connector import connector_of
from potok.engine.lock import QueryTakenOver
from potok.engine.pace import Pace
from potok.engine.prepare import Prepared, prepare
from potok.engine.query import PROTECT_EVERY_S, tell_waiting
from potok.engine.reach import check_reach, on_one_machine
from potok.engine.shared.fairness import FIRST
from potok.engine.shared.roll import Listed
from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.retry import Retry, brief_calls
from potok.settings import Settings
from potok.state.entry import mark_of
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE_OVER_S = 10.0


class MemberState(StrEnum):
    """What a member does. One that failed has let go of its lock, and waits to be tried again or removed; one that is
    waiting has not: what it waits for is expected to come back, and it is tried again by itself."""

    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """How a member is doing. `lag` counts the records that it has not read; `batch` is the last that it committed."""

    name: str
    state: MemberState
    error: str
    batch: int
    offsets: Places
    lag: int
    records_per_second: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a member waits for, and the time (ms since 1970) of its next try."""

    error: PotokError
    retry: Retry
    until_ms: int


@dataclass(slots=True)
class Member:
    """A topology that holds its lock and its epoch, unless it failed.

    While it waits for a server or a sink it is `RUNNING` with something in `waiting`, and its status is `WAITING`.
    """

    topology: Topology
    prepared: Prepared
    runner: BatchRunner
    state: MemberState = MemberState.RUNNING
    error: PotokError | None = None
    waiting: Waiting | None = None
    _read: deque[tuple[float, int]] = field(default_factory=deque)
    _protected_at: float = 0.0

    @classmethod
    def begun(
        cls, topology: Topology, broker: Broker, spark: SparkSession, settings: Settings, begin: Places
    ) -> Member:
        """Take the lock and the next epoch of a query, and open its sinks."""
        prepared = prepare(topology, broker, settings, begin=begin)
        try:
            return cls(topology, prepared, _runner(prepared, spark, settings))
        except BaseException:
            prepared.release()
            raise

    @property
    def name(self) -> str:
        return self.topology.name

    @property
    def offsets(self) -> Places:
        return self.runner.ledger.entry.offsets.topics

    def listed(self) -> Listed:
        steps = {step: frozenset(topics) for step, topics in windowed_steps(self.topology).items()}
        return Listed(tuple(self.topology.source_topics), steps, self.prepared.plan.aligned)

    def lag(self) -> int:
        """Counted from the ends of the topics as they are now."""
        offsets = self.runner.ledger.entry.offsets
        return offsets.pending(self.prepared.broker.end_offsets_of(self.topology.source_topics))

    def status(self, all_wait_for: PotokError | None = None) -> MemberStatus:
        """`all_wait_for` is what no batch can do without. Where the log does not answer, the batch under way waits for
        it, and the lag is that of the last one."""
        state, error, waiting = self.state, self.error, self.waiting
        waits_for = all_wait_for or (waiting and waiting.error)
        lag = self.runner.pulse.lag
        try:
            if not isinstance(waits_for, LogError):
                with brief_calls():
                    lag = self.lag()
        except PotokError as found:
            waits_for = waits_for or (found if found.passing else None)
        if state is MemberState.RUNNING and waits_for:
            state, error = MemberState.WAITING, waits_for
        batch, told = self.runner.ledger.entry.batch, str(error) if error else ""
        return MemberStatus(self.name, state, told, batch, self.offsets, lag, self._rate())

    def _rate(self) -> float:
        since = time.monotonic() - RATE_OVER_S
        return sum(records for at, records in list(self._read) if at >= since) / RATE_OVER_S

    def committed(self) -> None:
        """After a batch: remember how many records it had, and let go of them in the log now and then."""
        now = time.monotonic()
        self._read.append((now, self.runner.pulse.records_in))
        while self._read[0][0] < now - RATE_OVER_S:
            self._read.popleft()
        if now - self._protected_at > PROTECT_EVERY_S:
            self._protected_at = now
            protect(self.prepared.broker, self.name, self.offsets)

    def wait(self, error: BaseException, retry_for_ms: int) -> bool:
        """Put the next try off, if what failed may pass; False if it will not, or if the time for that is over."""
        if not isinstance(error, PotokError) or not error.passing:
            return False
        try:
            self.runner.blame_owner(error)
        except QueryTakenOver:
            return False
        before = self.waiting
        retry = before.retry if before is not None else Retry(retry_for_ms)
        pause_s = retry.pause()
        if pause_s is None:
            return False
        self.waiting = Waiting(error, retry, int((time.time() + pause_s) * 1000))
        tell_waiting(self.prepared, error, first=before is None)
        return True

    def go_on(self) -> None:
        """What was waited for is there; whoever looks is told, unless a batch has done so."""
        if self.waiting is None:
            return
        self.waiting = None
        tell_waiting(self.prepared, None)

    def fail(self, error: BaseException) -> None:
        """Set aside. What it began is void: the next start takes another epoch."""
        self.waiting = None
        try:
            self.runner.blame_owner(error)
        except QueryTakenOver as taken:
            self.error, self.state = taken, MemberState.FAILED
            self._close(lambda _: None)
            return
        self.error = error if isinstance(error, PotokError) else QueryFailed(self.name, cause_of(error))
        self.state = MemberState.FAILED
        pulse = self.runner.pulse
        pulse.state, pulse.error = "failed", str(self.error)
        self._close(lambda marks: self.prepared.broker.set_marks(marks))

    def end(self) -> None:
        """Close the books between two batches; what failed has done so."""
        if self.state is MemberState.FAILED:
            return
        pulse = self.runner.pulse
        pulse.state, pulse.error = "stopped", ""
        self._close(self.runner.ledger.end_epoch)

    def _close(self, write: Callable[[dict[str, bytes | None]], None]) -> None:
        try:
            write({mark_of(self.name, "progress"): self.runner.pulse.to_bytes()})
        finally:
            self.runner.close()
            self.prepared.release()

    def tell(self, state: MemberState) -> None:
        """Change between running and paused, and say so to whoever looks."""
        self.state, self.waiting = state, None
        self.runner.pulse.state, self.runner.pulse.error = state.lower(), ""
        self.prepared.broker.set_marks({mark_of(self.name, "progress"): self.runner.pulse.to_bytes()})


def _runner(prepared: Prepared, spark: SparkSession, settings: Settings) -> BatchRunner:
    broker, context = prepared.broker, spark.sparkContext
    master, name = str(context.master), prepared.plan.topology.name
    check_reach(master, broker, prepared.plan, prepared.state)
    runner = BatchRunner(
        context,
        broker,
        prepared.plan,
        prepared.ledger,
        prepared.directory,
        prepared.pulse,
        context.defaultParallelism,
        prepared.state,
    )
    runner.pace = Pace(settings.target_batch_ms, settings.max_batch_records, FIRST, settings.max_batch_bytes)
    runner.pace.resume(broker.mark(mark_of(name, "pace")))
    runner.connector = connector_of(spark, broker, name)
    runner.one_machine = on_one_machine(master)
    return runner
