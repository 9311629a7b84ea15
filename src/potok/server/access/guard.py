"""Check every request first: its token, its origin and its size."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from potok.errors import PotokError
from potok.server.access.audit import Audit
from potok.server.access.callers import CALLER, READ, Caller
from potok.server.access.disconnects import remember_stop
from potok.server.access.held_bytes import HeldBytes, Holding
from potok.server.access.limits import Limits
from potok.server.access.rate_limits import RateLimits
from potok.server.access.tokens import Tokens
from potok.server.errors import BadRequest, BodyTooLarge, ForeignHost, ForeignPage
from potok.server.problems import refusal_of
from potok.server.sending import Sending, connection_of

log = logging.getLogger(__name__)

BODY = "potok.body"
ANSWER = "potok.answer"
OPEN_PATHS = frozenset({"/healthcheck", "/info", "/livez", "/readyz"})
"""Paths for monitoring, which need no token."""

PROBED_PATHS = OPEN_PATHS | {"/metrics"}
"""Paths that probes and Prometheus request by the address of a container, not by an allowed host."""

CONSOLE = "/console/"
"""The path of the console, whose files contain no data and need no token."""

SLOWEST = 16 << 10
"""Minimum bytes per second of a body; a slower one must arrive within the response timeout."""

_ALLOWED = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Potok-Wait-For",
    "Prefer",
)

STREAMED = "/inserts-stream"
"""A path with an endless body; each line is measured separately."""


class Guard:
    """Middleware that rejects forbidden requests and stores the sender in the scope."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        limits: Limits,
        bodies: HeldBytes,
        unsent: HeldBytes,
        origins: Collection[str] = (),
        opened: Collection[str] = (),
        hosts: Collection[str] = (),
        audit: Audit | None = None,
    ) -> None:
        self._app, self._tokens, self._limits, self._opened = app, tokens, limits, frozenset(opened)
        self._bodies, self._unsent = bodies, unsent
        self._hosts, self._audit = frozenset(map(_host_of, hosts)), audit or Audit()
        self._rates = RateLimits(limits.requests_per_second)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            self._check_page(scope, headers, origin)
            if scope["type"] == "http" and scope["method"] == "OPTIONS" and origin is not None:
                await _preflight(origin)(scope, receive, send)
                return
            open_to_all = is_open(scope["path"]) or scope["path"] in self._opened
            known = self._tokens.known if open_to_all else self._tokens.caller
            scope[CALLER] = known(headers.get("authorization"))
            if not open_to_all:
                self._rates.take(caller_of(scope))
            is_measured = scope["type"] == "http" and scope["path"] != STREAMED
            if is_measured:
                _check_length(headers, self._limits)
        except PotokError as error:
            await self._refuse(error, scope, receive, self._audit.watch(scope, send))
            return
        remember_stop(scope)
        send = self._audit.watch(scope, send)
        connection = connection_of(scope)
        scope[BODY] = holding = Holding(self._bodies, connection)
        scope[ANSWER] = answer = Holding(self._unsent, connection)
        sending = Sending(answer, scope, receive, send if origin is None else _allowing(origin, send))
        try:
            if scope["type"] == "http":
                receiving = _Body(self._limits, holding, receive).receive if is_measured else receive
                await self._app(scope, receiving, sending)
            else:
                await self._app(scope, receive, send)
        except ClientDisconnect:
            log.debug("a client disconnected before its response was complete")
        finally:
            answer.close()
            holding.close()

    def _check_page(self, scope: Scope, headers: Headers, origin: str | None) -> None:
        """Reject requests that a browser sends on behalf of another site; matters where no token is required."""
        host = headers.get("host", "")
        if not self._answers_to(host, scope["path"]):
            raise ForeignHost(host)
        if origin is None:
            _check_site(scope, headers)
            return
        if origin.lower() in self._origins:
            return
        if _split(origin).netloc.lower() != host.lower():
            raise ForeignPage(f"pages of {origin}")

    def _answers_to(self, host: str, path: str) -> bool:
        """Whether requests to a host name are answered: another site's name may resolve to this machine. Probes of a
        cluster name the address of a container."""
        if not self._hosts and self._tokens:
            return True
        if names_this_machine(host):
            return True
        return _host_of(host) in self._hosts or (bool(self._tokens) and path in PROBED_PATHS)

    async def _refuse(self, error: PotokError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
            return
        await refusal_of(error, scope)(scope, receive, send)


class _Body:
    """Body of a request, measured as it arrives. Its size counts until the response is sent."""

    __slots__ = ("_ends_at", "_holding", "_is_whole", "_limits", "_receive")

    def __init__(self, limits: Limits, holding: Holding, receive: Receive) -> None:
        self._limits, self._holding, self._receive = limits, holding, receive
        self._is_whole, self._ends_at = False, 0.0

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        limits, loop = self._limits, asyncio.get_running_loop()
        self._ends_at = self._ends_at or loop.time() + limits.seconds
        try:
            async with asyncio.timeout_at(self._ends_at + self._holding.size / SLOWEST):
                message = await self._receive()
        except TimeoutError:
            waited = f"the body did not arrive within {limits.seconds:g} seconds"
            raise BadRequest(waited, hint="send it without pauses, or stream rows to /inserts-stream") from None
        self._is_whole = not message.get("more_body", False)
        size = len(message.get("body", b""))
        if self._holding.size + size > limits.body_bytes:
            raise BodyTooLarge(limits.body_bytes)
        self._holding.take(size)
        return message


def _check_length(headers: Headers, limits: Limits) -> None:
    """Reject a body whose declared length is too large, before reading it."""
    declared = headers.get("content-length", "")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body_bytes):
        raise BodyTooLarge(limits.body_bytes)


def is_open(path: str) -> bool:
    """Return whether a path of the server needs no token."""
    return path in OPEN_PATHS or path == CONSOLE.rstrip("/") or path.startswith(CONSOLE)


def _host_of(host: str) -> str:
    """Return the name in a `Host` header, without the port."""
    return (_split(f"//{host}").hostname or "").rstrip(".").lower()


def caller_of(scope: Scope) -> Caller:
    caller = scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


def may_read(scope: Scope) -> bool:
    """Whether the sender of a request to an open path may read everything."""
    caller = scope[CALLER]
    return isinstance(caller, Caller) and caller.may(READ)


def body_of(scope: Scope) -> Holding:
    """Account for a body that its route measures; released at the end."""
    holding = scope[BODY]
    assert isinstance(holding, Holding)
    return holding


def answer_of(scope: Scope) -> Holding:
    """Account for a response, from the first encoded bytes until they are sent; released at the end."""
    holding = scope[ANSWER]
    assert isinstance(holding, Holding)
    return holding


def _check_site(scope: Scope, headers: Headers) -> None:
    """Reject by `Sec-Fetch-Site`, which browsers send where they send no origin; following a link is allowed."""
    site = headers.get("sec-fetch-site", "")
    if site in ("", "same-origin", "none"):
        return
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not (opened and scope["type"] == "http" and scope["method"] in ("GET", "HEAD")):
        raise ForeignPage(f"pages of other sites ({site})")


@lru_cache(maxsize=256)
def names_this_machine(host: str) -> bool:
    """Return whether a `Host` header names this machine; cached, as clients repeat it."""
    return is_loopback(_split(f"//{host}").hostname or "")


def _split(address: str) -> SplitResult:
    """Return the parts of an address; empty ones if it is invalid."""
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
            "Access-Control-Allow-Headers": ", ".join(_ALLOWED),
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        },
    )


def _allowing(origin: str, send: Send) -> Send:
    async def allowing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = "ETag, Location, Potok-Position"
            headers.add_vary_header("Origin")
        await send(message)

    return allowing
