"""Metrics and health of a process that serves nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from potok.monitoring.monitor import Monitor
from potok.server.access.guard import is_loopback, names_this_machine
from potok.server.app_server import AppServer
from potok.server.errors import ForeignHost
from potok.server.operations.routes import Operations
from potok.server.problems import refusal_of

CONNECTIONS = 64


class OperationsServer(AppServer):
    """`/metrics`, `/livez` and `/readyz` on a port, for `--metrics`. Anyone who reaches the address may read them.

    >>> with OperationsServer(monitor, "127.0.0.1", 9464) as server:
    ...     print(server.url)
    """

    def __init__(self, monitor: Monitor, host: str, port: int) -> None:
        super().__init__(host, port)
        operations = Operations(monitor, _anybody, _anybody)

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            yield
            operations.close()

        app: ASGIApp = Starlette(routes=operations.routes, lifespan=lifespan)
        self._serve(OwnHost(app) if is_loopback(host) else app, name="potok-metrics", connections=CONNECTIONS)


class OwnHost:
    """Refuse requests to other host names: another site's name may resolve to this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            if not names_this_machine(host):
                await refusal_of(ForeignHost(host), scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _anybody(_: Request) -> bool:
    return True
