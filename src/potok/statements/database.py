"""A catalog in one log, and its running queries. Many sessions share a database."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.runtime.monitoring.figures import GroupFigures
from potok.runtime.queries.lock import QueryAlreadyRuns
from potok.settings import Settings
from potok.spark.start.lost_jvm import JvmGone, jvm_is_gone
from potok.sql.catalog import Catalog, Source
from potok.sql.errors import SqlError
from potok.sql.functions.registry import users_functions
from potok.sql.syntax import ast
from potok.statements.catalog.catalog_state import EMPTY, CatalogState, parsed_of
from potok.statements.catalog.cleanup import left_by, named_by, names_left, remove_left
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.catalog.compaction import compact
from potok.statements.catalog.existing import already
from potok.statements.catalog.query_ids import query_id_for
from potok.statements.catalog.refusals import check_change, check_sources
from potok.statements.catalog.remote_queries import CATALOG_GROUP, alone, queries_are_running, remote_state, wait_remote
from potok.statements.catalog.schema_inference import register_schemas, with_registry
from potok.statements.connectors import ConnectorInfo, Connectors, NoConnectors
from potok.statements.errors import NotRunningHere, NotYetRemoved
from potok.statements.messages import command_id_of, cycle_message, damage_message, done_message
from potok.statements.push.transient import remove_leftovers
from potok.statements.queries.dead_letter_log import DeadLetterLog
from potok.statements.queries.processing_log import make_log_if_read
from potok.statements.queries.runner import LAST_RETRY_S, BackOff, QueryInfo, Runner
from potok.statements.results import Done

if TYPE_CHECKING:
    from potok.runtime.queries.query_group import QueryGroup

log = logging.getLogger(__name__)

LOOK_S, TIDY_S = 0.2, 1.0

MANY, GROWN = 64, 2
"""The command log is compacted once it has `MANY` statements and `GROWN` times those that the last compaction left."""

HANDED_OVER_S = 10.0
"""How long a statement waits for another process to remove an old query or topic."""


class Database:
    """The catalog, and the queries that it defines.

    Args:
        runs: Whether this process runs the queries once they are needed. Otherwise statements are only recorded, and
        the process that runs the queries executes them.
        logs_dead_letters: Whether to log the dead letters of the queries.
        connectors: Runs connectors; without it, they cannot be created.
    """

    keeps_commands: ClassVar[bool] = True
    """Whether statements are stored in a command log, which this class compacts and cleans up."""

    def __init__(
        self,
        broker: Broker,
        settings: Settings,
        *,
        runs: bool = True,
        logs_dead_letters: bool = True,
        connectors: Connectors | None = None,
    ) -> None:
        self.broker, self.settings, self.runs, self._figures = broker, settings, runs, GroupFigures()
        self._commands, self._connectors = CommandLog(broker), connectors or NoConnectors()
        self._state = EMPTY
        self._applied, self._stored, self._functions, self._has_broken = 0, 0, users_functions(), False
        self._dead_letters = DeadLetterLog(lambda: self._state.queries, settings.broker) if logs_dead_letters else None
        self._changing = threading.RLock()
        self._runner: Runner | None = None
        self._closed = threading.Event()
        self._supervisor: threading.Thread | None = None
        self._restarts: BackOff | None = None
        self._lost: PotokError | None = None
        self._began_at = 0.0
        self._generation = 0
        with self._changing:
            self._catch_up()

    @property
    def catalog(self) -> Catalog:
        return self._state.catalog

    @property
    def generation(self) -> int:
        """A number that increases with each change of the catalog; cached plans of an older generation are invalid."""
        return self._generation

    @property
    def shared(self) -> QueryGroup | None:
        """The group of queries, if it runs in this process."""
        return None if self._runner is None else self._runner.shared

    @property
    def shared_name(self) -> str:
        """The name of the group."""
        return CATALOG_GROUP

    def refresh(self) -> None:
        """Apply the changes of other processes."""
        if self._is_behind():
            with self._changing:
                self._catch_up()
                self._settle()

    def start(self) -> None:
        """Run the queries in this process from now on."""
        with self._changing:
            if self._runner is not None or not self.runs or self._closed.is_set():
                return
            self._runner, self._began_at = self._new_runner(), time.monotonic()
            self._compact(1)
            remove_leftovers(self.broker)
            self._settle()
            self._supervisor = threading.Thread(target=self._supervise, name="potok-sql", daemon=True)
            self._supervisor.start()

    def apply(self, parsed: ast.Parsed, properties: Mapping[str, str]) -> Done:
        """Execute a statement that changes the catalog. It is committed once it is in the command log.

        Everything is checked before that. Queries start and stop afterwards, as they would after a restart, so the
        statement either takes full effect or none.
        """
        statement = parsed.statement
        with self._changing:
            self._catch_up()
            if (early := already(statement, self._state.catalog)) is not None:
                return early
            self._wait_for_names(statement)
            sequence = self._applied
            command, after = self._changed(parsed, properties, self._state, sequence)
            register_schemas(parsed, after.catalog, self.settings)
            left = left_by(statement, self._state, after, self.broker)
            make_log_if_read(self.broker, statement)
            self._make_topics(statement, after)
            if (command.query_id or isinstance(statement, ast.CreateConnector)) and self.runs:
                self.start()
            self._commands.append(command, left.metadata_keys(sequence))
            self._turn_to(after, sequence + 1)
            self._stored += 1
            self._compact(max(MANY, GROWN * self._commands.left))
            self._settle()
            warnings = self._warnings(command.query_id)
        message = done_message(statement, command.query_id)
        return Done(message, command_id_of(statement), sequence, command.query_id, warnings)

    def preview(
        self, parsed: ast.Parsed, properties: Mapping[str, str], state: CatalogState | None = None
    ) -> CatalogState:
        """Return the catalog as a statement would leave it, without changing anything."""
        known = state or self._state
        if already(parsed.statement, known.catalog) is not None:
            return known
        return self._changed(parsed, properties, known, 1_000_000 + len(known.queries))[1]

    def catalog_state(self) -> CatalogState:
        return self._state

    def queries(self) -> list[QueryInfo]:
        runner = self._runner
        members = {} if runner is None else runner.shared.statuses()
        found = []
        for wanted in self._state.queries.values():
            state = remote_state(self.broker, wanted) if runner is None else runner.state_of(wanted, members)
            status = members.get(wanted.query_id)
            pace = (0, 0.0) if status is None else (status.lag, status.records_per_second)
            topics = tuple(wanted.topology.source_topics), tuple(wanted.topology.sink_topics)
            found.append(QueryInfo(wanted.query_id, wanted.text, wanted.kind, wanted.source, *state, *topics, *pace))
        return found

    def connector(self, name: str) -> ConnectorInfo:
        return self._connectors.describe(self.catalog.connectors[name])

    def check(self) -> None:
        """Raise if the queries can no longer run in this process."""
        if self._lost is not None:
            raise self._lost

    def wait_caught_up(self, timeout_s: float) -> None:
        """Wait until the queries have processed all records, wherever they run; queries that are paused or have failed
        are not waited for. Raises `NotCaughtUp` after the timeout."""
        self.check()
        self.refresh()
        queries = self._state.queries.values()
        remote = self._runner is None and queries_are_running(self.broker)
        if queries and not remote:
            self.start()
        if self._runner is not None:
            self._runner.shared.wait_caught_up(timeout_s)
        elif remote:
            wait_remote(self.broker, queries, timeout_s)
        elif queries:
            raise NotRunningHere("waiting for queries")

    def tend(self) -> None:
        """Apply statements of other processes, and retry failed queries at growing intervals."""
        if self._runner is not None and (taken := self._runner.shared.taken_over()) is not None:
            # Restarting the queries would take them back from that process, which would then do the same.
            self._lost = taken
            self._connectors.close()
            return
        self.refresh()
        with self._changing:
            if self._runner is None or self._closed.is_set():
                return
            if not self._runner.shared.is_active:
                self._begin_again()
            elif time.monotonic() - self._began_at > LAST_RETRY_S:
                self._restarts = None
            if self._runner.shared.is_active:
                self._runner.look_after()
            self._connectors.settle(self._state.catalog.connectors)
            self._tidy_up()
        if self._dead_letters is not None:
            self._dead_letters.report_more()

    def close(self) -> None:
        """Stop the queries at the next batch boundary; they resume when the database is opened again."""
        self._closed.set()
        if self._supervisor is not None:
            self._supervisor.join(10)
        with self._changing:
            runner, self._runner = self._runner, None
        self._connectors.close()
        if runner is not None:
            runner.shared.stop()
            with contextlib.suppress(PotokError):
                runner.shared.wait(30)
        if self._dead_letters is not None:
            self._dead_letters.report_more(now=True)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changed(
        self, parsed: ast.Parsed, properties: Mapping[str, str], before: CatalogState, sequence: int
    ) -> tuple[Command, CatalogState]:
        """Return a statement as a command, and the catalog after it. Raises if the statement is invalid."""
        try:
            parsed, properties = with_registry(parsed, properties, self.settings)
            statement = parsed.statement
            query_id = query_id_for(statement, sequence, before, self.broker)
            command = Command(sequence, parsed.text, query_id, dict(properties))
            after = before.after(parsed, command, self.broker)
            remote = self._runner is None and queries_are_running(self.broker)
            check_change(statement, before, after, query_id, self.broker, remote=remote)
            if isinstance(statement, ast.CreateConnector):
                self._connectors.check(after.catalog.connectors[statement.name])
        except SqlError as error:
            raise error.in_text(parsed.in_script) from None
        return command, after

    def _wait_for_names(self, statement: ast.Statement) -> None:
        """Wait until the old query or topic of a name is removed; until then, the name cannot be reused."""
        named, end = named_by(statement), time.monotonic() + HANDED_OVER_S
        while waiting := named & names_left(self.broker):
            self._tidy_up()
            if time.monotonic() > end or self._closed.wait(LOOK_S / 4):
                raise NotYetRemoved(sorted(waiting))

    def _warnings(self, query_id: str) -> tuple[str, ...]:
        """Return warnings about a new query: a cycle, or the reason why it does not run."""
        if query_id not in self._state.queries:
            return ()
        found = [cycle_message(query_id, cycle)] if (cycle := self._state.cycle(query_id)) else []
        if self._runner is not None:
            state, error = self._runner.state_of(self._state.queries[query_id], {})
            found += [f"query {query_id} does not run: {error.splitlines()[0]}"] if state == "ERROR" else []
        return tuple(found)

    def _make_topics(self, statement: ast.Statement, state: CatalogState) -> None:
        """Create the topic of a new source, if it does not exist, as its WITH clause says."""
        if isinstance(statement, ast.CreateSource):
            source = state.catalog.source(statement.name)
            if not self.broker.has_topic(source.topic):
                self._create_topic(source)

    def _create_topic(self, source: Source) -> None:
        policy = source.cleanup_policy or ("compact" if source.is_table and source.window is None else "delete")
        kept = source.retention_ms if source.retention_ms is not None and source.retention_ms >= 0 else None
        self.broker.create_topic(
            source.topic,
            source.partitions or 1,
            exist_ok=True,
            cleanup_policy=policy,
            retention_ms=kept if "delete" in policy else None,
        )

    def _is_behind(self) -> bool:
        """Return whether there are new commands, or new functions that broken statements may need."""
        return self._commands.count != self._applied or (self._has_broken and users_functions() != self._functions)

    def _catch_up(self) -> None:
        """Apply new commands. A command that fails does not prevent later ones."""
        known, before, count = users_functions(), self._state.broken, self._commands.count
        if self._has_broken and known != self._functions:
            before, self._applied = {}, 0
        new = self._commands.since(self._applied) if self._applied else None
        found = self._commands.all() if new is None else new
        state = EMPTY if new is None else self._state
        for command in found:
            state = self._after(state, command)
        self._functions, self._stored = known, len(found) + (0 if new is None else self._stored)
        if found or new is None:
            self._turn_to(state, max([count, *(command.sequence + 1 for command in found[-1:])]))
        if self._has_broken and self._state.broken.keys() - before.keys():
            log.warning(damage_message(self._state.broken))

    def _after(self, state: CatalogState, command: Command) -> CatalogState:
        try:
            return state.after(parsed_of(command), command, self.broker)
        except LogError:
            raise
        except PotokError as error:
            log.info("statement %d cannot be executed: %s", command.sequence, error)
            return state.after_broken(command, error)

    def _compact(self, at: int) -> None:
        """Compact the command log if it has at least this many statements. Not if one is broken, because its
        dependencies are unknown. A failed compaction does not affect committed statements."""
        if self._stored >= at and not self._has_broken and self.keeps_commands:
            try:
                self._stored = compact(self._commands, self.broker)
            except LogError as error:
                log.warning("the command log could not be compacted: %s", error)

    def _turn_to(self, state: CatalogState, applied: int) -> None:
        self._state, self._applied = state, applied
        self._has_broken = bool(state.catalog.missing) or any(wanted.broken for wanted in state.queries.values())
        self._generation += 1

    def _settle(self) -> None:
        """Start the queries that should run, and clean up after those that ended."""
        if self._runner is not None:
            self._runner.settle(self._state.queries)
            self._connectors.settle(self._state.catalog.connectors)
        self._tidy_up()

    def _tidy_up(self) -> None:
        if not self.keeps_commands or not names_left(self.broker):
            return
        if self._runner is not None:
            remove_left(self.broker)
            return
        with contextlib.suppress(QueryAlreadyRuns), alone(self.broker):
            remove_left(self.broker)

    def _new_runner(self) -> Runner:
        shared = self._shared_query()
        if self._dead_letters is not None:
            shared.on_batch(self._dead_letters.heard)
        return Runner(shared, lambda wanted: check_sources(self.broker, wanted, self._state))

    def _shared_query(self) -> QueryGroup:
        """Raise if another process runs the queries. A process that only cleans up holds the lock for a moment."""
        from potok.runtime.queries.query_group import QueryGroup
        from potok.spark.spark_executor import start_spark

        end = time.monotonic() + TIDY_S
        while True:
            try:
                parts = self.broker, self.settings, start_spark(self.settings), self.shared_name
                return QueryGroup(*parts, figures=self._figures).start()
            except QueryAlreadyRuns:
                if time.monotonic() > end or self._closed.wait(LOOK_S / 4):
                    raise

    def _begin_again(self) -> None:
        """Replace a batch loop that has ended together with all queries."""
        if jvm_is_gone():
            self._lost = self._lost or JvmGone()
            return
        self._restarts = self._restarts or BackOff()
        if self._restarts.is_due():
            log.warning("the queries have ended; restarting them")
            self._runner, self._began_at = self._new_runner(), time.monotonic()
            self._figures.all_restarted()
            self._settle()

    def _supervise(self) -> None:
        while not self._closed.wait(LOOK_S):
            try:
                self.tend()
            except Exception:
                log.exception("supervising the queries failed; retrying")
