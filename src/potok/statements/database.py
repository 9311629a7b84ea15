"""A catalogue over one log, and its queries at work: many sessions share one."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from potok.engine import repair
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.settings import Settings
from potok.sql.catalog import Catalog, Source
from potok.sql.syntax import ast
from potok.statements.books import EMPTY, Books, parsed_of
from potok.statements.command_log import Command, CommandLog
from potok.statements.results import Done
from potok.statements.runner import Runner
from potok.statements.transient import remove_leftovers
from potok.statements.wording import command_id_of, done_message, prefix_of
from potok.views.tables import known_queries

if TYPE_CHECKING:
    from potok.engine.shared.shared_query import SharedQuery

log = logging.getLogger(__name__)

LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A persistent query, and how it is doing: `state` is RUNNING, PAUSED, ERROR, or STOPPED where none run."""

    query_id: str
    text: str
    kind: str
    source: str
    state: str
    error: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lag: int = 0
    records_per_second: float = 0.0


class Database:
    """The statements so far, and what they want to run.

    Args:
        runs: Whether the queries are run by this process, once something asks for it. Where another process runs
            them, statements are written down here and carried out there.
    """

    def __init__(self, broker: Broker, settings: Settings, *, runs: bool = True) -> None:
        self.broker, self.settings, self.runs = broker, settings, runs
        self._commands = CommandLog(broker)
        self._books = EMPTY
        self._applied = 0
        self._changing = threading.RLock()
        self._runner: Runner | None = None
        self._closed = threading.Event()
        self._supervisor: threading.Thread | None = None
        self._generation = 0
        with self._changing:
            self._catch_up()

    @property
    def catalog(self) -> Catalog:
        return self._books.catalog

    @property
    def generation(self) -> int:
        """A number that grows when the catalogue changes: what was checked before may be out of date."""
        return self._generation

    @property
    def shared(self) -> SharedQuery | None:
        """The query that all others are members of, if it runs here."""
        return None if self._runner is None else self._runner.shared

    def refresh(self) -> None:
        """Take in what other processes have changed."""
        if self._commands.has_moved:
            with self._changing:
                self._catch_up()
                if self._runner is not None:
                    self._runner.settle(self._books.queries)

    def start(self) -> None:
        """Run the queries in this process, now and from now on."""
        from potok.engine.shared.shared_query import SharedQuery

        with self._changing:
            if self._runner is not None or not self.runs or self._closed.is_set():
                return
            self._runner = Runner(SharedQuery(self.broker, self.settings, "sql").start())
            remove_leftovers(self.broker)
            self._runner.settle(self._books.queries)
            self._supervisor = threading.Thread(target=self._supervise, name="potok-sql", daemon=True)
            self._supervisor.start()

    def apply(self, parsed: ast.Parsed, properties: Mapping[str, str]) -> Done:
        """Carry out a statement that changes the catalogue; it counts once this has returned."""
        with self._changing:
            self._catch_up()
            early = self._already(parsed.statement)
            if early is not None:
                return early
            sequence = self._commands.next_sequence
            command = Command(sequence, parsed.text, self._query_id(parsed.statement, sequence), dict(properties))
            before, after = self._books, self._books.after(parsed, command, self.broker)
            self._make_topics(parsed.statement, after)
            if command.query_id and self.runs:
                self.start()
            self._write_down(command, before, after)
            self._turn_to(after, sequence + 1)
            if self._runner is not None:
                self._runner.settle(after.queries)
            self._clean_up(parsed.statement, before)
        message = done_message(parsed.statement, command.query_id)
        return Done(message, command_id_of(parsed.statement), sequence, command.query_id)

    def preview(self, parsed: ast.Parsed, properties: Mapping[str, str], books: Books | None = None) -> Books:
        """The books as a statement would leave them; nothing is changed."""
        known = books or self._books
        statement = parsed.statement
        if isinstance(statement, ast.CreateSource | ast.CreateAs | ast.CreateType) and statement.if_not_exists:
            taken = known.catalog.types if isinstance(statement, ast.CreateType) else known.catalog.sources
            if statement.name in taken:
                return known
        sequence = 1_000_000 + len(known.queries)
        command = Command(sequence, parsed.text, self._query_id(statement, sequence, known), dict(properties))
        return known.after(parsed, command, self.broker)

    def books(self) -> Books:
        return self._books

    def queries(self) -> list[QueryInfo]:
        runner = self._runner
        members = {} if runner is None else runner.shared.members()
        found = []
        for wanted in self._books.queries.values():
            state, error = ("PAUSED" if wanted.paused else "STOPPED"), ""
            if runner is not None:
                state, error = runner.state_of(wanted, members)
            status = members.get(wanted.query_id)
            pace = (0, 0.0) if status is None else (status.lag, status.records_per_second)
            places = tuple(wanted.topology.source_topics), tuple(wanted.topology.sink_topics)
            found.append(
                QueryInfo(wanted.query_id, wanted.text, wanted.kind, wanted.source, state, error, *places, *pace)
            )
        return found

    def close(self) -> None:
        """End the queries at the next batch boundary; they go on where they stopped when somebody opens this again."""
        self._closed.set()
        if self._supervisor is not None:
            self._supervisor.join(10)
        with self._changing:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.shared.stop()
            with contextlib.suppress(PotokError):
                runner.shared.wait(30)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _already(self, statement: ast.Statement) -> Done | None:
        """What there is to say of a statement that changes nothing, because it says `IF [NOT] EXISTS`."""
        catalog = self._books.catalog
        if isinstance(statement, ast.CreateSource | ast.CreateAs) and statement.if_not_exists:
            known = catalog.sources.get(statement.name)
            if known is not None:
                return Done(f"{known.kind.capitalize()} {known.name} is there already")
        if isinstance(statement, ast.CreateType) and statement.if_not_exists and statement.name in catalog.types:
            return Done(f"Type {statement.name} is there already")
        if isinstance(statement, ast.Drop) and statement.if_exists:
            there = catalog.types if statement.kind == "TYPE" else catalog.sources
            if statement.name not in there:
                return Done(f"{statement.kind.capitalize()} {statement.name} was not there")
        return None

    def _query_id(self, statement: ast.Statement, sequence: int, books: Books | None = None) -> str:
        """The id of the query that a statement begins; one that is replaced keeps its own."""
        if isinstance(statement, ast.CreateAs):
            known = (books or self._books).catalog.sources.get(statement.name)
            if known is not None and known.query:
                return known.query
        if isinstance(statement, ast.InsertSelect):
            given = dict(statement.properties).get("QUERY_ID")
            if isinstance(given, str):
                return given.upper()
        prefix = prefix_of(statement)
        return f"{prefix}_{sequence}" if prefix else ""

    def _make_topics(self, statement: ast.Statement, books: Books) -> None:
        """A source over a topic that is not there makes it, as its WITH clause says."""
        if isinstance(statement, ast.CreateSource):
            source = books.catalog.source(statement.name)
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

    def _write_down(self, command: Command, before: Books, after: Books) -> None:
        """A query that cannot begin is not written down, and one that could not be written down does not run."""
        old, new = before.queries.get(command.query_id), after.queries.get(command.query_id)
        if self._runner is None or new is None or old is new:
            self._commands.append(command)
            return
        self._runner.try_out(old, new)
        try:
            self._commands.append(command)
        except BaseException:
            self._runner.take_back(old, new)
            raise

    def _catch_up(self) -> None:
        """Take in the commands that are new here."""
        for command in self._commands.commands():
            if command.sequence >= self._applied:
                self._turn_to(self._books.after(parsed_of(command), command, self.broker), command.sequence + 1)

    def _turn_to(self, books: Books, applied: int) -> None:
        self._books, self._applied = books, applied
        self._generation += 1

    def _clean_up(self, statement: ast.Statement, before: Books) -> None:
        """What a dropped source leaves behind: the state of its query, and its topic if that is asked for."""
        if not isinstance(statement, ast.Drop) or statement.kind == "TYPE":
            return
        source = before.catalog.source(statement.name)
        for query_id in {source.query, source.table_of} - {""}:
            if query_id in known_queries(self.broker):
                repair.forget(self.broker, query_id)
        if statement.delete_topic and self.broker.has_topic(source.topic):
            self.broker.delete_topic(source.topic)

    def _supervise(self) -> None:
        """Carry out what other processes wrote down, and try failed queries again, less and less often."""
        while not self._closed.wait(LOOK_S):
            try:
                self.refresh()
                with self._changing:
                    if self._runner is not None:
                        self._runner.look_after()
            except Exception:
                log.exception("looking after the queries failed; trying again")
