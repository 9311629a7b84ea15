"""ksqlDB's REST API, streaming inserts: /inserts-stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from potok.errors import PotokError
from potok.server.access.audit import TARGET
from potok.server.access.guard import body_of, caller_of
from potok.server.access.held_bytes import Holding
from potok.server.access.tokens import WRITE
from potok.server.context import Site, json_object, site_of
from potok.server.errors import BadRequest, BodyTooLarge
from potok.server.ksql.json_rows import dump
from potok.server.ksql.row_formats import DELIMITED, JSON
from potok.server.problems import BAD_REQUEST, BAD_STATEMENT, ksql_error, ksql_response
from potok.sql.catalog import Source
from potok.sql.types import quoted
from potok.statements.records.inserts import insert_rows, writable

Ack = dict[str, Any]


async def inserts_stream(request: Request) -> ASGIApp:
    """Insert rows: the first line names the stream, the others are rows, acknowledged when durable."""
    site = site_of(request)
    lines = _lines(request, site.limits.body_bytes, body_of(request.scope))
    try:
        caller_of(request.scope).require_some(WRITE)
        first: list[bytes] = await anext(lines, [])
        if not first:
            raise BadRequest("the body is empty", hint='start with a line {"target": "a_stream"}')
        source = _target(request, site, first[0])
    except PotokError as error:
        return ksql_response(error)
    return _Inserts(site, source, first[1:], lines, as_array=JSON in request.headers.get("accept", ""))


def _target(request: Request, site: Site, line: bytes) -> Source:
    name = json_object(line).get("target")
    if not isinstance(name, str):
        raise BadRequest('"target" is missing', hint='start with a line {"target": "a_stream"}')
    catalog = site.database.catalog
    plain = name.strip("`")
    folded = plain if name != plain or plain in catalog.sources else plain.upper()
    caller_of(request.scope).require(WRITE, folded)
    request.scope[TARGET] = folded
    return writable(site.database, folded, None)


async def _lines(request: Request, most: int, holding: Holding) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines of each piece that arrives. They count as held until the next ones are requested, and so
    does an incomplete line."""
    rest = bytearray()
    try:
        async for piece in request.stream():
            holding.take(len(piece))
            searched = len(rest)
            rest += piece
            end = rest.rfind(b"\n", searched)
            whole = bytes(rest[: max(end, 0)]).split(b"\n")
            del rest[: end + 1]
            if len(rest) > most or any(len(line) > most for line in whole):
                raise BodyTooLarge(most)
            found = [line for line in whole if line.strip()]
            if found:
                yield found
            holding.give_back(end + 1)
    except ClientDisconnect:
        return
    if rest.strip():
        yield [bytes(rest)]


class _Inserts:
    """Inserts and acknowledges rows while more are arriving."""

    def __init__(
        self, site: Site, source: Source, started: list[bytes], lines: AsyncIterator[list[bytes]], *, as_array: bool
    ) -> None:
        self._site, self._source, self._started, self._lines = site, source, started, lines
        self._as_array, self._seq, self._written = as_array, 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        media_type = JSON if self._as_array else DELIMITED
        headers = [(b"content-type", media_type.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for acks in self._acks():
            await send({"type": "http.response.body", "body": self._render(acks), "more_body": True})
        end = b"" if not self._as_array else b"]" if self._written else b"[]"
        await send({"type": "http.response.body", "body": end})

    async def _acks(self) -> AsyncIterator[list[Ack]]:
        try:
            if self._started:
                yield await self._insert(self._started)
            async for lines in self._lines:
                yield await self._insert(lines)
        except PotokError as error:
            yield [{**ksql_error(error), "status": "error", "seq": self._seq}]

    async def _insert(self, lines: Sequence[bytes]) -> list[Ack]:
        first, self._seq = self._seq, self._seq + len(lines)
        acks: list[Ack] = [{"status": "ok", "seq": first + number} for number in range(len(lines))]
        rows: list[tuple[int, dict[str, Any]]] = []
        for number, line in enumerate(lines):
            row = _row(line)
            if row is None:
                acks[number] = _refused(first + number, BAD_REQUEST, "Invalid JSON in inserts stream")
            else:
                rows.append((number, row))
        database, source = self._site.database, self._source
        errors = await self._site.work.answer(lambda: insert_rows(database, source, [row for _, row in rows]))
        for index, why in errors.items():
            number = rows[index][0]
            message = f"{quoted(source.name)}: {why}"
            acks[number] = _refused(first + number, BAD_STATEMENT, message)
        return acks

    def _render(self, acks: Sequence[Ack]) -> bytes:
        if not self._as_array:
            return b"".join(dump(ack) + b"\n" for ack in acks)
        start = b"," if self._written else b"["
        self._written += len(acks)
        return start + b",".join(dump(ack) for ack in acks)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def _refused(seq: int, code: int, message: str) -> Ack:
    return {"@type": "generic_error", "status": "error", "seq": seq, "error_code": code, "message": message}


ROUTES = [Route("/inserts-stream", inserts_stream, methods=["POST"])]
