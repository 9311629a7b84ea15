"""Errors as answers: problem+json for our own API, and the form that clients of ksqlDB read."""

from __future__ import annotations

import re
from typing import Any

import orjson
from starlette.responses import Response

from potok.errors import PotokError, SetupError
from potok.log.errors import DiskFull, KeylessRecord, MarkChanged, RecordTooLarge, TopicNotFound
from potok.serving.errors import ServingError
from potok.sql.errors import SqlError
from potok.statements.errors import CatalogueMoved, NotRunningHere, UnknownQuery
from potok.views.tables import NoSuchQuery, NoSuchTable

PROBLEM = "application/problem+json"
KSQL_JSON = "application/json"

BAD_REQUEST, BAD_STATEMENT, QUERY_ENDPOINT = 40000, 40001, 40002

_STATUSES: tuple[tuple[type[PotokError], int], ...] = (
    (UnknownQuery, 404),
    (SqlError, 400),
    (TopicNotFound, 404),
    (NoSuchQuery, 404),
    (NoSuchTable, 404),
    (KeylessRecord, 400),
    (RecordTooLarge, 413),
    (CatalogueMoved, 409),
    (MarkChanged, 409),
    (NotRunningHere, 503),
    (SetupError, 503),
    (DiskFull, 507),
)


def status_of(error: PotokError) -> int:
    if isinstance(error, ServingError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_of(error: PotokError) -> dict[str, Any]:
    """RFC 9457, with the hint and, of a statement, the place."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    told: dict[str, Any] = {
        "type": f"urn:potok:{words.replace(' ', '-')}",
        "title": words,
        "status": status_of(error),
        "detail": error.message,
    }
    if error.hint:
        told["hint"] = error.hint
    if isinstance(error, SqlError) and error.place is not None:
        told |= {"line": error.place.line, "column": error.place.column, "length": error.place.length}
        told["marked"] = str(error)
    return told


def problem_response(error: PotokError) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="potok"'} if status_of(error) == 401 else None
    return Response(orjson.dumps(problem_of(error)), status_of(error), headers, media_type=PROBLEM)


def ksql_error(
    error: PotokError, *, statement: str | None = None, entities: list[Any] | None = None, code: int | None = None
) -> dict[str, Any]:
    """An error as ksqlDB tells it; with the statement that failed, and what those before it gave."""
    told: dict[str, Any] = {
        "@type": "generic_error" if statement is None else "statement_error",
        "error_code": code or code_of(error),
        "message": str(error),
        "stackTrace": [],
    }
    if statement is not None:
        told |= {"statementText": statement, "entities": entities or []}
    return told


def code_of(error: PotokError) -> int:
    return BAD_STATEMENT if isinstance(error, SqlError) else status_of(error) * 100


def ksql_response(error: PotokError, **more: Any) -> Response:
    status = 400 if isinstance(error, SqlError) else status_of(error)
    headers = {"WWW-Authenticate": 'Basic realm="potok"'} if status == 401 else None
    return Response(orjson.dumps(ksql_error(error, **more)), status, headers, media_type=KSQL_JSON)
