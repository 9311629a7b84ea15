"""The batch loop of a group of queries: plan, record the end of the batch, execute, publish, commit.

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
from potok.log.start import Start
from potok.retry_policy import Retry
from potok.runtime.batches.executor import Executor
from potok.runtime.batches.failure_cause import QueryFailed, cause_of
from potok.runtime.batches.group_batch import Committed, JointBatch
from potok.runtime.monitoring.figures import GroupFigures
from potok.runtime.monitoring.tracing import tracer_of
from potok.runtime.planning.fairness import FIRST
from potok.runtime.planning.group_planner import GroupPlanner
from potok.runtime.planning.start_offsets import Positions, start_positions
from potok.runtime.queries.errors import DuplicateQuery, NotCaughtUp, NotFailed, NotInGroup, NotRunning
from potok.runtime.queries.group_owner import GroupOwner
from potok.runtime.queries.group_query import GroupQuery, QueryState, QueryStatus, backlog
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.log_maintenance import LogMaintenance
from potok.runtime.queries.prepare import Buildable, prepare, topology_of
from potok.settings import Settings
from potok.snapshots.tables import Tables
from potok.topology.graph import Topology

log = logging.getLogger(__name__)

BatchListener = Callable[[Mapping[str, Committed]], None]

LOOK_S = 0.01


class QueryGroup:
    """Run the queries that are added to it, each under its own name, independently of each other.

    >>> with QueryGroup(broker, settings, executor) as group:
    ...     group.add(builder)
    ...     group.wait_caught_up(10)

    Methods may be called from any thread. Queries join at the next batch, and leave between two batches.

    Args:
        name: The name of the group; a lock of this name lets one process at a time run it.
        lock: Whether to take that lock. A group of one query uses the lock of the query.
        ends_with_query: End when a query has failed, or has reached its target.
        figures: What an earlier group of the same queries has counted.
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
        figures: GroupFigures | None = None,
    ) -> None:
        self._broker, self._settings, self._executor, self.name = broker, settings, executor, name
        self._owner = GroupOwner(broker, name) if lock else None
        self._ends_with_query, self.figures = ends_with_query, figures or GroupFigures()
        self._queries: dict[str, GroupQuery] = {}
        self._planner, self.tracer = GroupPlanner(broker), tracer_of(settings)
        self.waiting_for: PotokError | None = None
        """The error of a resource that every query of the group needs, while it is unavailable."""
        self._retry: Retry | None = None
        self.boundary = threading.Lock()
        """Held during a batch."""
        self._changing, self._entering = threading.RLock(), threading.Lock()
        self._done: dict[str, Committed] = {}
        self._listeners: list[BatchListener] = []
        self._maintenance = LogMaintenance(broker)
        self._thread: threading.Thread | None = None
        self._stop_requested, self._changed, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._closed = False
        self.moved_at = time.monotonic()
        """When the batch loop last began an iteration."""

    def start(self) -> QueryGroup:
        """Start the batch loop; queries may be added before and after."""
        self._thread = threading.Thread(target=self._run, name=f"potok-{self.name}", daemon=True)
        self._thread.start()
        self._maintenance.start()
        return self

    def stop(self) -> None:
        """Stop at the next batch boundary, and end all queries."""
        self._stop_requested.set()
        self._changed.set()
        if self._thread is None:
            self._close(None)
        else:
            self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return whether it was reached. Raise the error that ended the group."""
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
        """The error that ended the group; None if it was stopped."""
        if self._error is None or isinstance(self._error, PotokError):
            return self._error
        return QueryFailed(self.name, cause_of(self._error))

    def taken_over(self) -> QueryTakenOver | None:
        """Return the error to raise if another process runs these queries."""
        return None if self._owner is None else self._owner.taken_over()

    def add(self, program: Buildable | Topology, *, start: Start = "earliest", paused: bool = False) -> None:
        """Add a query; one that ran before resumes from its ledger.

        Args:
            start: Where a new query starts. `latest` applies to streams: tables are read from their first record.
            paused: Add it without starting it.
        """
        topology = topology_of(program)
        with self._entering:
            known = self._queries.get(topology.name)
            if known is not None:
                raise DuplicateQuery(topology.name, known.state)
            self._enter(topology, start_positions(self._broker, topology, start), paused=paused)

    def retry(self, name: str) -> None:
        """Retry a query that failed. If it cannot start, it stays failed, with the new error."""
        with self._entering:
            query = self._query(name)
            if query.state is not QueryState.FAILED:
                raise NotFailed(name, query.state)
            failure = query.error
            try:
                self._enter(query.topology, {})
            except PotokError as error:
                query.error = error
                raise
            self.figures.restarted(name, failure)

    def _enter(self, topology: Topology, start: Positions, *, paused: bool = False) -> None:
        if (taken := self.taken_over()) is not None:
            raise taken
        prepared = prepare(topology, self._broker, self._settings, start=start)
        try:
            query = GroupQuery.start(prepared, self._executor, self._settings, first=FIRST)
        except BaseException:
            prepared.release()
            raise
        try:
            if paused:
                query.set_state(QueryState.PAUSED)
            self.take(query)
        except BaseException:
            with contextlib.suppress(PotokError):
                query.end()
            raise

    def take(self, query: GroupQuery) -> None:
        """Add a query that has started."""
        with self._changing:
            if self._closed:
                raise NotRunning(query.name, f'the group "{self.name}" has ended')
            self._queries[query.name] = query
            query.figures = self.figures.of(query.name)
        self._changed.set()

    def remove(self, name: str) -> None:
        """End a query between two batches; its ledger and its tables are kept."""
        with self.boundary, self._changing:
            query = self._query(name)
            del self._queries[name]
            self.figures.forget(name)
            query.end()

    def pause(self, name: str) -> None:
        """Pause a query between two batches. It keeps its lock, and its records wait in the log."""
        self._switch(name, QueryState.RUNNING, QueryState.PAUSED)

    def resume(self, name: str) -> None:
        self._switch(name, QueryState.PAUSED, QueryState.RUNNING)

    def _switch(self, name: str, before: QueryState, after: QueryState) -> None:
        with self.boundary, self._changing:
            query = self._query(name)
            if query.state is QueryState.FAILED:
                raise NotRunning(name, str(query.error))
            if query.state is before:
                query.set_state(after)
        self._changed.set()

    def statuses(self) -> dict[str, QueryStatus]:
        """Return the status of all queries."""
        queries = sorted(self.members(), key=lambda query: query.name)
        return {query.name: query.status(self.waiting_for) for query in queries}

    def members(self) -> list[GroupQuery]:
        with self._changing:
            return list(self._queries.values())

    def tables(self, name: str) -> Tables:
        """Return the tables of a query as of its last committed batch."""
        return Tables(self._broker, name)

    def on_batch(self, listener: BatchListener) -> Callable[[], None]:
        """Call a function with the queries of each commit; return a function that removes it.

        It runs between two batches, so it must be quick. Errors it raises are logged and have no other effect.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def wait_caught_up(self, timeout_s: float, names: Iterable[str] | None = None) -> None:
        """Wait until no running query, or none of those named, has records left to read.

        Raise the error of a named query that failed.
        """
        named = None if names is None else list(names)
        end = time.monotonic() + timeout_s
        while behind := self._behind(named):
            if self.wait(LOOK_S):
                raise NotCaughtUp(behind, "the group was stopped")
            if time.monotonic() > end:
                raise NotCaughtUp(behind, f"after {timeout_s:g} seconds")

    def _behind(self, named: list[str] | None) -> dict[str, int]:
        """Count the unread records of each running query, or of those named."""
        queries = self.members() if named is None else [self._query(name) for name in named]
        for query in queries:
            if named is not None and query.state is not QueryState.RUNNING:
                raise query.error or NotRunning(query.name, "it is paused")
        return backlog(self._broker, [query for query in queries if query.state is QueryState.RUNNING])

    def _run(self) -> None:
        """Run batches until the loop is stopped, no query can continue, or its query ends."""
        try:
            while not self._stop_requested.is_set():
                if not self.step():
                    if self._is_finished():
                        break
                    self._planner.wait(self.members(), self._changed)
        except BaseException as error:  # noqa: BLE001 - raised by `wait`
            self._error = error
        try:
            self._close(self.failure())
        except Exception as error:  # noqa: BLE001 - raised by `wait`
            self._error = self._error or error
        self._ended.set()

    def step(self) -> bool:
        """Run the next batch; return whether there was one. Wait for resources that every query needs."""
        self._changed.clear()
        self.moved_at = time.monotonic()
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
        """Run one batch. Queries that fail are excluded, and the others lose nothing."""
        self._executor.check()
        queries = {query.name: query for query in self.members()}
        for query in queries.values():
            self._check(query)
        began = time.monotonic()
        planned = self._planner.plan(queries.values())
        plan_s = time.monotonic() - began
        batch = JointBatch(self._executor, self._broker, self.tracer)
        batch.failed |= planned.failed
        batch.run([(queries[name].runner, end) for name, end in planned.ends.items()])
        # If a batch runs again because of a failure after the commit of one query, that query commits nothing.
        self._done |= batch.committed
        for name, done in batch.committed.items():
            queries[name].committed(done, plan_s)
        for name, error in batch.failed.items():
            self._postpone(queries[name], error, committed=name in batch.committed)
        for name in batch.committed.keys() - batch.failed.keys():
            queries[name].resume()
        for name in planned.idle:
            queries[name].report_idle()
        return bool(planned.ends or planned.failed)

    def _check(self, query: GroupQuery) -> None:
        try:
            query.check()
        except PotokError as error:
            if not error.passing:
                self._exclude(query, error)

    def _postpone(self, query: GroupQuery, error: BaseException, *, committed: bool) -> None:
        """Let a query retry later, or mark it as failed if a retry cannot help."""
        if committed and isinstance(error, PotokError) and error.passing:
            # There is nothing to repeat; pending work is done with its next batch.
            batch = query.runner.ledger.entry.batch
            log.warning('query "%s": error after the commit of batch %d: %s', query.name, batch, error.message)
            query.resume()
        elif not query.wait(error, self._settings.retry_for_ms):
            self._exclude(query, error)

    def _exclude(self, query: GroupQuery, error: BaseException) -> None:
        query.fail(error)
        if isinstance(query.error, QueryTakenOver) and (taken := self.taken_over()) is not None:
            raise taken
        if self._ends_with_query:
            raise query.error or error
        log.warning('query "%s" has failed: %s', query.name, query.error, extra={"query": query.name})

    def _wait_for(self, error: PotokError) -> None:
        """Wait before the next attempt at a resource that every query needs."""
        self._retry = self._retry or Retry(self._settings.retry_for_ms, self._stop_requested)
        self._all_wait(error)
        if not self._retry.wait() and not self._stop_requested.is_set():
            raise error

    def _all_wait(self, error: PotokError | None) -> None:
        before, self.waiting_for = self.waiting_for, error
        if before is None and error is not None:
            log.warning('all queries of "%s" are waiting to retry: %s', self.name, error.message)
        elif before is not None and error is None:
            log.warning('the queries of "%s" continue', self.name)

    def _is_finished(self) -> bool:
        if not self._ends_with_query:
            return False
        try:
            return all(query.planner.is_done for query in self.members())
        except PotokError as error:
            if not error.passing:
                raise
            return False

    def _report(self) -> None:
        done, self._done = self._done, {}
        for listener in list(self._listeners) if done else []:
            try:
                listener(done)
            except Exception:
                log.exception("a function called after the batch failed")

    def _close(self, failure: PotokError | None) -> None:
        with self._changing:
            if self._closed:
                return
            self._closed = True
            queries = list(self._queries.values())
            if failure is None and not self._ends_with_query:
                self._queries = {}
        self._maintenance.stop()
        failure = failure or self.taken_over()
        try:
            for query in queries:
                query.end_with(failure, raises=self._ends_with_query)
        finally:
            if self._owner is not None:
                self._owner.release()

    def _query(self, name: str) -> GroupQuery:
        with self._changing:
            if name not in self._queries:
                raise NotInGroup(name, sorted(self._queries))
            return self._queries[name]

    def __enter__(self) -> QueryGroup:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()
