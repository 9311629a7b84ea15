"""Execute statements on a server."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.cli.output import counted
from potok.cli.prompt.targets.http import (
    CUT_OFF,
    MALFORMED,
    Http,
    NoServer,
    StatementRefused,
    StrangeResponse,
    refusal_of_ksql,
)
from potok.cli.prompt.targets.target import Names, SourceNames, Target, in_background
from potok.errors import PotokError
from potok.sql.errors import SourceLocation
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.syntax.type_names import resolve
from potok.sql.types import DOUBLE, VARCHAR
from potok.statements.inspect.settings import set_property, show_variables
from potok.statements.results import Done, Push, Result, ResultColumn, Row, Rows
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
        self._started: set[str] = set()

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
        (result,) = self._results(body, 1)
        if isinstance(result, Done) and result.query_id:
            self._started.add(result.query_id)
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
        streams, tables, topics, queries, types = self._results({"sql": _NAMES}, 5)
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
        if not self._started:
            return {}
        return {row["Query ID"]: row["Dead Letters"] for row in self._queries() if row["Query ID"] in self._started}

    def _queries(self) -> list[dict[str, Any]]:
        (listed,) = self._results({"sql": "SHOW QUERIES EXTENDED;"}, 1)
        return listed.as_dicts() if isinstance(listed, Rows) else []

    def _results(self, body: Mapping[str, Any], count: int) -> list[Result]:
        """Send statements and return the result of each."""
        response = self._http.post("/sql", body)
        try:
            results = [result_of(found) for found in response["results"]]
        except MALFORMED as error:
            raise StrangeResponse(self._http.url, "it is not the result of a statement") from error
        if len(results) != count:
            raise StrangeResponse(self._http.url, f"it has {len(results)} results instead of {count}")
        return results

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


DELIMITED = "application/vnd.ksqlapi.delimited.v1"
PORTION = 1 << 16
WAITING = 1_000
"""Maximum number of lines read ahead of the consumer; beyond it, the server sees a slow client."""


class RemotePush(Push):
    """A push query that ends when its connection is closed."""

    def __init__(self, http_: Http, body: Mapping[str, Any]) -> None:
        self._url = http_.url
        self._answer = http_.open("/query-stream", body, DELIMITED)
        try:
            header = json.loads(self._answer.response.readline())
            self.query_id = str(header.get("queryId") or "")
            self.columns = _columns(header)
        except (OSError, http.client.HTTPException) as error:
            self._answer.close()
            raise NoServer(self._url, str(error) or type(error).__name__) from error
        except MALFORMED as error:
            self._answer.close()
            raise StrangeResponse(self._url, "it is not a push query") from error
        self._lines: queue.Queue[bytes | PotokError | None] = queue.Queue(WAITING)
        self._closed = threading.Event()
        threading.Thread(target=self._read, name="potok-push", daemon=True).start()

    def next(self, timeout_s: float | None = None) -> Sequence[Row] | None:
        found: list[Row] = []
        try:
            line = self._lines.get(timeout=timeout_s)
            while True:
                if line is None or isinstance(line, PotokError):
                    if found:
                        self._again(line)
                        return found
                    self._again(None)
                    if line is not None:
                        raise line
                    return None
                found += self._row(line)
                line = self._lines.get_nowait()
        except queue.Empty:
            return found

    def _again(self, end: PotokError | None) -> None:
        """Put the end marker back, so that the next call finds it, too."""
        self._lines.put(end)

    def _row(self, line: bytes) -> list[Row]:
        try:
            response = json.loads(line, parse_float=Decimal)
            if isinstance(response, list):
                return [row_of(response, self.columns)]
        except MALFORMED as error:
            raise StrangeResponse(self._url, "it has a line that is not a row of the query") from error
        if isinstance(response, dict) and "message" in response:
            raise refusal_of_ksql(response)
        return []

    def _read(self) -> None:
        end: PotokError | None = None
        try:
            # Not `readline`, which takes a broken connection for the end.
            rest = b""
            while not self._closed.is_set() and (data := self._answer.response.read1(PORTION)):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._hand_over(line)
            # A response of known length, or without one, ends without an exception where it is cut off.
            if not self._closed.is_set() and (rest.strip() or self._answer.response.length):
                end = StrangeResponse(self._url, CUT_OFF)
        except (OSError, http.client.HTTPException, ValueError):
            end = None if self._closed.is_set() else NoServer(self._url, "the connection was lost")
        finally:
            self._answer.close()
        self._hand_over(end)

    def _hand_over(self, line: bytes | PotokError | None) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._lines.put(line, timeout=0.2)
                return

    def close(self) -> None:
        self._closed.set()
        self._answer.interrupt()


def _columns(header: Mapping[str, Any]) -> tuple[ResultColumn, ...]:
    keys = frozenset(header.get("keyColumns") or ())
    named = zip(header["columnNames"], header["columnTypes"], strict=True)
    return tuple(ResultColumn(str(name), type_named(type_), name in keys) for name, type_ in named)


def row_of(values: Sequence[Any], columns: Sequence[ResultColumn]) -> Row:
    """Convert a row from JSON. Numbers with a decimal point were parsed as decimals; other types convert them."""
    return tuple(
        float(value) if isinstance(value, Decimal) and column.type == DOUBLE else value
        for value, column in zip(values, columns, strict=True)
    )


def type_named(name: str) -> pa.DataType:
    """Return the type for a name that a server sends; an unknown type is shown as text."""
    try:
        cast = parse_expression(f"CAST(NULL AS {name})")
        assert isinstance(cast, ast.Cast)
        return resolve(cast.type, {})
    except PotokError:
        return VARCHAR
