"""Error responses: problem+json for Potok's API, and the format of ksqlDB."""

from __future__ import annotations

import re
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from potok.errors import PotokError, SetupError
from potok.log.errors import DiskFull, KeylessRecord, MetadataConflict, RecordTooLarge, TopicNotFound
from potok.patterns.sagas.control import UnknownAction
from potok.server.errors import Busy, ServingError
from potok.server.ksql.json_rows import dump
from potok.snapshots.patterns.saga_instances import (
    ActionRefused,
    NoNextPage,
    NoSuchInstance,
    NoSuchSaga,
    SeveralSagas,
    UnknownState,
)
from potok.snapshots.position_wait import PositionNotReachedError
from potok.snapshots.rows.key_text import NotAKey
from potok.snapshots.rows.versions import BeforeHistory, NoHistory
from potok.snapshots.table_search import TooManyVersions
from potok.snapshots.table_view import NotWindowed
from potok.snapshots.tables import NoSuchQuery, NoSuchTable
from potok.sql.budget import TimeIsOver, TooLarge
from potok.sql.errors import SqlError
from potok.statements.errors import CannotCompare, CatalogChanged, NotRunningHere, UnknownQuery
from potok.statements.push.tail import TooManyWait

PROBLEM = "application/problem+json"
KSQL_JSON = "application/json"

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Identifies the kind of error: `urn:potok:unknown-name`."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong."},
        "hint": {"type": "string", "description": "What to do instead."},
        "line": {"type": "integer", "description": "Of a statement; from 1 on."},
        "column": {"type": "integer", "description": "Of a statement; from 1 on."},
        "length": {"type": "integer", "description": "Length of the marked part of the line."},
        "marked": {"type": "string", "description": "The line with the error marked."},
    },
}


def problem_described(description: str, **properties: Any) -> dict[str, Any]:
    """Describe a problem for OpenAPI, with additional fields."""
    schema = {**_PROBLEM, "properties": {**_PROBLEM["properties"], **properties}}  # type: ignore[dict-item]
    return {"description": description, "content": {PROBLEM: {"schema": schema}}}


BAD: dict[int | str, dict[str, Any]] = {400: problem_described("An invalid parameter or body.")}
NOT_THERE: dict[int | str, dict[str, Any]] = {404: problem_described("The name or the key does not exist.")}
OTHERS: dict[int | str, dict[str, Any]] = {
    "default": problem_described(
        "Another problem: 401 and 403 without the required token, 413 for a body that is too large, 503 if the "
        "response takes too long, or if the server is busy, with `Retry-After`."
    )
}

KSQL_PATHS = frozenset(
    {"/ksql", "/query", "/query-stream", "/inserts-stream", "/close-query", "/clusterStatus", "/info", "/healthcheck"}
)
STATUS = "/status"

BAD_REQUEST, BAD_STATEMENT, QUERY_ENDPOINT = 40000, 40001, 40002

_STATUSES: tuple[tuple[type[PotokError], int], ...] = (
    (UnknownQuery, 404),
    (SqlError, 400),
    (TooLarge, 400),
    (TimeIsOver, 503),
    (TooManyWait, 503),
    (PositionNotReachedError, 504),
    (TopicNotFound, 404),
    (NoSuchQuery, 404),
    (NoSuchTable, 404),
    (NotAKey, 400),
    (NotWindowed, 400),
    (NoHistory, 400),
    (BeforeHistory, 400),
    (TooManyVersions, 400),
    (NoSuchSaga, 404),
    (NoSuchInstance, 404),
    (UnknownAction, 400),
    (UnknownState, 400),
    (NoNextPage, 400),
    (ActionRefused, 409),
    (SeveralSagas, 409),
    (KeylessRecord, 400),
    (RecordTooLarge, 413),
    (CannotCompare, 400),
    (CatalogChanged, 409),
    (MetadataConflict, 409),
    (NotRunningHere, 503),
    (SetupError, 503),
    (DiskFull, 507),
)


def status_of(error: PotokError) -> int:
    if isinstance(error, ServingError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_of(error: PotokError) -> dict[str, Any]:
    """Return a problem of RFC 9457 with the hint and, for a statement, the position."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    response: dict[str, Any] = {
        "type": f"urn:potok:{words.replace(' ', '-')}",
        "title": words,
        "status": status_of(error),
        "detail": error.message,
    }
    if error.hint:
        response["hint"] = error.hint
    if isinstance(error, PositionNotReachedError):
        response |= {"query": error.query, "wanted": str(error.wanted), "reached": str(error.reached)}
    if isinstance(error, SqlError) and error.location is not None:
        response |= {"line": error.location.line, "column": error.location.column, "length": error.location.length}
        response["marked"] = str(error)
    return response


def problem_response(error: PotokError, **more: Any) -> Response:
    """Return the response to a failed request, with additional fields in `more`."""
    return Response(
        dump({**problem_of(error), **more}), status_of(error), _headers(error, "Bearer"), media_type=PROBLEM
    )


def _headers(error: PotokError, scheme: str) -> dict[str, str]:
    headers = {"WWW-Authenticate": f'{scheme} realm="potok"'} if status_of(error) == 401 else {}
    if isinstance(error, ServingError) and error.retry_after_s:
        headers["Retry-After"] = str(error.retry_after_s)
    return headers


def refusal_of(error: PotokError, scope: Scope) -> Response:
    """Return the error response in the format of the requested path."""
    path = scope["path"]
    is_ksql = path in KSQL_PATHS or path == STATUS or path.startswith(f"{STATUS}/")
    return ksql_response(error) if is_ksql else problem_response(error)


async def busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to a request that exceeds the capacity of the server."""
    await refusal_of(Busy(), scope)(scope, receive, send)


def ksql_error(
    error: PotokError, *, statement: str | None = None, entities: list[Any] | None = None, code: int | None = None
) -> dict[str, Any]:
    """Return an error in the format of ksqlDB, with the failed statement and the results of those before it."""
    response: dict[str, Any] = {
        "@type": "generic_error" if statement is None else "statement_error",
        "error_code": code or code_of(error),
        "message": str(error),
        "stackTrace": [],
    }
    if statement is not None:
        response |= {"statementText": statement, "entities": entities or []}
    return response


def code_of(error: PotokError) -> int:
    return BAD_STATEMENT if isinstance(error, SqlError) else status_of(error) * 100


def ksql_response(error: PotokError, **more: Any) -> Response:
    status = 400 if isinstance(error, SqlError) else status_of(error)
    response = orjson.dumps(ksql_error(error, **more))
    return Response(response, status, _headers(error, "Basic"), media_type=KSQL_JSON)
