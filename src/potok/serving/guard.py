"""What every request passes first: who sends it, from where, and how much."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from potok.errors import PotokError
from potok.serving.errors import BadRequest, BodyTooLarge, ForeignPage
from potok.serving.limits import Limits
from potok.serving.problems import ksql_response, problem_response
from potok.serving.tokens import Caller, Tokens

CALLER = "potok.caller"
OPEN_PATHS = frozenset({"/healthcheck", "/info"})
"""Whoever looks after a server asks these, without a token."""

STREAMED = "/inserts-stream"
"""Its body has no end; each of its lines is measured there."""

KSQL_PATHS = frozenset(
    {"/ksql", "/query", "/query-stream", "/inserts-stream", "/close-query", "/clusterStatus", "/info", "/healthcheck"}
)


class Guard:
    """Lets requests pass that may. Their sender stands in the scope, for those who know what a request needs."""

    def __init__(self, app: ASGIApp, tokens: Tokens, limits: Limits, origins: Collection[str] = ()) -> None:
        self._app, self._tokens, self._limits = app, tokens, limits
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            self._check_page(headers, origin)
            if scope["type"] == "http" and scope["method"] == "OPTIONS" and origin is not None:
                await _preflight(origin)(scope, receive, send)
                return
            open_to_all = scope["path"] in OPEN_PATHS
            scope[CALLER] = None if open_to_all else self._tokens.caller(headers.get("authorization"))
            receive = self._measured(scope, headers, receive)
        except PotokError as error:
            await self._refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send if origin is None else _allowing(origin, send))

    def _check_page(self, headers: Headers, origin: str | None) -> None:
        """Where no token is asked for, a browser on this machine must not be talked into speaking for another site."""
        host = headers.get("host", "")
        if not self._tokens and not is_loopback(_split(f"//{host}").hostname or ""):
            raise ForeignPage(f'the address "{host}"')
        if origin is None or origin.lower() in self._origins:
            return
        if _split(origin).netloc.lower() != host.lower():
            raise ForeignPage(f"pages of {origin}")

    def _measured(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        limit = self._limits.body_bytes
        if scope["type"] != "http" or scope["path"] == STREAMED:
            return receive
        if (declared := headers.get("content-length")) and declared.isdigit() and int(declared) > limit:
            raise BodyTooLarge(limit)
        taken, whole = 0, False

        async def measured() -> Message:
            nonlocal taken, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout(self._limits.seconds):
                    message = await receive()
            except TimeoutError:
                waited = f"the body did not come within {self._limits.seconds:g} seconds"
                raise BadRequest(waited, hint="send it at once, or rows one by one to /inserts-stream") from None
            whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > limit:
                raise BodyTooLarge(limit)
            return message

        return measured

    async def _refuse(self, error: PotokError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
            return
        answer = ksql_response if scope["path"] in KSQL_PATHS else problem_response
        await answer(error)(scope, receive, send)


def caller_of(scope: Scope) -> Caller:
    caller = scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


def _split(address: str) -> SplitResult:
    """The parts of an address; none of what is no address."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _preflight(origin: str) -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        },
    )


def _allowing(origin: str, send: Send) -> Send:
    async def allowing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers.add_vary_header("Origin")
        await send(message)

    return allowing
