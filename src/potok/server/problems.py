"""Error responses: problem+json for Potok's API, and the format of ksqlDB."""

from __future__ import annotations

import re
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from potok.errors import PotokError, SetupError
from potok.log.errors import DiskFull, KeylessRecord, MetadataConflict, RecordTooLarge, TopicNotFound
from potok.server.errors import Busy, ServingError
from potok.server.ksql.json_rows import dump
from potok.snapshots.tables import NoSuchQuery, NoSuchTable
from potok.sql.budget import TimeIsOver, TooLarge
from potok.sql.errors import SqlError
from potok.statements.errors import CatalogChanged, NotRunningHere, UnknownQuery
from potok.statements.push.tail import TooManyWait

PROBLEM = "application/problem+json"
KSQL_JSON = "application/json"

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Which error it is: `urn:potok:unknown-name`."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong."},
        "hint": {"type": "string", "description": "What to do instead."},
        "line": {"type": "integer", "description": "Of a statement; from 1 on."},
        "column": {"type": "integer", "description": "Of a statement; from 1 on."},
        "length": {"type": "integer", "description": "How much of the line is wrong."},
        "marked": {"type": "string", "description": "The line, with what is wrong in it marked."},
    },
}


def problem_described(description: str, **properties: Any) -> dict[str, Any]:
    """A problem as OpenAPI describes it, with what it has besides the usual."""
    schema = {**_PROBLEM, "properties": {**_PROBLEM["properties"], **properties}}  # type: ignore[dict-item]
    return {"description": description, "content": {PROBLEM: {"schema": schema}}}


BAD: dict[int | str, dict[str, Any]] = {400: problem_described("A parameter or a body that cannot be read.")}
NOT_THERE: dict[int | str, dict[str, Any]] = {404: problem_described("Nothing has that name, or that key.")}
OTHERS: dict[int | str, dict[str, Any]] = {
    "default": problem_described(
        "Another problem: 401 and 403 without the token that is asked for, 413 for a body that is too large, 503 where "
        "the answer takes too long, or where the server is busy: with `Retry-After` then."
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
    (TopicNotFound, 404),
    (NoSuchQuery, 404),
    (NoSuchTable, 404),
    (KeylessRecord, 400),
    (RecordTooLarge, 413),
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
    """RFC 9457, with the hint and, of a statement, the place."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    response: dict[str, Any] = {
        "type": f"urn:potok:{words.replace(' ', '-')}",
        "title": words,
        "status": status_of(error),
        "detail": error.message,
    }
    if error.hint:
        response["hint"] = error.hint
    if isinstance(error, SqlError) and error.place is not None:
        response |= {"line": error.place.line, "column": error.place.column, "length": error.place.length}
        response["marked"] = str(error)
    return response


def problem_response(error: PotokError, **more: Any) -> Response:
    """The answer to a request that failed, with `more` than the error says."""
    return Response(
        dump({**problem_of(error), **more}), status_of(error), _headers(error, "Bearer"), media_type=PROBLEM
    )


def _headers(error: PotokError, scheme: str) -> dict[str, str]:
    headers = {"WWW-Authenticate": f'{scheme} realm="potok"'} if status_of(error) == 401 else {}
    if isinstance(error, ServingError) and error.retry_after_s:
        headers["Retry-After"] = str(error.retry_after_s)
    return headers


def refusal_of(error: PotokError, scope: Scope) -> Response:
    """The same, in the form that clients of the path of a request read."""
    path = scope["path"]
    is_ksql = path in KSQL_PATHS or path == STATUS or path.startswith(f"{STATUS}/")
    return ksql_response(error) if is_ksql else problem_response(error)


async def busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that the server has no place for."""
    await refusal_of(Busy(), scope)(scope, receive, send)


def ksql_error(
    error: PotokError, *, statement: str | None = None, entities: list[Any] | None = None, code: int | None = None
) -> dict[str, Any]:
    """An error as ksqlDB tells it; with the statement that failed, and what those before it gave."""
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
