"""Execute statements in this process, on a log without a server."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any, TypeVar

import pyarrow as pa

from potok.cli.output import console, counted, note
from potok.cli.prompt.targets.target import Names, SourceNames, Target, in_background
from potok.errors import PotokError
from potok.log.open import open_broker
from potok.redact import redact_url
from potok.settings import Settings
from potok.snapshots.progress import read_progress
from potok.sql.analysis.scope import PSEUDO, WINDOW_BOUNDS
from potok.sql.catalog import Source
from potok.sql.syntax import ast
from potok.sql.types import BIGINT
from potok.statements.catalog.remote_queries import queries_are_running, wait_remote
from potok.statements.database import Database
from potok.statements.results import Push, Result
from potok.statements.session import SqlSession

T = TypeVar("T")

LOOK_S = 0.1
SOON_S = 0.3
"""A wait that takes longer is reported."""

CATCH_UP_S = 24 * 3600.0
"""Upper bound of a wait; Ctrl-C ends it earlier."""


class Here(Target):
    """Runs queries in this process, from the first statement that starts one. If another process runs the queries of
    this log, statements are written to the command log for it."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database, self._session = database, SqlSession(database)
        self._elsewhere, self._owns = not database.runs, False
        self._address = redact_url(database.settings.broker)
        self._starting: Future[None] | None = None
        self.variables, self.properties = self._session.variables, self._session.properties

    @classmethod
    def opened(cls, settings: Settings) -> Here:
        broker = open_broker(settings.broker, settings)
        from potok.sources.sql_connectors import SqlConnectors

        runs, connectors = not queries_are_running(broker), SqlConnectors(broker)
        here = cls(Database(broker, settings, runs=runs, logs_dead_letters=False, connectors=connectors))
        here._owns = True
        return here

    def run(self, parsed: ast.Parsed) -> Result:
        if not _needs_queries(parsed.statement) or self._database.shared is not None or self._elsewhere:
            return self._session.run(parsed, self.properties)
        # If the main thread starts Spark, Spark handles Ctrl-C and cancels its jobs.
        work = in_background(lambda: self._session.run(parsed, self.properties))
        return self._awaited(work, "starting Spark")

    def start(self) -> None:
        """Start the existing queries without waiting for them."""
        known = self._database.catalog_state()
        if (known.queries or known.catalog.connectors) and not self._elsewhere:
            self._starting = in_background(self._database.start)

    def settle(self) -> None:
        shared = self._database.shared
        if shared is not None:
            self._awaited(in_background(lambda: shared.wait_caught_up(CATCH_UP_S)), "waiting for the queries")
        elif self._elsewhere:
            queries = self._database.catalog_state().queries.values()
            waiting = in_background(lambda: wait_remote(self._database.broker, queries))
            self._awaited(waiting, "waiting for the queries")

    def _awaited(self, work: Future[T], what: str) -> T:
        _look(work, SOON_S)
        out = console(stderr=True)
        if not work.done() and not out.is_terminal:
            note(what)
        try:
            with out.status(what) if out.is_terminal and not work.done() else nullcontext():
                while not work.done():
                    _look(work, LOOK_S)
        except KeyboardInterrupt:
            work.add_done_callback(_close_push)
            raise
        return work.result()

    def names(self) -> Names:
        catalog, broker = self._database.catalog, self._database.broker
        sources = {name: SourceNames(s.kind, columns_of(s)) for name, s in catalog.sources.items()}
        queries = tuple(self._database.catalog_state().queries)
        return Names(sources, tuple(sorted(broker.topics())), queries, tuple(catalog.types))

    def status(self) -> str:
        starting = self._starting
        if starting is not None and not starting.done():
            return f"{self._address} · starting Spark"
        if starting is not None and isinstance(error := starting.exception(), PotokError):
            return f"{self._address} · queries are not running: {error.message}"
        queries = self._database.queries()
        if not queries:
            return self._address
        if self._elsewhere:
            return f"{self._address} · {counted(len(queries), 'query', 'queries')}, run by another process"
        states = [query.state for query in queries]
        state_text = ", ".join(f"{states.count(state)} {state.lower()}" for state in dict.fromkeys(states))
        open_count = sum(self.dead_letters().values())
        set_aside = f" · {counted(open_count, 'dead letter')}" if open_count else ""
        return f"{self._address} · queries: {state_text}{set_aside}"

    def dead_letters(self) -> Mapping[str, int]:
        found = {query: read_progress(self._database.broker, query) for query in self._database.catalog_state().queries}
        return {query: progress.dead_letters for query, progress in found.items() if progress is not None}

    def dead_letters_command(self, query: str) -> str:
        command, given = super().dead_letters_command(query), self._database.settings.broker
        is_found = given == Settings.load().broker or given != self._address  # omit a URL with a password
        return command if is_found else f"{command} --broker {shlex.quote(given)}"

    def close(self) -> None:
        if self._owns:
            self._database.close()
            self._database.broker.close()


def columns_of(source: Source) -> dict[str, pa.DataType]:
    """Return the columns of a source, including pseudo columns."""
    found = {column.name: column.type for column in source.columns}
    if source.window is not None:
        found |= dict.fromkeys(WINDOW_BOUNDS, BIGINT)
    return found | PSEUDO


def _look(work: Future[T], seconds: float) -> None:
    """Wait in short intervals, so that Ctrl-C is handled."""
    ended = threading.Event()
    work.add_done_callback(lambda _: ended.set())
    ended.wait(seconds)


def _close_push(work: Future[Any]) -> None:
    """Stop the query; its remaining rows are not needed."""
    if work.exception() is None and isinstance(result := work.result(), Push):
        result.close()


def _needs_queries(statement: ast.Statement) -> bool:
    match statement:
        case ast.CreateAs() | ast.InsertSelect() | ast.CreateConnector():
            return True
        case ast.CreateSource():
            return statement.is_table and statement.read_only
        case ast.Query():
            return statement.query.emit is not None
    return False
