"""SQL statements of an app: they read its topics and tables, and their results are stored next to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from potok.errors import QueryError
from potok.faust.catalog import catalog_of
from potok.log.broker import Broker
from potok.operators.agents import context
from potok.settings import Settings
from potok.snapshots.progress import read_progress
from potok.sql.catalog import Catalog
from potok.sql.errors import Refused
from potok.sql.properties import OFFSET_RESET
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.statements.catalog.catalog_state import CatalogState
from potok.statements.catalog.command_log import Command
from potok.statements.catalog.stored_values import sql_name
from potok.statements.database import Database
from potok.statements.prepared import parsed_script
from potok.statements.queries.runner import QueryInfo
from potok.statements.results import Done, Push, Rows
from potok.statements.session import CHANGES, SqlSession
from potok.topology.nodes import AgentTable

if TYPE_CHECKING:
    from potok.faust.app import App

DEFINES = ast.CreateSource | ast.CreateAs | ast.CreateType | ast.InsertSelect
"""Statements that a program may contain; others that change a catalog are refused."""

CATCH_UP_S = 600.0
_STATES = {"starting": "RUNNING", "running": "RUNNING", "waiting": "WAITING", "failed": "ERROR"}


class NotInsideAgents(QueryError):
    """A statement executed by an agent."""

    def __init__(self) -> None:
        super().__init__("an agent sends no statements", hint="read the table itself: order_counts[user_id]")


class AppDatabase(Database):
    """The topics and tables of an app, and the results of its statements. Its catalog is the program: it is not
    stored, and cannot be changed from outside.
    """

    keeps_commands = False

    def __init__(self, app: App, broker: Broker, settings: Settings) -> None:
        self._app = app
        self._seen: tuple[int, ...] = ()
        super().__init__(broker, settings)

    @property
    def shared_name(self) -> str:
        return f"{self._app.id}.sql"

    def refresh(self) -> None:
        """Add what the program has defined since the last call."""
        with self._changing:
            self._catch_up()

    def start(self) -> None:
        """Start the statements; raise if one cannot start."""
        self.refresh()
        super().start()
        for info in super().queries():
            if info.state == "ERROR":
                raise QueryError(
                    f'the statement of query "{info.query_id}" cannot run: {info.error}', hint=f"it is: {info.text}"
                )

    def apply(self, parsed: ast.Parsed, properties: Any) -> Done:
        hint = 'write app.sql("CREATE ...") in the program, and restart it'
        raise Refused("the definitions of an app belong to its program", hint=hint, location=parsed.at)

    def queries(self) -> list[QueryInfo]:
        """Return the agents as one query, and the queries of the statements."""
        progress = read_progress(self.broker, self._app.id)
        state = _STATES.get("" if progress is None else progress.state, "STOPPED")
        own = QueryInfo(self._app.id, repr(self._app), "APP", "", state, progress.error if progress else "", (), ())
        return [own, *super().queries()]

    def _catch_up(self) -> None:
        app = self._app
        seen = (len(app.topics), len(app.tables), len(app.agents), len(app.statements.defined))
        if seen == self._seen or self._runner is not None:
            return
        catalog_state = CatalogState(catalog_of(app, _key_types(app)), {})
        for number, parsed in enumerate(app.statements.defined):
            _check_topics(parsed.statement, catalog_state.catalog)
            command = Command(number, parsed.text, self._id_of(parsed.statement, number), {OFFSET_RESET: app.start_at})
            catalog_state = catalog_state.after(parsed, command, self.broker)
            self._make_topics(parsed.statement, catalog_state)
        self._turn_to(catalog_state, len(app.statements.defined))
        self._seen = seen

    def _id_of(self, statement: ast.Statement, number: int) -> str:
        """Return the id that state is found by; if possible, independent of the other definitions of the
        program.
        """
        if isinstance(statement, ast.CreateAs | ast.CreateSource):
            return f"{self._app.id}.{sql_name(statement.name).lower()}"
        properties = statement.properties if isinstance(statement, ast.InsertSelect) else ()
        given = next((given.value for given in properties if given.name == "QUERY_ID"), None)
        name = given if isinstance(given, str) else f"insert-{number}"
        return f"{self._app.id}.{name.lower()}" if isinstance(statement, ast.InsertSelect) else ""


def _key_types(app: App) -> dict[str, pa.DataType | None]:
    tables = app.build().of_type(AgentTable) if app.agents else ()
    return {table.name: table.upstream.agent_group.tables[table.index].key_type for table in tables}


def _check_topics(statement: ast.Statement, catalog: Catalog) -> None:
    """A persistent query reads the changes of a table from a topic."""
    if not isinstance(statement, ast.CreateAs | ast.InsertSelect):
        return
    for relation in (statement.query.relation, *(join.relation for join in statement.query.joins)):
        source = catalog.sources.get(relation.name)
        if source is not None and source.stored_table is not None and not source.topic:
            hint = f'write them to a topic: app.Table("{source.stored_table.table}", ..., changelog_topic=True)'
            raise Refused(f"table {quoted(source.name)} has no changelog topic", hint=hint, location=relation.at)


class Statements:
    """The statements of an app: definitions run with its agents, others are executed at once."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.defined: list[ast.Parsed] = []
        self._database: AppDatabase | None = None

    @property
    def database(self) -> AppDatabase:
        if self._database is None:
            self._database = AppDatabase(self._app, self._app.log(), self._app.settings())
        return self._database

    def run(self, text: str) -> list[dict[str, Any]]:
        """Return the rows of the last statement that has some."""
        if context.current() is not None:
            raise NotInsideAgents
        rows: list[dict[str, Any]] = []
        for parsed in parsed_script(text if text.rstrip().endswith(";") else f"{text};"):
            if isinstance(parsed.statement, CHANGES):
                self._define(parsed)
            else:
                rows = self._rows(parsed)
        return rows

    def _define(self, parsed: ast.Parsed) -> None:
        if not isinstance(parsed.statement, DEFINES):
            hint = "change the statement that defined it, and restart the program"
            raise Refused("a program can only add definitions, not drop them", hint=hint, location=parsed.at)
        if self._database is not None and self._database.shared is not None:
            hint = "define it before app.main(), so that it runs with the agents"
            raise Refused("the app is already running", hint=hint, location=parsed.at)
        self.defined.append(parsed)

    def _rows(self, parsed: ast.Parsed) -> list[dict[str, Any]]:
        result = SqlSession(self.database).run(parsed, {})
        if isinstance(result, Push):
            result.close()
            hint = "omit EMIT CHANGES, or write CREATE STREAM ... AS SELECT and an agent that reads it"
            raise Refused("a push query never ends", hint=hint, location=parsed.at)
        return result.as_dicts() if isinstance(result, Rows) else []

    @contextmanager
    def at_work(self, *, until_end: bool = False) -> Iterator[None]:
        """Run the defined statements next to the agents."""
        if not self.defined:
            yield
            return
        database = self.database
        database.start()
        try:
            yield
            if until_end and database.shared is not None:
                database.shared.wait_caught_up(CATCH_UP_S)
        finally:
            self.close()

    def close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()
