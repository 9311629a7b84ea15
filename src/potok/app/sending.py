"""Sends from outside of agents: they are durable once they have been awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from potok.app.app import App


def send_outside(app: App, topic: str, *record: Any) -> Awaitable[None] | None:
    """Append a record; None where no event loop runs, and it is there when this returns."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        app.produce(topic, *record)
        return None
    # Whoever shares the loop, as pages and tasks do, need not wait for a disk too.
    return loop.run_in_executor(_sender(), app.produce, topic, *record)


@cache
def _sender() -> ThreadPoolExecutor:
    """One thread, so that what was sent first is appended first."""
    return ThreadPoolExecutor(1, "potok-send")
