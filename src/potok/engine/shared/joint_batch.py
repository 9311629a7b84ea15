"""One batch of all members, from their shares to their commits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from potok.engine.batch_spec import BatchSpec, BatchTooLarge
from potok.engine.cause import JVM_GONE, cause_of
from potok.engine.lock import QueryTakenOver
from potok.engine.progress import Totals
from potok.engine.report import Report
from potok.engine.shared.joint_job import Outcome, Part, run_parts
from potok.engine.shared.member import Member
from potok.errors import PotokError
from potok.kernels.dead_letters import Piles
from potok.kernels.pre_aggregate import AggregateOverflow
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.state.entry import Entry
from potok.state.offsets import Offsets

if TYPE_CHECKING:
    from pyspark import SparkContext


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch did for one member: its number, the tables whose rows may have changed, and its dead letters."""

    batch: int
    tables: frozenset[str]
    piles: Piles = field(default_factory=dict)


@dataclass(slots=True)
class Attempt:
    """A member at work on its share."""

    member: Member
    end: Offsets
    spec: BatchSpec
    counted: Totals
    """What was counted before it."""
    outcome: Outcome = field(default_factory=Outcome)
    entry: Entry = field(default_factory=Entry)
    marks: dict[str, bytes | None] = field(default_factory=dict)

    @classmethod
    def begun(cls, member: Member, end: Offsets) -> Attempt:
        return cls(member, end, member.runner.spec(end), copy.deepcopy(member.runner.pulse.totals))

    def undo(self, error: BaseException) -> BaseException:
        """Make ready to run again; returns why it failed: whatever it was, another process may have been the cause."""
        try:
            self.member.runner.undo(self.counted, error)
        except QueryTakenOver as taken:
            return taken
        return error

    @property
    def report(self) -> Report:
        return self.outcome.report

    def part(self) -> Part:
        runner = self.member.runner
        return Part(runner.plan_bytes, self.spec, runner.plan.depth, runner.connector_for(self.spec))

    def changed(self) -> Committed:
        counts = self.report.records_in + self.report.records_out
        tables = frozenset(node.name for node in self.member.topology.tables if counts[node.name])
        return Committed(self.entry.batch, tables, self.report.piles)


@dataclass(slots=True)
class JointBatch:
    """Runs what it is given, and keeps apart what was committed and who failed."""

    context: SparkContext
    broker: Broker
    committed: dict[str, Committed] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)

    def run(self, wanted: Mapping[str, tuple[Member, Offsets]]) -> None:
        attempts = [found for member, end in wanted.values() if (found := self._begin(member, end)) is not None]
        done = [attempt for attempt in self._tried(attempts) if self._deliver(attempt)]
        if self.broker.commits_together:
            self._commit_together(done)
        else:
            self._commit_each(done)

    def _begin(self, member: Member, end: Offsets) -> Attempt | None:
        try:
            ahead = member.runner.ahead(end)
            if ahead is None:
                return None
            member.runner.check()
            return Attempt.begun(member, ahead)
        except PotokError as error:
            self.failed[member.name] = error
            return None

    def _tried(self, attempts: list[Attempt]) -> list[Attempt]:
        """Run the tasks of all. A member whose sum overflowed tries again, more carefully, while the others wait."""
        done: list[Attempt] = []
        while attempts:
            self._run(attempts)
            again: list[Attempt] = []
            for attempt in attempts:
                error, name = attempt.outcome.error, attempt.member.name
                if name in self.failed:
                    continue
                if error is None:
                    done.append(attempt)
                elif (next_attempt := self._next_attempt(attempt, error)) is not None:
                    again.append(next_attempt)
            attempts = again
        return done

    def _next_attempt(self, attempt: Attempt, error: PotokError) -> Attempt | None:
        """The attempt of the same batch that may succeed after `error`; None if there is none, or if the member plans a
        smaller batch first. The ledger or its server may refuse either, which is the trouble of this member alone."""
        runner = attempt.member.runner
        try:
            if isinstance(error, BatchTooLarge):
                runner.shrink(error, attempt.spec)
                return None
            if isinstance(error, AggregateOverflow) and runner.give_way(error, attempt.spec):
                return Attempt.begun(attempt.member, attempt.end)
        except PotokError as refused:
            error = refused
        self._fail(attempt, error)
        return None

    def _fail(self, attempt: Attempt, error: BaseException) -> None:
        self.failed[attempt.member.name] = attempt.undo(error)

    def _run(self, attempts: list[Attempt]) -> None:
        tasks = max(attempt.member.runner.parallelism for attempt in attempts)
        try:
            outcomes = run_parts(self.context, [attempt.part() for attempt in attempts], tasks)
        except Exception as error:
            if cause_of(error) == JVM_GONE:
                raise
            if len(attempts) == 1:
                self._fail(attempts[0], error)
                return
            # A worker died, and took the parts of others with it. The same attempts may run again, as a task may.
            for attempt in attempts:
                self._run([attempt])
            return
        for attempt, outcome in zip(attempts, outcomes, strict=True):
            attempt.outcome = outcome

    def _deliver(self, attempt: Attempt) -> bool:
        """Hand over what must be out before the commit, and write the books; whether that went well."""
        runner = attempt.member.runner
        try:
            runner.deliver(attempt.spec, attempt.report)
            own_ms = round(attempt.outcome.busy_s * 1000 / _tasks(attempt.spec))
            attempt.entry, attempt.marks = runner.books(attempt.end, attempt.spec, attempt.report, own_ms)
        except Exception as error:  # noqa: BLE001 - a sink may be anybody's function; told by the member's state
            self._fail(attempt, error)
            return False
        return True

    def _commit_together(self, attempts: list[Attempt]) -> None:
        """One transaction for the output and the ledgers of all, so that readers find all tables at one batch."""
        while attempts:
            staged = [output for attempt in attempts for output in attempt.report.staged]
            marks: dict[str, bytes | None] = {}
            expect: dict[str, bytes | None] = {}
            for attempt in attempts:
                ledger = attempt.member.runner.ledger
                marks |= attempt.marks | ledger.after(attempt.entry)
                expect |= ledger.before
            failpoint("ledger.before")
            try:
                self.broker.publish(staged, marks, expect)
            except PotokError as error:
                rest = [attempt for attempt in attempts if not self._is_at_fault(attempt, error)]
                if len(rest) == len(attempts):
                    for attempt in attempts:
                        attempt.undo(error)
                    raise
                attempts = rest
                continue
            failpoint("ledger.committed")
            for attempt in attempts:
                attempt.member.runner.ledger.note(attempt.entry)
            for attempt in attempts:
                self._finish(attempt)
            return

    def _is_at_fault(self, attempt: Attempt, error: PotokError) -> bool:
        """Whether nothing can be published because of this one: its ledger was changed, or a topic of it is gone."""
        expected = attempt.member.runner.ledger.before
        changed = any(self.broker.mark(name) != data for name, data in expected.items())
        topics = {output.topic for output in attempt.report.staged}
        if changed or not all(map(self.broker.has_topic, topics)):
            self._fail(attempt, error)
            return True
        return False

    def _commit_each(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            try:
                attempt.member.runner.ledger.commit(attempt.entry, attempt.report.staged, attempt.marks)
            except PotokError as error:
                self._fail(attempt, error)
                continue
            self._finish(attempt)

    def _finish(self, attempt: Attempt) -> None:
        self.committed[attempt.member.name] = attempt.changed()
        try:
            attempt.member.runner.finish(attempt.spec, attempt.report)
            attempt.member.committed()
        except Exception as error:  # noqa: BLE001 - a sink may be anybody's function; told by the member's state
            self.failed[attempt.member.name] = error


def _tasks(spec: BatchSpec) -> int:
    """How many tasks work on a share at once."""
    return max(len(spec.tasks), 1)
