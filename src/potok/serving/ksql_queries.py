"""ksqlDB's REST API, queries: /query, /query-stream, /close-query, /ws/query."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from potok.errors import PotokError
from potok.serving.errors import BadRequest, TooSlow
from potok.serving.guard import caller_of
from potok.serving.json_rows import RowWriter, dump, schema_tree
from potok.serving.problems import ksql_response
from potok.serving.pushes import OpenPush
from potok.serving.row_formats import KsqlRows, RowFormat, chosen
from potok.serving.site import Site, json_body, json_object, object_of, site_of, text_of
from potok.serving.streaming import LINGER_S, Streamed, first_of, sent
from potok.serving.tokens import READ
from potok.serving.work import allow, properties_of
from potok.sql.budget import in_time
from potok.sql.syntax import ast
from potok.statements.results import Push, Rows

FEW_ROWS = 100

LIMIT_REACHED, COMPLETED = "Limit Reached", "Query Completed"


async def query(request: Request) -> ASGIApp:
    return await _answer(request, KsqlRows())


async def query_stream(request: Request) -> ASGIApp:
    return await _answer(request, chosen(request.headers.get("accept", "")))


async def _answer(request: Request, form: RowFormat) -> ASGIApp:
    site, text = site_of(request), ""
    try:
        body = await json_body(request)
        text = text_of(body, "sql", "ksql")
        opened = await open_query(site, request, body, text)
    except PotokError as error:
        return ksql_response(error, statement=text) if text else ksql_response(error)
    if isinstance(opened, Rows):
        writer = RowWriter(opened.columns)
        # ksqlDB names pull queries as well, in the form of /query.
        query_id = f"query_{secrets.token_hex(8)}" if isinstance(form, KsqlRows) else None
        rows = opened.rows

        def whole() -> bytes:
            return form.whole(query_id, opened.columns, map(writer.array, in_time(rows)))

        # To write many rows takes long, and the event loop is for all.
        written = whole() if len(rows) <= FEW_ROWS else await site.work.answer(whole)
        return Response(written, media_type=form.media_type)
    stall_seconds = site.limits.stall_seconds
    dropped = form.failed(TooSlow(stall_seconds))
    end = partial(site.pushes.end, opened)
    return Streamed(_pieces(opened, form), form.media_type, stall_seconds, end, dropped)


async def open_query(site: Site, request: Request | WebSocket, body: Mapping[str, Any], text: str) -> Rows | OpenPush:
    """The rows of a pull query, or a push query that has begun."""
    properties = properties_of(body.get("properties", body.get("streamsProperties")))
    variables = object_of(body, "sessionVariables")
    parsed = await site.work.query(text, variables)
    allow([parsed], caller_of(request.scope))
    statement = parsed.statement
    session = site.work.session(variables)
    if isinstance(statement, ast.Query) and statement.query.emit is None:
        result = await site.work.answer(lambda: site.work.run(session, parsed, properties))
        assert isinstance(result, Rows)
        return result
    site.pushes.reserve()
    try:
        push = await site.work.change(lambda: site.work.run(session, parsed, properties))
        assert isinstance(push, Push)
        return site.pushes.add(push)
    except BaseException:
        site.pushes.release()
        raise


async def _pieces(opened: OpenPush, form: RowFormat) -> AsyncIterator[bytes]:
    writer = RowWriter(opened.columns)
    yield form.header(opened.query_id, opened.columns)
    try:
        async for rows in opened.batches():
            if rows:
                yield b"".join(form.row(writer.array(row)) for row in rows)
            elif form.idle:
                yield form.idle
    except PotokError as error:
        yield form.failed(error)
        return
    yield form.ended(COMPLETED if opened.was_closed else LIMIT_REACHED)


async def close_query(request: Request) -> Response:
    try:
        body = await json_body(request)
        caller_of(request.scope).require(READ)
        query_id = body.get("queryId")
        if not isinstance(query_id, str) or not site_of(request).pushes.close(query_id):
            hint = 'send {"queryId": "..."}, as the header of the answer has it'
            raise BadRequest(f'there is no push query "{query_id}"', hint=hint)
    except PotokError as error:
        return ksql_response(error)
    return Response(b"{}", media_type="application/json")


async def ws_query(socket: WebSocket) -> None:
    """The request stands in the parameter `request`; the first message is the schema, each other one a row."""
    await socket.accept()
    site = site_of(socket)
    try:
        body = json_object(socket.query_params.get("request", ""))
        opened = await open_query(site, socket, body, text_of(body, "ksql", "sql"))
    except PotokError as error:
        await socket.close(1003, reason(error))
        return
    if isinstance(opened, Rows):
        await socket.send_text(_schema_text(opened))
        writer = RowWriter(opened.columns)
        for row in opened.rows:
            text = f'{{"row":{{"columns":{writer.array(row).decode()}}}}}'
            if not await sent(socket.send_text(text), site.limits.stall_seconds):
                await sent(socket.close(1008, reason(TooSlow(site.limits.stall_seconds))), LINGER_S)
                return
        await socket.close(1000, "done")
        return
    end = partial(site.pushes.end, opened)
    try:
        await first_of(_send_rows(socket, opened, site.limits.stall_seconds, end), until_gone(socket))
    finally:
        end()


def _schema_text(opened: Rows | OpenPush) -> str:
    return dump([{"name": column.name, "schema": schema_tree(column.type)} for column in opened.columns]).decode()


async def _send_rows(socket: WebSocket, opened: OpenPush, stall_seconds: float, on_stall: Callable[[], object]) -> None:
    await socket.send_text(_schema_text(opened))
    writer = RowWriter(opened.columns)
    try:
        async for rows in opened.batches():
            for row in rows:
                text = f'{{"row":{{"columns":{writer.array(row).decode()}}}}}'
                if not await sent(socket.send_text(text), stall_seconds):
                    on_stall()
                    await sent(socket.close(1008, reason(TooSlow(stall_seconds))), LINGER_S)
                    return
    except PotokError as error:
        await socket.close(1011, reason(error))
        return
    await socket.close(1000, "done")


async def until_gone(socket: WebSocket) -> None:
    try:
        while True:
            await socket.receive_text()
    except (WebSocketDisconnect, RuntimeError):
        return


def reason(error: PotokError) -> str:
    """What fits into the frame that closes a WebSocket."""
    return error.message.encode()[:120].decode(errors="ignore")


ROUTES = [
    Route("/query", query, methods=["POST"]),
    Route("/query-stream", query_stream, methods=["POST"]),
    Route("/close-query", close_query, methods=["POST"]),
    WebSocketRoute("/ws/query", ws_query),
]
