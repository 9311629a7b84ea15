"""Execute statements on a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from potok.cli.output import counted
from potok.cli.prompt.background import in_background
from potok.cli.prompt.http import Http, StatementRefused
from potok.cli.prompt.remote_push import RemotePush, row_of, type_named
from potok.cli.prompt.target import Names, SourceNames, Target
from potok.sql.errors import SourceLocation
from potok.sql.syntax import ast
from potok.statements.inspect.settings import set_property, show_variables
from potok.statements.results import Done, Result, ResultColumn, Rows
from potok.statements.session_variables import SessionVariables

OLD_S = 5.0
"""Names older than this are fetched again when the user types."""

LOOKS, LOOK_S = 2, 0.1

_NAMES = "DESCRIBE STREAMS; DESCRIBE TABLES; SHOW TOPICS; SHOW QUERIES; SHOW TYPES;"


class Remote(Target):
    """Keeps variables and properties, and sends them with each statement."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__()
        self._http = Http(url, token)
        self._names, self._asked = Names(), float("-inf")
        self._begun: set[str] = set()

    def run(self, parsed: ast.Parsed) -> Result:
        statement = parsed.statement
        match statement:
            case ast.SetProperty():
                return set_property(self.properties, statement)
            case ast.Define():
                return _set_variable(self.variables, statement.name, statement.value)
            case ast.Show(what="VARIABLES"):
                return show_variables(self.variables)
        self._asked = float("-inf")
        try:
            return self._sent(parsed)
        except StatementRefused as error:
            error.location = _within(error.location, parsed.at)
            raise

    def _sent(self, parsed: ast.Parsed) -> Result:
        statement, body = parsed.statement, {"sql": parsed.text, "properties": self.properties}
        if isinstance(statement, ast.Print) or (isinstance(statement, ast.Query) and statement.query.emit is not None):
            return RemotePush(self._http, body)
        result = result_of(self._http.post("/sql", body)["results"][0])
        if isinstance(result, Done) and result.query_id:
            self._begun.add(result.query_id)
        if isinstance(statement, ast.Show) and statement.what == "PROPERTIES" and isinstance(result, Rows):
            own = [(name, "SESSION", "SET", value) for name, value in sorted(self.properties.items())]
            return replace(result, rows=(*own, *result.rows))
        return result

    def names(self) -> Names:
        if time.monotonic() - self._asked > OLD_S:
            self._asked = time.monotonic()
            in_background(self._ask)
        return self._names

    def _ask(self) -> None:
        streams, tables, topics, queries, types = map(result_of, self._http.post("/sql", {"sql": _NAMES})["results"])
        sources: dict[str, SourceNames] = {}
        for kind, listed in (("STREAM", streams), ("TABLE", tables)):
            columns: dict[str, dict[str, pa.DataType]] = {}
            for name, column, type_, *_ in _rows(listed):
                columns.setdefault(name, {})[column] = type_named(type_)
            sources |= {name: SourceNames(kind, found) for name, found in columns.items()}
        first = [tuple(row[0] for row in _rows(listed)) for listed in (topics, queries, types)]
        self._names = Names(sources, *first)

    def status(self) -> str:
        self.names()
        queries = len(self._names.queries)
        return f"{self._http.url} · {counted(queries, 'query', 'queries')}" if queries else self._http.url

    def start(self) -> None:
        """Check that the server responds. It runs the queries itself."""
        self._ask()

    def settle(self) -> None:
        """Wait until the queries of the server have processed the existing records. Checks twice, because
        the first check may fall between a query and the one that reads its output."""
        calm = 0
        while calm < LOOKS:
            calm = 0 if self._is_behind() else calm + 1
            if not calm:
                time.sleep(LOOK_S)

    def _is_behind(self) -> bool:
        return any(row["Status"] == "RUNNING" and row["Lag"] for row in self._queries())

    def dead_letters(self) -> Mapping[str, int]:
        """Count only queries that this session started."""
        if not self._begun:
            return {}
        return {row["Query ID"]: row["Dead Letters"] for row in self._queries() if row["Query ID"] in self._begun}

    def _queries(self) -> list[dict[str, Any]]:
        (listed,) = map(result_of, self._http.post("/sql", {"sql": "SHOW QUERIES EXTENDED;"})["results"])
        assert isinstance(listed, Rows)
        return listed.as_dicts()

    def dead_letters_command(self, query: str) -> str:
        return f"{super().dead_letters_command(query)}, on the server"

    def close(self) -> None:
        pass


def _set_variable(variables: SessionVariables, name: str, value: str | None) -> Done:
    """Set a variable of this session; None removes it."""
    variables.discard(name)
    if value is None:
        return Done(f"Variable '{name}' unset")
    variables[name] = value
    return Done(f"Variable '{name}' set to '{value}'")


def _within(location: SourceLocation | None, start: SourceLocation) -> SourceLocation | None:
    """Convert a position in a statement to one in the surrounding text."""
    if location is None:
        return None
    column = location.column + start.column - 1 if location.line == 1 else location.column
    return SourceLocation(location.line + start.line - 1, column, location.length)


def result_of(response: Mapping[str, Any]) -> Result:
    """Convert the response of a server to a finite result."""
    if response["kind"] == "done":
        known = {name: response[name] for name in ("message", "command_id", "sequence", "query_id") if name in response}
        return Done(**known, warnings=tuple(response.get("warnings", ())))
    columns = tuple(
        ResultColumn(column["name"], type_named(column["type"]), column["key"]) for column in response["columns"]
    )
    details = [(head, result_of(value) if isinstance(value, dict) else value) for head, value in response["details"]]
    return Rows(
        response["kind"],
        columns,
        tuple(row_of(row, columns) for row in response["rows"]),
        tuple(details),
        warnings=tuple(response.get("warnings", ())),
    )


def _rows(result: Result) -> Sequence[tuple[Any, ...]]:
    return result.rows if isinstance(result, Rows) else ()
