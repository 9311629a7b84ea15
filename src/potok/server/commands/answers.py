"""Responses to commands: the result with its version as `ETag`, or where to ask for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from potok.patterns.aggregates.client import Found, Sent
from potok.server.commands.ids import id_of, rendered
from potok.server.ksql.json_rows import dump
from potok.server.positions.headers import POSITION
from potok.server.problems import PROBLEM

STATUSES: Mapping[str, int] = {"accepted": 200, "rejected": 409, "wrong_version": 412, "invalid": 422, "failed": 500}

_HINTS: Mapping[str, str] = {
    "rejected": "the aggregate does not allow it in its state; nothing was changed",
    "wrong_version": "read the aggregate again, and send the command with its version",
    "invalid": "correct the command; GET /openapi.json describes its fields",
    "failed": "the program raised an error; nothing was changed",
}


def sent_response(sent: Sent) -> Response:
    """Return the response for a command whose result is not there yet: 202 with its id."""
    location = f"/commands/{id_of(sent)}"
    headers = {"Location": location} | ({POSITION: str(sent.position)} if sent.position else {})
    return Response(dump({**rendered(sent), "status": "sent"}), 202, headers, media_type="application/json")


def result_response(sent: Sent, found: Found, *, is_status: bool = False) -> Response:
    """Return the response for a result; a command that was not accepted is a problem, unless its status was asked."""
    result = found.result
    status = 200 if is_status else STATUSES.get(result.status, 500)
    headers = {"ETag": f'"{result.version}"', POSITION: str(sent.position | found.position)}
    body: dict[str, Any] = {**rendered(sent), **asdict(result), "repeated": found.repeated}
    if status == 200:
        return Response(dump(body), status, headers, media_type="application/json")
    words = re.sub("_", " ", result.status)
    problem = {
        "type": f"urn:potok:command-{words.replace(' ', '-')}",
        "title": f"command {words}",
        "status": status,
        "detail": result.reason or words,
        "hint": _HINTS.get(result.status, ""),
        "command": {**body},
    }
    return Response(dump(problem), status, headers, media_type=PROBLEM)
