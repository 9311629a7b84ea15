"""Execute SQL statements from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from potok.duration import Duration, to_seconds
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.settings import Settings
from potok.sql.errors import Refused, SqlError, UnknownName, closest
from potok.sql.properties import Properties, canonical, check_property
from potok.sql.syntax import ast
from potok.statements.database import Database
from potok.statements.dry_run import DryRun
from potok.statements.inspect.inspect import assert_topic, describe, explain, show
from potok.statements.inspect.settings import set_property
from potok.statements.prepared import parsed_script
from potok.statements.pull.pull import run_pull
from potok.statements.push.push import start_print, start_push
from potok.statements.queries.processing_log import make_log_if_read
from potok.statements.records.inserts import insert_values
from potok.statements.results import Done, Executed, Push, Result
from potok.statements.session_variables import SessionVariables

CHANGES = (
    ast.CreateSource
    | ast.CreateAs
    | ast.CreateType
    | ast.CreateConnector
    | ast.AlterSource
    | ast.Drop
    | ast.InsertSelect
    | ast.Steer
)
"""Statements that change the catalog."""


class SqlSession:
    """Executes statements. Variables and properties belong to the session.

    >>> with SqlSession("file:./data") as sql:
    ...     sql.execute("CREATE STREAM orders (id VARCHAR KEY, amount DOUBLE) WITH (KAFKA_TOPIC = 'orders');")
    ...     sql.execute("INSERT INTO orders VALUES ('o1', 12.5);")
    ...     sql.wait_caught_up(10)
    ...     sql.rows("SELECT * FROM order_counts WHERE user_id = 'u1';")

    Args:
        broker: The location of the log (a URL or directory), a broker, or a shared database.
        settings: Any setting of `potok.toml`.
    """

    def __init__(self, broker: str | Path | Broker | Database | None = None, **settings: Any) -> None:
        self._owns = not isinstance(broker, Database)
        if isinstance(broker, Database):
            self.database = broker
        else:
            given = None if broker is None or isinstance(broker, Broker) else str(broker)
            chosen = Settings.load(broker=given, **settings)
            self.database = Database(
                broker if isinstance(broker, Broker) else open_broker(chosen.broker, chosen), chosen
            )
        self.variables = SessionVariables()
        self.properties: dict[str, str] = {}

    def execute(self, text: str, properties: Mapping[str, str] | None = None) -> list[Executed]:
        """Execute the statements of a text in order. If one fails, the statements before it have taken effect.

        Args:
            text: One or more statements, each terminated by `;`.
            properties: Properties for these statements, which override those that were SET.
        """
        done = []
        for parsed in parsed_script(text, self.variables):
            done.append(Executed(parsed.text, self.run(parsed, {**self.properties, **(properties or {})})))
        return done

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Execute one statement that returns rows, and return them as dicts."""
        executed = self.execute(text if text.rstrip().endswith(";") else f"{text};")
        result = executed[-1].result if executed else None
        if result is None or isinstance(result, Done | Push):
            if isinstance(result, Push):
                result.close()
            hint = "use execute for statements that change something, and for queries that keep running"
            raise Refused("the statement does not return a finite result", hint=hint)
        return result.as_dicts()

    def wait_caught_up(self, timeout: Duration) -> None:
        """Wait until the queries have processed all records written so far, so that pull queries see the result.

        Queries that are paused or have failed are not waited for. Raises `NotCaughtUp` after the timeout.
        """
        self.database.wait_caught_up(to_seconds(timeout))

    def run(self, parsed: ast.Parsed, properties: Mapping[str, str]) -> Result:
        """Execute one statement."""
        try:
            for name, value in properties.items():
                check_property(name, value)
            return self._run(parsed, {canonical(name): value for name, value in properties.items()})
        except SqlError as error:
            raise error.in_text(parsed.in_script) from None

    def _run(self, parsed: ast.Parsed, properties: Mapping[str, str]) -> Result:
        statement, database = parsed.statement, self.database
        if isinstance(statement, CHANGES):
            return database.apply(parsed, properties)
        database.refresh()
        chosen = Properties.of(properties)
        match statement:
            case ast.Query():
                make_log_if_read(database.broker, statement)
                if statement.query.emit is None:
                    return run_pull(database, statement.query, chosen)
                return start_push(database, statement.query, chosen, parsed.text)
            case ast.InsertValues():
                return insert_values(database, statement, chosen)
            case ast.Show():
                return show(database, self, statement)
            case ast.Describe():
                return describe(database, statement)
            case ast.Explain():
                return explain(database, statement)
            case ast.Print():
                return start_print(database, statement)
            case ast.AssertTopic():
                return assert_topic(database, statement)
            case ast.SetProperty():
                return set_property(self.properties, statement)
            case ast.Define():
                return self._define(statement)
            case ast.RunScript():
                return self._script(statement, properties)
        raise TypeError(f"cannot execute {type(statement).__name__}")

    def _define(self, statement: ast.Define) -> Done:
        was_known = self.variables.discard(statement.name)
        if statement.value is None and not was_known:
            hint = closest(statement.name, self.variables) or "SHOW VARIABLES lists the defined variables"
            raise UnknownName(f"there is no variable {statement.name}", hint=hint, location=statement.at)
        if statement.value is None:
            return Done(f"Variable {statement.name} undefined")
        self.variables[statement.name] = statement.value
        return Done(f"Variable {statement.name} is '{statement.value}'")

    def _script(self, statement: ast.RunScript, properties: Mapping[str, str]) -> Done:
        path = Path(statement.path)
        try:
            text = path.read_text()
        except OSError as error:
            hint = "the path refers to the file system of this process"
            raise Refused(f"the script cannot be read: {error}", hint=hint, location=statement.at) from error
        done = self.execute(text, properties)
        for executed in done:
            if isinstance(executed.result, Push):
                executed.result.close()
        return Done(f"{len(done)} statements of {path} executed")

    def check(self, text: str) -> list[SqlError]:
        """Return all errors of a script without executing it. Each statement is checked after the previous ones."""
        return DryRun(self.database, self.properties).mistakes(text, self.variables)

    def close(self) -> None:
        """Stop the queries of this session, and close the log."""
        if self._owns:
            self.database.close()

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
