"""The shortest way from a request to a row: `GET /tables/{name}/{key}` answered before any route is looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from potok.serving.guard import caller_of
from potok.serving.near_rows import Far, NearRows
from potok.serving.problems import problem_response
from potok.serving.table_reads import no_row
from potok.serving.tokens import READ

TABLES = "/tables/"
CHANGES = "changes"
"""The last part of the path of a feed, which no key may have."""

HELD_S = 1.0
"""For so long a cut is kept at most: it keeps pages of the state from being used again."""

_JSON = (b"content-type", b"application/json")


class QuickRows:
    """Answers what it can, behind the guard, and hands everything else on as it came."""

    def __init__(self, app: ASGIApp, rows: NearRows) -> None:
        self._app, self._rows = app, rows
        self._letting_go = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(TABLES):
            name, _, key = scope["path"][len(TABLES) :].partition("/")
            if key and key != CHANGES and not scope["query_string"] and caller_of(scope).may(READ):
                try:
                    source, row = self._rows.find(name, key)
                except Far:
                    pass
                else:
                    self._let_go_later()
                    if row is None:
                        await problem_response(no_row(source))(scope, receive, send)
                    else:
                        length = (b"content-length", b"%d" % len(row))
                        await send({"type": "http.response.start", "status": 200, "headers": [length, _JSON]})
                        await send({"type": "http.response.body", "body": row})
                    return
        await self._app(scope, receive, send)

    def _let_go_later(self) -> None:
        if not self._letting_go:
            self._letting_go = True
            asyncio.get_running_loop().call_later(HELD_S, self._let_go)

    def _let_go(self) -> None:
        self._letting_go = False
        self._rows.release()


def leave_tables_alone(paths: Iterable[str]) -> bool:
    """Whether none of these paths of a program could be meant by the path of a row."""
    return not any(path.startswith((TABLES, "/{")) for path in paths)
