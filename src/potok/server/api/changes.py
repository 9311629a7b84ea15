"""Streams and changes of tables as server-sent events and over WebSockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from potok.errors import PotokError
from potok.runtime.output.processing_log import make_log
from potok.server.access.guard import caller_of
from potok.server.access.held_bytes import Holding
from potok.server.access.tokens import READ
from potok.server.api.feeds import Event, Feed, positions_of
from potok.server.api.snapshot_feed import SnapshotFeed, TableFeed
from potok.server.api.tables import answer
from potok.server.context import Site, require_source, site_of
from potok.server.errors import NoChanges, TooSlow
from potok.server.inspection.live import LiveFigures
from potok.server.ksql.json_rows import dump
from potok.server.ksql.queries import reason, until_gone
from potok.server.problems import BAD, NOT_THERE, problem_of
from potok.server.pushes import QUIET_S, Follower, Written, size_of
from potok.server.sending import connection_of
from potok.server.streaming import LINGER_S, Streamed, first_of, sent
from potok.server.tables.table_reads import source_named
from potok.statements.queries.processing_log import LOG_STREAM
from potok.statements.queries.query_tables import QueryTables

router = APIRouter(tags=["changes"])

AnyFeed = Feed | SnapshotFeed[Any] | LiveFigures

EVENT_ID = Header(None, alias="Last-Event-ID", description="Resume after this event.")
SAME_ID = "The same as the header, for clients that cannot send one."
FROM = Query("now", alias="from", description="`now` or `beginning`, if no event is given.")
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "One event per record."},
    **BAD,
    **NOT_THERE,
}


@router.get("/streams", summary="The streams")
async def streams(request: Request) -> Response:
    caller = caller_of(request.scope)
    caller.require_some(READ)
    sources = site_of(request).database.catalog.sources.values()
    found = [
        {"name": source.name, "topic": source.topic, "columns": [column.name for column in source.columns]}
        for source in sorted(sources, key=lambda source: source.name)
        if not source.is_table and caller.may(READ, source.name)
    ]
    return answer({"streams": found})


@router.get("/streams/{name}", summary="Follow the records of a stream", responses=EVENTS, response_model=None)
async def stream(
    request: Request,
    name: str,
    last_event_id: str | None = EVENT_ID,
    last: str | None = Query(None, alias="last_event_id", description=SAME_ID),
    start: str = FROM,
) -> Response:
    return await _followed_source(request, name, last_event_id or last, start, is_table=False)


@router.get("/tables/{name}/changes", summary="Follow the changes of a table", responses=EVENTS, response_model=None)
async def changes(
    request: Request,
    name: str,
    last_event_id: str | None = EVENT_ID,
    last: str | None = Query(None, alias="last_event_id", description=SAME_ID),
    start: str = FROM,
) -> Response:
    """Follow the changes of a table; `row` is null if the row was deleted."""
    return await _followed_source(request, name, last_event_id or last, start, is_table=True)


async def _followed_source(request: Request, name: str, last_id: str | None, start: str, *, is_table: bool) -> Response:
    require_source(request, name)
    site = site_of(request)
    return await sse(request, lambda: _feed_of(site, name, last_id, start, is_table=is_table))


async def sse(request: Request, work: Callable[[], AnyFeed]) -> Response:
    """Send the events of a feed, which `work` opens in a thread."""
    site = site_of(request)
    feed = await _opened(site, work)
    stall_seconds = site.limits.stall_seconds
    dropped = _error_event(TooSlow(stall_seconds))
    follower, end = _followed(site, feed, request, _block)
    return _Sse(Streamed(_pieces(follower, feed.look_s), "text/event-stream", stall_seconds, end, dropped))


class _Sse(Response):
    """Response of server-sent events."""

    def __init__(self, streamed: ASGIApp) -> None:
        super().__init__()
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streamed(scope, receive, send)


def _feed_of(site: Site, name: str, last_id: str | None, start: str, *, is_table: bool) -> AnyFeed:
    database = site.database
    source = source_named(database.catalog, name, is_table=is_table)
    if not source.topic and isinstance(database, QueryTables):
        return TableFeed(database, source, site.reads, last_id, start)
    if not source.topic:
        raise NoChanges(source.name)
    if source is LOG_STREAM:
        make_log(database.broker)
    return Feed(database, source, positions_of(database, source, last_id, start))


async def _opened(site: Site, work: Callable[[], AnyFeed]) -> AnyFeed:
    site.pushes.reserve()
    try:
        feed = await site.work.answer(work)
    except BaseException:
        site.pushes.release()
        raise
    site.feeds.add(feed)
    return feed


def _followed(
    site: Site, feed: AnyFeed, connection: HTTPConnection, write: Callable[[list[Event]], Written]
) -> tuple[Follower[Written], Callable[[], None]]:
    """Reads the events of a feed for its client, encoded in a thread, and closes both."""
    holding = Holding(site.unsent, connection_of(connection.scope))

    def take() -> Written | None:
        events = feed.take()
        return None if events is None else write(events)

    follower: Follower[Written] = Follower(site.pushes.pool, take, size_of, holding)
    feed.subscription.wake = follower.wake

    def end() -> None:
        follower.close()
        if feed in site.feeds:
            site.feeds.remove(feed)
            site.pushes.release()
        feed.close()

    return follower, end


async def _batches(follower: Follower[Written], look_s: float | None) -> AsyncIterator[Written]:
    quiet_s = 0.0
    while (written := await follower.next(look_s or QUIET_S)) is not None:
        quiet_s += look_s or QUIET_S
        if written:
            follower.wake()
        if written or quiet_s >= QUIET_S:
            quiet_s = 0.0
            yield written


async def _pieces(follower: Follower[bytes], look_s: float | None) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    try:
        async for block in _batches(follower, look_s):
            yield block or b":\n\n"
    except PotokError as error:
        yield _error_event(error)


def _block(events: Sequence[Event]) -> bytes:
    return b"".join(map(_render, events))


def _error_event(error: PotokError) -> bytes:
    return b"event: error\ndata: " + dump(problem_of(error)) + b"\n\n"


def _render(event: Event) -> bytes:
    kind = f"event: {event.kind}\n".encode() if event.kind else b""
    return b"id: " + event.id.encode() + b"\n" + kind + b"data: " + event.data + b"\n\n"


@router.websocket("/streams/{name}")
async def stream_socket(socket: WebSocket, name: str) -> None:
    await _socket(socket, name, is_table=False)


@router.websocket("/tables/{name}/changes")
async def changes_socket(socket: WebSocket, name: str) -> None:
    await _socket(socket, name, is_table=True)


async def _socket(socket: WebSocket, name: str, *, is_table: bool) -> None:
    """Send messages `{"id": ..., "data": {...}}`; a gap has `event` as well."""
    await socket.accept()
    site, asked = site_of(socket), socket.query_params
    try:
        require_source(socket, name)
        last_id = socket.headers.get("last-event-id") or asked.get("last_event_id")
        start = asked.get("from", "now")
        feed = await _opened(site, lambda: _feed_of(site, name, last_id, start, is_table=is_table))
    except PotokError as error:
        await socket.send_text(dump({"error": problem_of(error)}).decode())
        await socket.close(1008, reason(error))
        return
    follower, end = _followed(site, feed, socket, _texts)
    try:
        await first_of(_send_all(socket, follower, feed.look_s, end, site.limits.stall_seconds), until_gone(socket))
    finally:
        end()


def _texts(events: Sequence[Event]) -> list[str]:
    return [_text(event) for event in events]


def _text(event: Event) -> str:
    kind = f'"event":"{event.kind}",' if event.kind else ""
    return f'{{"id":"{event.id}",{kind}"data":{event.data.decode()}}}'


async def _send_all(
    socket: WebSocket,
    follower: Follower[list[str]],
    look_s: float | None,
    end: Callable[[], None],
    stall_seconds: float,
) -> None:
    try:
        async for texts in _batches(follower, look_s):
            for text in texts:
                if not await sent(socket.send_text(text), stall_seconds):
                    end()
                    await sent(socket.close(1008, reason(TooSlow(stall_seconds))), LINGER_S)
                    return
    except PotokError as error:
        await socket.send_text(dump({"error": problem_of(error)}).decode())
        await socket.close(1011, reason(error))
        return
    await socket.close(1001, "the server is shutting down")
