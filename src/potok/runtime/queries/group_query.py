"""A query of a group: it shares batches with the others, and has its own ledger, state and dead letters."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from potok.backends.state_url import StoreUnreachable
from potok.clock import now_ms
from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.monitoring.logs import log_context
from potok.retry_policy import Retry, brief_calls
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.executor import Executor
from potok.runtime.batches.failure_cause import QueryFailed, cause_of
from potok.runtime.batches.group_batch import Committed
from potok.runtime.batches.reachability import check_reach
from potok.runtime.monitoring.figures import QueryFigures
from potok.runtime.output.dead_letter_reporter import DeadLetterReporter
from potok.runtime.planning.pace import Pace
from potok.runtime.planning.planner import Planner
from potok.runtime.planning.start_offsets import Positions, protect
from potok.runtime.planning.watermark import windowed_steps
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.prepare import Prepared
from potok.settings import Settings
from potok.state.entry import metadata_key_of
from potok.state.offsets import Ends
from potok.topology.graph import Topology

log = logging.getLogger(__name__)

RATE_OVER_S = 10.0
PROTECT_EVERY_S = 5.0
CHECK_OWNER_EVERY_S = 2.0


class QueryState(StrEnum):
    """The state of a query. A query that failed has released its lock, until it is retried or removed; one that is
    waiting has not: it retries automatically until what it waits for is available.
    """

    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """The status of a query. `lag` counts the records it has not read; `batch` is the last one it committed."""

    name: str
    state: QueryState
    error: str
    batch: int
    offsets: Positions
    lag: int
    records_per_second: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a query waits for, and the time (ms since 1970) of its next retry."""

    error: PotokError
    retry: Retry
    until_ms: int


@dataclass(slots=True)
class GroupQuery:
    """A query that holds its lock and its epoch, unless it failed.

    While it waits for a server or a sink it is `RUNNING` with `waiting` set, and its status is `WAITING`.
    """

    topology: Topology
    prepared: Prepared
    runner: BatchRunner
    planner: Planner
    reporter: DeadLetterReporter | None = None
    state: QueryState = QueryState.RUNNING
    error: PotokError | None = None
    waiting: Waiting | None = None
    figures: QueryFigures = field(default_factory=QueryFigures)
    _read: deque[tuple[float, int]] = field(default_factory=deque)
    _protected_at: float = 0.0
    _owner_checked_at: float = field(default_factory=time.monotonic)

    @classmethod
    def start(
        cls,
        prepared: Prepared,
        executor: Executor,
        settings: Settings,
        *,
        first: int,
        target: Ends | None = None,
        leader: str = "",
        own: frozenset[str] = frozenset(),
    ) -> GroupQuery:
        """Open the sinks of a prepared query. `first` is the size of its first batch; for the other arguments see
        `Planner`."""
        broker, plan, ledger = prepared.broker, prepared.plan, prepared.ledger
        topology = plan.topology
        check_reach(executor.master, broker, plan, prepared.state)
        planner = Planner(
            broker,
            ledger,
            topology.source_topics,
            windowed_steps(topology),
            settings.idle_after_ms,
            settings.max_batch_records,
            target,
            leader=leader,
            own=own,
            aligned=plan.aligned,
            plan=plan,
            max_bytes=settings.max_batch_bytes,
        )
        pace = Pace(settings.target_batch_ms, settings.max_batch_records, first, settings.max_batch_bytes)
        pace.resume(broker.get_metadata(metadata_key_of(topology.name, "pace")))
        parts = plan, ledger, prepared.directory, prepared.metrics, prepared.state
        return cls(topology, prepared, BatchRunner(executor, broker, *parts, pace), planner)

    @property
    def name(self) -> str:
        return self.topology.name

    @property
    def broker(self) -> Broker:
        return self.prepared.broker

    @property
    def offsets(self) -> Positions:
        return self.runner.ledger.entry.offsets.topics

    def lag(self) -> int:
        """Count unread records up to the current ends of the topics."""
        offsets = self.runner.ledger.entry.offsets
        return offsets.pending(self.broker.end_offsets_of(self.topology.source_topics))

    def status(self, all_wait_for: PotokError | None = None) -> QueryStatus:
        """Return the status. `all_wait_for` is an error that blocks every query. If the log does not respond, the lag
        is that of the last batch.
        """
        state, error = self.standing(all_wait_for)
        lag = self.runner.metrics.lag
        try:
            if not isinstance(error, LogError):
                with brief_calls():
                    lag = self.lag()
        except PotokError as found:
            if state is QueryState.RUNNING and found.passing:
                state, error = QueryState.WAITING, found
        batch, message = self.runner.ledger.entry.batch, str(error) if error else ""
        return QueryStatus(self.name, state, message, batch, self.offsets, lag, self._rate())

    def standing(self, all_wait_for: PotokError | None = None) -> tuple[QueryState, PotokError | None]:
        """Return the state, and the error that caused it or that the query waits for, without asking the log."""
        waits_for = all_wait_for or (self.waiting and self.waiting.error)
        if self.state is QueryState.RUNNING and waits_for:
            return QueryState.WAITING, waits_for
        return self.state, self.error

    def _rate(self) -> float:
        since = time.monotonic() - RATE_OVER_S
        return sum(records for at, records in list(self._read) if at >= since) / RATE_OVER_S

    @property
    def is_due(self) -> bool:
        """Whether it runs, and is not waiting for its next retry."""
        if self.state is not QueryState.RUNNING:
            return False
        return self.waiting is None or self.waiting.until_ms <= now_ms()

    def report_idle(self) -> None:
        """Report that it is running although it has no batch: it could be planned, so what it waited for is
        available."""
        self.resume()
        metrics = self.runner.metrics
        if metrics.state == "starting":
            metrics.begin()
            metrics.offsets = self.runner.ledger.entry.offsets.topics
            self.broker.set_metadata({metadata_key_of(self.name, "progress"): metrics.to_bytes()})

    def check(self) -> None:
        """Check periodically that this process still owns the query, and report pending dead letters."""
        now = time.monotonic()
        if now - self._owner_checked_at > CHECK_OWNER_EVERY_S and self.state is not QueryState.FAILED:
            self._owner_checked_at = now
            self.runner.ledger.check_owner()
        if self.reporter is not None:
            self.reporter.report_pending()

    def committed(self, done: Committed, plan_s: float) -> None:
        """Store the figures of a batch, and release read records in the log from time to time."""
        if self.reporter is not None:
            with log_context(query=self.name, batch=done.batch):
                self.reporter.report(done.reason_counts)
        self.figures.committed({**done.seconds, "plan": plan_s, "total": plan_s + done.seconds["total"]})
        now = time.monotonic()
        self._read.append((now, self.runner.metrics.records_in))
        while self._read[0][0] < now - RATE_OVER_S:
            self._read.popleft()
        if now - self._protected_at > PROTECT_EVERY_S:
            self._protected_at = now
            protect(self.broker, self.name, self.offsets)

    def wait(self, error: BaseException, retry_for_ms: int) -> bool:
        """Postpone the next attempt if the failure may be temporary; return False if it is not, or if the time for
        retries is over.
        """
        if not isinstance(error, PotokError) or not error.passing:
            return False
        try:
            self.runner.raise_if_taken_over(error)
        except QueryTakenOver:
            return False
        before = self.waiting
        retry = before.retry if before is not None else Retry(retry_for_ms)
        pause_s = retry.pause()
        if pause_s is None:
            return False
        self.waiting = Waiting(error, retry, now_ms() + round(pause_s * 1000))
        self.figures.waited(error)
        report_waiting(self.prepared, error, first=before is None)
        return True

    def resume(self) -> None:
        """Resume: what it waited for is available. Report it unless a batch has done so."""
        if self.waiting is None:
            return
        self.waiting = None
        report_waiting(self.prepared, None)

    def fail(self, error: BaseException) -> None:
        """Mark the query as failed. What it started is void: the next start takes another epoch."""
        self.waiting = None
        try:
            self.runner.raise_if_taken_over(error)
        except QueryTakenOver as taken:
            self.error, self.state = taken, QueryState.FAILED
            self._close(lambda _: None)
            return
        self.error = error if isinstance(error, PotokError) else QueryFailed(self.name, cause_of(error))
        self.state = QueryState.FAILED
        metrics = self.runner.metrics
        metrics.state, metrics.error = "failed", str(self.error)
        self._close(lambda metadata_keys: self.broker.set_metadata(metadata_keys))

    def end(self) -> None:
        """End the epoch between two batches; a query that failed has already done so."""
        if self.state is QueryState.FAILED:
            return
        metrics = self.runner.metrics
        metrics.state, metrics.error = "stopped", ""
        self._close(self.runner.ledger.end_epoch)

    def end_with(self, failure: PotokError | None, *, raises: bool) -> None:
        """End or fail the query together with its group. Its lock is released in any case, and without `raises` the
        others are ended too."""
        try:
            if failure is None:
                self.end()
            elif self.state is not QueryState.FAILED:
                self.fail(failure)
        except PotokError as error:
            if raises:
                raise
            log.warning('query "%s" could not record its end: %s', self.name, error)

    def _close(self, write: Callable[[dict[str, bytes | None]], None]) -> None:
        if self.reporter is not None:
            self.reporter.report_pending(now=True)
        try:
            write({metadata_key_of(self.name, "progress"): self.runner.metrics.to_bytes()})
        finally:
            self.runner.close()
            self.prepared.release()

    def set_state(self, state: QueryState) -> None:
        """Switch between running and paused, and write it to the progress."""
        self.state, self.waiting = state, None
        self.runner.metrics.state, self.runner.metrics.error = state.lower(), ""
        self.broker.set_metadata({metadata_key_of(self.name, "progress"): self.runner.metrics.to_bytes()})


def backlog(broker: Broker, queries: Iterable[GroupQuery]) -> dict[str, int]:
    """Count the unread records of queries that have any. Ledgers are read first: their output may move the ends."""
    offsets = {query.name: (query.runner.ledger.entry.offsets, query.topology.source_topics) for query in queries}
    left = {name: done.pending(broker.end_offsets_of(topics)) for name, (done, topics) in offsets.items()}
    return {name: records for name, records in left.items() if records}


def report_waiting(prepared: Prepared, error: PotokError | None, *, first: bool = True) -> None:
    """Write what a query waits for, or None when it continues, to its progress, and to the log the first time."""
    metrics, name = prepared.metrics, prepared.plan.topology.name
    metrics.state, metrics.error = ("running", "") if error is None else ("waiting", error.message)
    if not first:
        return
    if error is None:
        log.warning('query "%s" continues', name, extra={"query": name})
    else:
        log.warning('query "%s" is waiting to retry: %s', name, error.message, extra={"query": name})
    # On Kafka, the progress may be stored on the server that does not respond.
    if prepared.broker.commits_together or not isinstance(error, StoreUnreachable):
        with contextlib.suppress(PotokError):
            prepared.broker.set_metadata({metadata_key_of(name, "progress"): metrics.to_bytes()})
