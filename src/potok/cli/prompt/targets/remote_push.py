"""Read a push query of a server row by row."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.cli.prompt.targets.http import CUT_OFF, MALFORMED, Http, NoServer, StrangeResponse, refusal_of_ksql
from potok.errors import PotokError
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.syntax.type_names import resolve
from potok.sql.types import DOUBLE, VARCHAR
from potok.statements.results import Push, ResultColumn, Row

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
