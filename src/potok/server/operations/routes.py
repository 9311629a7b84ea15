"""`/metrics`, `/livez` and `/readyz`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor

T = TypeVar("T")

METRICS, LIVE, READY = "/metrics", "/livez", "/readyz"

MayRead = Callable[[Request], bool]


class Operations:
    """The routes of a monitor. Collecting takes a thread of its own: it must not wait for queries, nor delay them.

    Args:
        may_read: Whether the caller may see metrics and details; raises if a token is required for them.
        sees_details: Whether the caller may see the names of queries and errors.
    """

    def __init__(self, monitor: Monitor, may_read: MayRead, sees_details: MayRead) -> None:
        self._monitor, self._may_read, self._sees_details = monitor, may_read, sees_details
        self._pool = ThreadPoolExecutor(1, "potok-metrics")
        self._health = ThreadPoolExecutor(1, "potok-health")
        self.routes = [
            Route(METRICS, self._metrics, methods=["GET"]),
            Route(LIVE, partial(self._respond, monitor.health.is_live), methods=["GET"]),
            Route(READY, partial(self._respond, monitor.health.is_ready), methods=["GET"]),
        ]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._health.shutdown(wait=False, cancel_futures=True)

    async def _metrics(self, request: Request) -> Response:
        self._may_read(request)
        accept = request.headers.get("accept")
        found = await _in(self._pool, lambda: self._monitor.registry.expose(accept))
        return Response(found.body, headers={"content-type": found.content_type, "vary": "Accept"})

    async def _respond(self, check: Callable[[], list[Problem]], request: Request) -> Response:
        problems = await _in(self._health, check)
        body: dict[str, object] = {"ok": not problems, "reasons": Counter(each.reason for each in problems)}
        if self._sees_details(request):
            body["problems"] = problems
        headers = {"cache-control": "no-store"}
        return Response(orjson.dumps(body), 503 if problems else 200, headers, "application/json")


async def _in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, work)
