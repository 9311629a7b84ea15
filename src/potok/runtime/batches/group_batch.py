"""One batch of the queries of a group: record its end, execute it, publish, commit.

A query that fails is excluded, and the others are committed.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from potok.errors import PotokError
from potok.log.broker import Broker, MetadataAfter
from potok.log.failpoint import failpoint
from potok.monitoring.logs import log_context
from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.operators.core.batch_spec import BatchSpec, BatchTooLarge
from potok.operators.core.dead_letters import ReasonCounts
from potok.operators.core.task_report import Report
from potok.records.position import Position
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.executor import Executor, Outcome
from potok.runtime.batches.failure_cause import JVM_GONE, cause_of
from potok.runtime.monitoring.tracing import BatchTrace, BatchTracer
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.progress import Totals
from potok.state.entry import Entry, metadata_key_of
from potok.state.offsets import Offsets


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a batch for one query: its number, the tables whose rows may have changed, its dead letters, and
    how long its phases took."""

    batch: int
    tables: frozenset[str]
    reason_counts: ReasonCounts = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)


@dataclass(slots=True)
class Attempt:
    """One attempt at the batch of one query."""

    runner: BatchRunner
    end: Offsets
    spec: BatchSpec
    counted: Totals
    """The totals before it."""
    outcome: Outcome = field(default_factory=Outcome)
    entry: Entry = field(default_factory=Entry)
    metadata_keys: dict[str, bytes | None] = field(default_factory=dict)
    deliver_s: float = 0.0

    trace: BatchTrace | None = None

    @classmethod
    def start(cls, runner: BatchRunner, end: Offsets, tracer: BatchTracer | None) -> Attempt:
        spec, counted = runner.spec(end), copy.deepcopy(runner.metrics.totals)
        trace = None if tracer is None else tracer.begin(runner.name, spec.fence.attempt)
        if trace is not None:
            spec = replace(spec, trace_id=trace.trace_id)
        return cls(runner, end, spec, counted, trace=trace)

    def logged(self) -> AbstractContextManager[None]:
        """Add the query and the batch to what is logged."""
        attempt = self.spec.fence.attempt
        return log_context(query=self.name, batch=attempt.batch, epoch=attempt.epoch, trace_id=self.spec.trace_id)

    @property
    def name(self) -> str:
        return self.runner.name

    def undo(self, error: BaseException) -> BaseException:
        """Prepare to run again; return the cause of the failure, which may be a takeover by another process."""
        self.fail_trace(error)
        self.outcome.release()
        try:
            self.runner.undo(self.counted, error)
        except QueryTakenOver as taken:
            return taken
        return error

    def fail_trace(self, error: BaseException) -> None:
        """End the trace of an attempt that is void."""
        trace, self.trace = self.trace, None
        if trace is not None:
            trace.fail(error)

    @property
    def report(self) -> Report:
        return self.outcome.report

    def changed(self, seconds: Mapping[str, float]) -> Committed:
        counts = self.report.records_in + self.report.records_out
        tables = frozenset(node.name for node in self.runner.plan.topology.tables if counts[node.name])
        return Committed(self.entry.batch, tables, self.report.reason_counts, seconds)


@dataclass(slots=True)
class JointBatch:
    """Run batches; `committed` and `failed` hold the results. A query may be in both: a failure after its commit does
    not undo it.
    """

    executor: Executor
    broker: Broker
    tracer: BatchTracer | None = None
    committed: dict[str, Committed] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _executed: float = 0.0
    _alone: bool = True

    def run(self, wanted: Iterable[tuple[BatchRunner, Offsets]]) -> None:
        """Run one batch of each of these queries, to the given offsets."""
        attempts = [found for runner, end in wanted if (found := self._begin(runner, end)) is not None]
        self._alone = len(attempts) == 1
        tried, self._executed = self._tried(attempts), time.monotonic()
        done = [attempt for attempt in tried if self._deliver(attempt)]
        if self.broker.commits_together:
            self._commit_together(done)
        else:
            self._commit_each(done)

    def _begin(self, runner: BatchRunner, end: Offsets) -> Attempt | None:
        try:
            ahead = runner.ahead(end)
            if ahead is None:
                runner.ledger.drop_intent()
                return None
            runner.check()
            runner.begin(ahead)
            return Attempt.start(runner, ahead, self.tracer)
        except PotokError as error:
            self.failed[runner.name] = _cause(runner, error)
            return None

    def _tried(self, attempts: list[Attempt]) -> list[Attempt]:
        """Run the tasks of all queries. A query whose sum overflowed runs again, record by record, while the others
        wait."""
        done: list[Attempt] = []
        while attempts:
            self._run(attempts)
            again: list[Attempt] = []
            for attempt in attempts:
                if attempt.name in self.failed:
                    continue
                if attempt.outcome.error is None:
                    done.append(attempt)
                elif (other := self._other_attempt(attempt, attempt.outcome.error)) is not None:
                    again.append(other)
            attempts = again
        return done

    def _other_attempt(self, attempt: Attempt, error: PotokError) -> Attempt | None:
        """Create the next attempt after an error that requires one."""
        try:
            attempt.fail_trace(error)
            attempt.outcome.release()
            if isinstance(error, BatchTooLarge):
                attempt.runner.shrink(error, attempt.spec)
                return None
            if isinstance(error, AggregateOverflow) and attempt.runner.retry_one_by_one(error, attempt.spec):
                return Attempt.start(attempt.runner, attempt.end, self.tracer)
        except PotokError as failure:
            error = failure
        self._fail(attempt, error)
        return None

    def _fail(self, attempt: Attempt, error: BaseException) -> None:
        self.failed[attempt.name] = attempt.undo(error)

    def _run(self, attempts: list[Attempt]) -> None:
        try:
            outcomes = self.executor.run([attempt.runner.part(attempt.spec) for attempt in attempts])
        except Exception as error:
            if cause_of(error) == JVM_GONE:
                raise
            if len(attempts) == 1:
                self._fail(attempts[0], error)
                return
            # A worker died, and the parts of other queries failed with it. The same attempts may run again, as a task
            # may.
            for attempt in attempts:
                self._run([attempt])
            return
        for attempt, outcome in zip(attempts, outcomes, strict=True):
            attempt.outcome = outcome

    def _duration_ms(self, attempt: Attempt) -> int:
        """Return how long the batch took for a query: the whole time if it was alone, else that of its tasks."""
        if self._alone:
            return int((time.monotonic() - self._began) * 1000)
        return round(attempt.outcome.busy_s * 1000 / max(len(attempt.spec.tasks), 1))

    def _deliver(self, attempt: Attempt) -> bool:
        """Deliver output that precedes the commit and build the ledger's next entry; return whether it succeeded."""
        runner, began = attempt.runner, time.monotonic()
        try:
            with attempt.logged():
                runner.deliver(attempt.spec, attempt.report)
                attempt.deliver_s = time.monotonic() - began
                entry = runner.next_entry(attempt.end, attempt.spec, attempt.report, self._duration_ms(attempt))
            attempt.entry, attempt.metadata_keys = entry
        except Exception as error:  # noqa: BLE001 - a sink may be any user function; the query's state reports it
            self._fail(attempt, error)
            return False
        return True

    def _commit_together(self, attempts: list[Attempt]) -> None:
        """Commit the output and the ledgers of all queries in one transaction, so readers find all tables at one
        batch."""
        began = time.monotonic()
        while attempts:
            staged = [output for attempt in attempts for output in attempt.report.staged]
            metadata_keys: dict[str, bytes | None] = {}
            expect: dict[str, bytes | None] = {}
            for attempt in attempts:
                ledger = attempt.runner.ledger
                metadata_keys |= attempt.metadata_keys | ledger.after(attempt.entry)
                expect |= ledger.before
            failpoint("ledger.before")
            try:
                self.broker.publish(staged, metadata_keys, expect, metadata_after=_metadata_after(attempts))
            except PotokError as error:
                if all(attempt.runner.ledger.holds(attempt.entry) for attempt in attempts):
                    # The transaction was committed, and its response was lost.
                    break
                rest = [attempt for attempt in attempts if not self._is_at_fault(attempt, error)]
                if len(rest) == len(attempts):
                    for attempt in attempts:
                        attempt.undo(error)
                    raise
                attempts = rest
                continue
            break
        failpoint("ledger.committed")
        for attempt in attempts:
            attempt.runner.ledger.note(attempt.entry)
        for attempt in attempts:
            self._finish(attempt, began)

    def _is_at_fault(self, attempt: Attempt, error: PotokError) -> bool:
        """Whether this query keeps the others from committing: its ledger was changed, or one of its topics is gone."""
        expected = attempt.runner.ledger.before
        changed = any(self.broker.get_metadata(name) != data for name, data in expected.items())
        topics = {output.topic for output in attempt.report.staged}
        if changed or not all(map(self.broker.has_topic, topics)):
            self._fail(attempt, error)
            return True
        return False

    def _commit_each(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            began = time.monotonic()
            try:
                after = _metadata_after([attempt])
                attempt.runner.ledger.commit(
                    attempt.entry, attempt.report.staged, attempt.metadata_keys, after, attempt.outcome.output
                )
            except Exception as error:  # tasks of Spark may publish the output
                if cause_of(error) == JVM_GONE:
                    raise
                self._fail(attempt, error)
                continue
            self._finish(attempt, began)

    def _finish(self, attempt: Attempt, commit_began: float) -> None:
        attempt.outcome.release()
        now = time.monotonic()
        seconds = {
            "execute": self._executed - self._began,
            "deliver": attempt.deliver_s,
            "commit": now - commit_began,
            "total": now - self._began,
        }
        attempt.runner.metrics.committed = attempt.metadata_keys[metadata_key_of(attempt.name, "progress")] or b""
        if attempt.trace is not None:
            attempt.trace.commit(attempt.report, seconds)
        self.committed[attempt.name], self.reports[attempt.name] = attempt.changed(seconds), attempt.report
        try:
            with attempt.logged():
                attempt.runner.finish(attempt.spec, attempt.report)
        except Exception as error:  # noqa: BLE001 - a sink may be any user function; the query's state reports it
            self.failed[attempt.name] = error


def _metadata_after(attempts: Sequence[Attempt]) -> MetadataAfter:
    def after(position: Position) -> dict[str, bytes | None]:
        changed: dict[str, bytes | None] = {}
        for attempt in attempts:
            changed |= attempt.runner.metadata_after(attempt.entry, position)
        return changed

    return after


def run_batch(runner: BatchRunner, end: Offsets) -> Report | None:
    """Run a batch of one query unless it is already committed; raise the cause if it fails."""
    batch = JointBatch(runner.executor, runner.broker)
    batch.run([(runner, end)])
    if runner.name in batch.failed:
        raise batch.failed[runner.name]
    return batch.reports.get(runner.name)


def _cause(runner: BatchRunner, error: PotokError) -> BaseException:
    """Return the error, or `QueryTakenOver` if another process runs the query."""
    try:
        runner.raise_if_taken_over(error)
    except QueryTakenOver as taken:
        return taken
    return error
