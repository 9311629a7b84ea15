"""The batch loop of a group of queries: plan, record what the batch will be, execute, publish, commit.

A program runs as a group of one query, the SQL server as one group of all its queries.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.retry import Retry
from potok.runtime.batches.executor import Executor
from potok.runtime.batches.failure_cause import QueryFailed, cause_of
from potok.runtime.batches.group_batch import Committed, JointBatch
from potok.runtime.planning.fairness import FIRST
from potok.runtime.planning.group_planner import GroupPlanner
from potok.runtime.planning.start_offsets import Begin, Places, places_of
from potok.runtime.queries.errors import AlreadyMember, NotCaughtUp, NotFailed, NotMember, NotRunning
from potok.runtime.queries.group_owner import GroupOwner
from potok.runtime.queries.group_query import GroupQuery, MemberState, MemberStatus
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.log_maintenance import Upkeep
from potok.runtime.queries.prepare import Buildable, prepare, topology_of
from potok.settings import Settings
from potok.snapshots.tables import Tables
from potok.state.offsets import Offsets
from potok.topology.graph import Topology

log = logging.getLogger(__name__)

Heard = Callable[[Mapping[str, Committed]], None]

LOOK_S = 0.01


class QueryGroup:
    """Runs the queries that are added to it, each under its own name, as if each were alone.

    >>> with QueryGroup(broker, settings, executor) as group:
    ...     group.add(builder)
    ...     group.wait_caught_up(10)

    May be called from any thread. Queries take part from the next batch on, and leave between two.

    Args:
        name: Of the group; a lock of this name lets one process at a time run it.
        lock: Whether to take that lock. A group of one query has the lock of the query.
        ends_with_query: End when a query has failed, or has reached its target.
    """

    def __init__(
        self,
        broker: Broker,
        settings: Settings,
        executor: Executor,
        name: str = "shared",
        *,
        lock: bool = True,
        ends_with_query: bool = False,
    ) -> None:
        self._broker, self._settings, self._executor, self.name = broker, settings, executor, name
        self._owner = GroupOwner(broker, name) if lock else None
        self._ends_with_query = ends_with_query
        self._members: dict[str, GroupQuery] = {}
        self._planner = GroupPlanner(broker)
        self.waiting_for: PotokError | None = None
        """What no query of the group can do without, while it is away."""
        self._retry: Retry | None = None
        self.boundary = threading.Lock()
        """Held during a batch."""
        self._changing, self._entering = threading.RLock(), threading.Lock()
        self._done: dict[str, Committed] = {}
        self._heard: list[Heard] = []
        self._upkeep = Upkeep(broker)
        self._thread: threading.Thread | None = None
        self._stop_asked, self._changed, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._closed = False

    def start(self) -> QueryGroup:
        """Begin with the batches; queries may come before and after."""
        self._thread = threading.Thread(target=self._run, name=f"potok-{self.name}", daemon=True)
        self._thread.start()
        self._upkeep.start()
        return self

    def stop(self) -> None:
        """Stop at the next batch boundary, and end all queries."""
        self._stop_asked.set()
        self._changed.set()
        if self._thread is None:
            self._close(None)
        else:
            self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come. Raises what ended the group."""
        if not self._ended.wait(timeout):
            return False
        failure = self.failure()
        if failure is not None:
            raise failure from self._error
        return True

    @property
    def is_active(self) -> bool:
        return self._thread is not None and not self._ended.is_set()

    def failure(self) -> PotokError | None:
        """What ended the group; None if it was stopped."""
        if self._error is None or isinstance(self._error, PotokError):
            return self._error
        return QueryFailed(self.name, cause_of(self._error))

    def taken_over(self) -> QueryTakenOver | None:
        """What to say if another process has begun to run these queries."""
        return None if self._owner is None else self._owner.taken_over()

    def add(self, program: Buildable | Topology, *, begin: Begin = "earliest", paused: bool = False) -> None:
        """Add a query; one that ran before resumes where its ledger stands.

        Args:
            begin: Where a query that never ran begins. `latest` holds for streams: a table is read from its first
                record on, because it would not be the table otherwise.
            paused: Let it rest from the beginning.
        """
        topology = topology_of(program)
        with self._entering:
            known = self._members.get(topology.name)
            if known is not None:
                raise AlreadyMember(topology.name, known.state)
            self._enter(topology, places_of(self._broker, topology, begin), paused=paused)

    def retry(self, name: str) -> None:
        """Let a query that failed take part again. If it cannot even begin, it stays as it is, with the new error."""
        with self._entering:
            member = self._member(name)
            if member.state is not MemberState.FAILED:
                raise NotFailed(name, member.state)
            try:
                self._enter(member.topology, {})
            except PotokError as error:
                member.error = error
                raise

    def _enter(self, topology: Topology, begin: Places, *, paused: bool = False) -> None:
        if (taken := self.taken_over()) is not None:
            raise taken
        prepared = prepare(topology, self._broker, self._settings, begin=begin)
        try:
            member = GroupQuery.begun(prepared, self._executor, self._settings, first=FIRST)
        except BaseException:
            prepared.release()
            raise
        try:
            if paused:
                member.tell(MemberState.PAUSED)
            self.take(member)
        except BaseException:
            with contextlib.suppress(PotokError):
                member.end()
            raise

    def take(self, member: GroupQuery) -> None:
        """Let a query take part that has begun."""
        with self._changing:
            if self._closed:
                raise NotRunning(member.name, f'the group "{self.name}" has ended')
            self._members[member.name] = member
        self._changed.set()

    def remove(self, name: str) -> None:
        """End a query between two batches; its ledger and its tables stay."""
        with self.boundary, self._changing:
            member = self._member(name)
            del self._members[name]
            member.end()

    def pause(self, name: str) -> None:
        """Let a query rest between two batches. It keeps its lock, and its records wait in the log."""
        self._turn(name, MemberState.RUNNING, MemberState.PAUSED)

    def resume(self, name: str) -> None:
        self._turn(name, MemberState.PAUSED, MemberState.RUNNING)

    def _turn(self, name: str, before: MemberState, after: MemberState) -> None:
        with self.boundary, self._changing:
            member = self._member(name)
            if member.state is MemberState.FAILED:
                raise NotRunning(name, str(member.error))
            if member.state is before:
                member.tell(after)
        self._changed.set()

    def members(self) -> dict[str, MemberStatus]:
        """How all of them are doing."""
        members = self._all()
        return {member.name: member.status(self.waiting_for) for member in sorted(members, key=lambda m: m.name)}

    def tables(self, name: str) -> Tables:
        """The tables of a query, as of its last committed batch."""
        return Tables(self._broker, name)

    def on_batch(self, heard: Heard) -> Callable[[], None]:
        """Call a function after each batch that committed anything, with the queries that did; returns what undoes it.

        It runs between two batches, so it must be quick. What it raises is logged, and hurts nobody.
        """
        self._heard.append(heard)
        return lambda: self._heard.remove(heard) if heard in self._heard else None

    def wait_caught_up(self, timeout_s: float, names: Iterable[str] | None = None) -> None:
        """Wait until no query that runs, or none of those named, has records left to read.

        Raises the error of one that failed, if it was named.
        """
        named = None if names is None else list(names)
        end = time.monotonic() + timeout_s
        while behind := self._behind(named):
            if self.wait(LOOK_S):
                raise NotCaughtUp(behind, "the group was stopped")
            if time.monotonic() > end:
                raise NotCaughtUp(behind, f"after {timeout_s:g} seconds")

    def _behind(self, named: list[str] | None) -> dict[str, int]:
        """Records that are left for each; ledgers are looked at before the ends, which their output may have moved."""
        members = self._all() if named is None else [self._member(name) for name in named]
        for member in members:
            if named is not None and member.state is not MemberState.RUNNING:
                raise member.error or NotRunning(member.name, "it is paused")
        running = [member for member in members if member.state is MemberState.RUNNING]
        offsets: dict[str, Offsets] = {member.name: member.runner.ledger.entry.offsets for member in running}
        ends = {member.name: self._broker.end_offsets_of(member.topology.source_topics) for member in running}
        left = {name: offsets[name].pending(ends[name]) for name in offsets}
        return {name: records for name, records in left.items() if records}

    def _run(self) -> None:
        """The loop. It ends when it is stopped, when nothing can be done for any query, or with its query."""
        try:
            while not self._stop_asked.is_set():
                if not self.step():
                    if self._is_finished():
                        break
                    self._planner.wait(self._all(), self._changed)
        except BaseException as error:  # noqa: BLE001 - raised by `wait`
            self._error = error
        try:
            self._close(self.failure())
        except Exception as error:  # noqa: BLE001 - raised by `wait`
            self._error = self._error or error
        self._ended.set()

    def step(self) -> bool:
        """Run the next batch, if there is one; whether there was. What no query can do without is waited for."""
        self._changed.clear()
        try:
            with self.boundary:
                moved = self._batch()
        except PotokError as error:
            if not error.passing:
                raise
            self._wait_for(error)
            return True
        self._retry = None
        self._all_wait(None)
        self._report()
        if moved:
            failpoint("batch.done")
        return moved

    def _batch(self) -> bool:
        """Queries that fail are set apart, and the others lose nothing."""
        self._executor.check()
        members = {member.name: member for member in self._all()}
        for member in members.values():
            self._look_after(member)
        planned = self._planner.plan(members.values())
        batch = JointBatch(self._executor, self._broker)
        batch.failed |= planned.failed
        batch.run([(members[name].runner, end) for name, end in planned.ends.items()])
        # A batch may be run again because of what came after the commit of one query: it has nothing left to commit.
        self._done |= batch.committed
        for name in batch.committed:
            members[name].committed(batch.committed[name].reason_counts)
        for name, error in batch.failed.items():
            self._put_off(members[name], error, committed=name in batch.committed)
        for name in batch.committed.keys() - batch.failed.keys():
            members[name].go_on()
        for name in planned.idle:
            members[name].has_nothing_to_do()
        return bool(planned.ends or planned.failed)

    def _look_after(self, member: GroupQuery) -> None:
        try:
            member.look_after()
        except PotokError as error:
            if not error.passing:
                self._set_apart(member, error)

    def _put_off(self, member: GroupQuery, error: BaseException, *, committed: bool) -> None:
        """Let a query try again later, or set it apart where there is no hope."""
        if committed and isinstance(error, PotokError) and error.passing:
            # There is nothing to do again; what it left undone comes with its next batch.
            log.warning('query "%s": after batch %d: %s', member.name, member.runner.ledger.entry.batch, error.message)
            member.go_on()
        elif not member.wait(error, self._settings.retry_for_ms):
            self._set_apart(member, error)

    def _set_apart(self, member: GroupQuery, error: BaseException) -> None:
        member.fail(error)
        if isinstance(member.error, QueryTakenOver) and (taken := self.taken_over()) is not None:
            raise taken
        if self._ends_with_query:
            raise member.error or error
        log.warning('query "%s" has failed: %s', member.name, member.error)

    def _wait_for(self, error: PotokError) -> None:
        """Wait before the next try of what no query can do without."""
        self._retry = self._retry or Retry(self._settings.retry_for_ms, self._stop_asked)
        self._all_wait(error)
        if not self._retry.wait() and not self._stop_asked.is_set():
            raise error

    def _all_wait(self, error: PotokError | None) -> None:
        before, self.waiting_for = self.waiting_for, error
        if before is None and error is not None:
            log.warning('all queries of "%s" wait and try again: %s', self.name, error.message)
        elif before is not None and error is None:
            log.warning('the queries of "%s" continue', self.name)

    def _is_finished(self) -> bool:
        if not self._ends_with_query:
            return False
        try:
            return all(member.planner.is_done for member in self._all())
        except PotokError as error:
            if not error.passing:
                raise
            return False

    def _report(self) -> None:
        done, self._done = self._done, {}
        for heard in list(self._heard) if done else []:
            try:
                heard(done)
            except Exception:
                log.exception("what was to be called after a batch failed")

    def _close(self, failure: PotokError | None) -> None:
        with self._changing:
            if self._closed:
                return
            self._closed = True
            members = list(self._members.values())
            if failure is None and not self._ends_with_query:
                self._members = {}
        self._upkeep.stop()
        failure = failure or self.taken_over()
        try:
            for member in members:
                self._let_go(member, failure)
        finally:
            if self._owner is not None:
                self._owner.release()

    def _let_go(self, member: GroupQuery, failure: PotokError | None) -> None:
        """End a query. If even that fails, its lock is free all the same, and the others are ended."""
        try:
            if failure is None:
                member.end()
            elif member.state is not MemberState.FAILED:
                member.fail(failure)
        except PotokError as error:
            if self._ends_with_query:
                raise
            log.warning('query "%s" could not write down that it has ended: %s', member.name, error)

    def _all(self) -> list[GroupQuery]:
        with self._changing:
            return list(self._members.values())

    def _member(self, name: str) -> GroupQuery:
        with self._changing:
            if name not in self._members:
                raise NotMember(name, sorted(self._members))
            return self._members[name]

    def __enter__(self) -> QueryGroup:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()
