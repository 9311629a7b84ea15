"""The headers of positions: `Potok-Position` of a write, and `Potok-Wait-For` of a read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response

from potok.records.position import BadPosition, Position
from potok.server.context import site_of
from potok.server.errors import BadRequest
from potok.server.problems import problem_described

POSITION, WAIT_FOR, PREFER = "Potok-Position", "Potok-Wait-For", "Prefer"

DEFAULT_WAIT_S = 10.0
"""How long a read waits for a position unless it says so: `Prefer: wait=30`."""

_WAIT = re.compile(
    r"(?:^|[,;])\s*wait\s*=\s*\"?([0-9]{1,6}(?:\.[0-9]{1,3})?)\"?\s*(?=$|[,;])", re.ASCII | re.IGNORECASE
)

WAITS: dict[int | str, dict[str, Any]] = {
    504: problem_described(
        "The position of Potok-Wait-For was not reached in time.",
        query={"type": "string", "description": "The query that is behind."},
        wanted={"type": "string", "description": "The position that it has to reach."},
        reached={"type": "string", "description": "The position that it has reached."},
    )
}

WAITS_FOR: list[dict[str, Any]] = [
    {
        "name": WAIT_FOR,
        "in": "header",
        "description": "Wait until the tables have committed past the Potok-Position of a write.",
        "schema": {"type": "string"},
    },
    {
        "name": PREFER,
        "in": "header",
        "description": f"`wait=30`: how many seconds to wait; {DEFAULT_WAIT_S:g} by default.",
        "schema": {"type": "string"},
    },
]


def waits_for(connection: HTTPConnection) -> bool:
    return WAIT_FOR in connection.headers


async def wait_as_asked(connection: HTTPConnection, queries: Iterable[str] | Callable[[], Iterable[str]]) -> None:
    """Wait until queries have committed past the position in a request, if it has one.

    `queries` may be a function, which is called in a thread if it is needed.
    """
    if not waits_for(connection):
        return
    site = site_of(connection)
    # Several headers are one list, as in any list of HTTP.
    text = ",".join(connection.headers.getlist(WAIT_FOR))
    try:
        position = Position.parse(text)
    except BadPosition as error:
        raise BadRequest(error.message, hint=error.hint) from error
    timeout_s = wait_of(connection, DEFAULT_WAIT_S)
    names = await site.work.answer(queries) if callable(queries) else queries
    found = sorted({name for name in names if name})
    if found:
        await site.waits.until(found, position, timeout_s)


def wait_of(connection: HTTPConnection, default_s: float) -> float:
    """Return how long a request prefers to wait, at most as long as the server allows."""
    found = _WAIT.search(",".join(connection.headers.getlist(PREFER)))
    seconds = default_s if found is None else float(found[1])
    return min(seconds, site_of(connection).limits.seconds)


def with_position(response: Response, position: Position | str | None) -> Response:
    """Add the position of a write to its response."""
    if position:
        response.headers[POSITION] = str(position)
    return response


def position_of_all(written: Iterable[str]) -> Position:
    """Return the position after all of these."""
    return reduce(or_, (Position.parse(text) for text in written if text), Position())
