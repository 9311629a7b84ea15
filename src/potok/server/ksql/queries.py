"""ksqlDB's REST API, queries: /query, /query-stream, /close-query, /ws/query."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from potok.errors import PotokError
from potok.server.access.guard import answer_of, caller_of
from potok.server.access.held_bytes import Holding
from potok.server.access.rights import allow
from potok.server.access.tokens import READ
from potok.server.access.work import properties_of
from potok.server.answers import AnswerSize
from potok.server.context import Site, json_body, json_object, object_of, site_of, text_of
from potok.server.errors import BadRequest, Busy, TooSlow
from potok.server.ksql.json_rows import RowWriter, dump, schema_tree
from potok.server.ksql.row_formats import KsqlRows, RowFormat, chosen
from potok.server.positions.headers import wait_as_asked
from potok.server.positions.statements import read_by
from potok.server.problems import ksql_response
from potok.server.pushes import OpenPush, Write, Written, size_of
from potok.server.sending import connection_of
from potok.server.streaming import LINGER_S, Streamed, first_of, sent
from potok.sql.budget import in_time
from potok.sql.syntax import ast
from potok.statements.results import Push, ResultColumn, Rows

T = TypeVar("T", Response, list[str])

TRY_AGAIN_LATER = 1013
"""WebSocket close code of a busy server."""

LIMIT_REACHED, COMPLETED = "Limit Reached", "Query Completed"


async def query(request: Request) -> ASGIApp:
    return await _answer(request, KsqlRows())


async def query_stream(request: Request) -> ASGIApp:
    return await _answer(request, chosen(request.headers.get("accept", "")))


async def _answer(request: Request, form: RowFormat) -> ASGIApp:
    site, text = site_of(request), ""

    def whole(found: Rows) -> Response:
        size, array = AnswerSize(site.limits.answer_bytes, answer_of(request.scope)), RowWriter(found.columns).array
        # ksqlDB names pull queries as well, in the form of /query.
        query_id = f"query_{secrets.token_hex(8)}" if isinstance(form, KsqlRows) else None
        written = form.whole(query_id, found.columns, size.each(map(array, found.rows)))
        return Response(written, media_type=form.media_type)

    def part(columns: Sequence[ResultColumn]) -> Write[bytes]:
        array = RowWriter(columns).array
        return lambda rows: b"".join(form.row(array(row)) for row in in_time(rows))

    try:
        body = await json_body(request)
        text = text_of(body, "sql", "ksql")
        opened = await open_query(site, request, body, text, whole, part)
    except PotokError as error:
        return ksql_response(error, statement=text) if text else ksql_response(error)
    if isinstance(opened, Response):
        return opened
    stall_seconds = site.limits.stall_seconds
    dropped = form.failed(TooSlow(stall_seconds))
    end = partial(site.pushes.end, opened)
    return Streamed(_pieces(opened, form), form.media_type, stall_seconds, end, dropped)


async def open_query(
    site: Site,
    request: Request | WebSocket,
    body: Mapping[str, Any],
    text: str,
    whole: Callable[[Rows], T],
    part: Callable[[Sequence[ResultColumn]], Write[Written]],
) -> T | OpenPush[Written]:
    """Return the rows of a pull query, encoded by `whole` in a thread, or a started push query whose rows are encoded
    by the function that `part` returns for its columns."""
    properties = properties_of(body.get("properties", body.get("streamsProperties")))
    variables = object_of(body, "sessionVariables")
    parsed = await site.work.query(text, variables)
    allow([parsed], caller_of(request.scope), site.database)
    statement = parsed.statement
    session = site.work.session(variables)
    if isinstance(statement, ast.Query) and statement.query.emit is None:
        await wait_as_asked(request, lambda: read_by(site.database, [parsed], properties))

        def written() -> T:
            found = site.work.run(session, parsed, properties)
            assert isinstance(found, Rows)
            return whole(found)

        return await site.work.answer(written)
    site.pushes.reserve()
    try:
        push = await site.work.change(lambda: site.work.run(session, parsed, properties))
        assert isinstance(push, Push)
        return site.pushes.add(push, part(push.columns), Holding(site.unsent, connection_of(request.scope)))
    except BaseException:
        site.pushes.release()
        raise


async def _pieces(opened: OpenPush[bytes], form: RowFormat) -> AsyncIterator[bytes]:
    yield form.header(opened.query_id, opened.columns)
    try:
        async for written in opened.batches():
            if written or form.idle:
                yield written or form.idle
    except PotokError as error:
        yield form.failed(error)
        return
    yield form.ended(COMPLETED if opened.was_closed else LIMIT_REACHED)


async def close_query(request: Request) -> Response:
    try:
        body = await json_body(request)
        caller_of(request.scope).require_some(READ)
        query_id = body.get("queryId")
        if not isinstance(query_id, str) or not site_of(request).pushes.close(query_id):
            hint = 'send {"queryId": "..."} with the id from the header of the response'
            raise BadRequest(f'there is no push query "{query_id}"', hint=hint)
    except PotokError as error:
        return ksql_response(error)
    return Response(b"{}", media_type="application/json")


async def ws_query(socket: WebSocket) -> None:
    """Execute the request in the parameter `request`; the first message is the schema, every other one a row."""
    await socket.accept()
    site, holding = site_of(socket), answer_of(socket.scope)

    def whole(found: Rows) -> list[str]:
        size = AnswerSize(site.limits.answer_bytes, holding)
        return [_schema_text(found.columns), *(data.decode() for data in size.each(_messages(found)))]

    def part(columns: Sequence[ResultColumn]) -> Write[list[str]]:
        return lambda rows: [data.decode() for data in in_time(_messages(Rows("query", tuple(columns), tuple(rows))))]

    try:
        body = json_object(socket.query_params.get("request", ""))
        opened = await open_query(site, socket, body, text_of(body, "ksql", "sql"), whole, part)
        if isinstance(opened, list):
            holding.take(max(size_of(opened) - holding.size, 0))
    except PotokError as error:
        await socket.close(TRY_AGAIN_LATER if isinstance(error, Busy) else 1003, reason(error))
        return
    stall_seconds = site.limits.stall_seconds
    if isinstance(opened, list):
        try:
            await first_of(_send_texts(socket, opened, holding, stall_seconds), until_gone(socket))
        finally:
            holding.give_back()
        return
    end = partial(site.pushes.end, opened)
    try:
        await first_of(_send_rows(socket, opened, stall_seconds, end), until_gone(socket))
    finally:
        end()


def _schema_text(columns: Sequence[ResultColumn]) -> str:
    return dump([{"name": column.name, "schema": schema_tree(column.type)} for column in columns]).decode()


def _messages(found: Rows) -> Iterator[bytes]:
    array = RowWriter(found.columns).array
    return (b'{"row":{"columns":' + array(row) + b"}}" for row in found.rows)


async def _send_texts(socket: WebSocket, texts: list[str], holding: Holding, stall_seconds: float) -> None:
    texts.reverse()
    while texts:
        text = texts.pop()
        if not await sent(socket.send_text(text), stall_seconds):
            await sent(socket.close(1008, reason(TooSlow(stall_seconds))), LINGER_S)
            return
        holding.give_back(len(text))
    await socket.close(1000, "done")


async def _send_rows(
    socket: WebSocket, opened: OpenPush[list[str]], stall_seconds: float, on_stall: Callable[[], object]
) -> None:
    await socket.send_text(_schema_text(opened.columns))
    try:
        async for texts in opened.batches():
            for text in texts:
                if not await sent(socket.send_text(text), stall_seconds):
                    on_stall()
                    await sent(socket.close(1008, reason(TooSlow(stall_seconds))), LINGER_S)
                    return
    except PotokError as error:
        await socket.close(TRY_AGAIN_LATER if isinstance(error, Busy) else 1011, reason(error))
        return
    await socket.close(1000, "done")


async def until_gone(socket: WebSocket) -> None:
    try:
        while True:
            await socket.receive_text()
    except (WebSocketDisconnect, RuntimeError):
        return


def reason(error: PotokError) -> str:
    """Truncate a reason to the size of a WebSocket close frame."""
    return error.message.encode()[:120].decode(errors="ignore")


ROUTES = [
    Route("/query", query, methods=["POST"]),
    Route("/query-stream", query_stream, methods=["POST"]),
    Route("/close-query", close_query, methods=["POST"]),
    WebSocketRoute("/ws/query", ws_query),
]
