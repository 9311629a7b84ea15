"""Answer `GET /tables/{name}/{key}` of local tables before the router looks for a route."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from potok.errors import PotokError
from potok.server.access.guard import caller_of
from potok.server.access.tokens import READ
from potok.server.ksql.json_rows import dump
from potok.server.positions.headers import WAIT_FOR
from potok.server.problems import refusal_of
from potok.server.tables.table_reads import TableReads, no_row

TABLES = "/tables/"
CHANGES = "changes"
"""Last part of the path of a change feed; not allowed as a key."""

HELD_S = 1.0
"""Maximum age of a cached snapshot, which keeps the store from reusing its pages."""

_WAIT_FOR = WAIT_FOR.lower().encode()
_JSON = (b"content-type", b"application/json")


class QuickRows:
    """Middleware behind the guard that answers reads of single rows, and passes on all other requests."""

    def __init__(self, app: ASGIApp, reads: TableReads) -> None:
        self._app, self._reads = app, reads
        self._releasing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(TABLES):
            name, _, key = scope["path"][len(TABLES) :].partition("/")
            if key and key != CHANGES and _is_plain(scope):
                caller = caller_of(scope)
                source = self._reads.local_table(name) if caller.may_some(READ) else None
                if source is not None and caller.may(READ, source.name):
                    self._release_later()
                    try:
                        row = self._reads.local_row(source, key)
                        if row is None:
                            raise no_row(source)
                    except PotokError as error:
                        await refusal_of(error, scope)(scope, receive, send)
                        return
                    body = dump(row)
                    length = (b"content-length", b"%d" % len(body))
                    await send({"type": "http.response.start", "status": 200, "headers": [length, _JSON]})
                    await send({"type": "http.response.body", "body": body})
                    return
        await self._app(scope, receive, send)

    def _release_later(self) -> None:
        if not self._releasing:
            self._releasing = True
            asyncio.get_running_loop().call_later(HELD_S, self._release)

    def _release(self) -> None:
        self._releasing = False
        self._reads.release()


def _is_plain(scope: Scope) -> bool:
    """Return whether a request has neither parameters nor a position to wait for."""
    return not scope["query_string"] and all(name != _WAIT_FOR for name, _ in scope["headers"])


def leave_tables_alone(paths: Iterable[str]) -> bool:
    """Return whether no path of a program can match the path of a row."""
    return not any(path.startswith((TABLES, "/{")) for path in paths)
