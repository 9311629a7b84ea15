"""Pages, timers and tasks of an app share one event loop, which is not that of the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import potok.faust as faust
from potok.faust import hosted
from potok.faust.services.loop import AppLoop
from potok.faust.services.services import Services


@pytest.fixture
def app(tmp_path: Path) -> faust.App:
    return faust.App("shop", broker=f"file:{tmp_path}")


@contextmanager
def served(app: faust.App) -> Iterator[httpx.Client]:
    with hosted(app, port=0) as server, Services(app, app.timed):
        assert server is not None
        with httpx.Client(base_url=server.url, timeout=30) as client:
            yield client


@pytest.mark.parametrize("is_async", [True, False])
def test_a_page_that_blocks_stops_no_request_for_a_table(app: faust.App, *, is_async: bool) -> None:
    began, go_on = threading.Event(), threading.Event()
    app.Table("counts", default=int)

    def block() -> str:
        began.set()
        assert go_on.wait(30)
        return "done"

    async def waits(web: Any, request: Any) -> str:
        return block()

    def plain(web: Any, request: Any) -> str:
        return block()

    app.page("/slow/")(waits if is_async else plain)
    with served(app) as client, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.get, "/slow/")
        assert began.wait(30)
        assert client.get("/tables/counts/ann").status_code == 404
        assert not slow.done()
        go_on.set()
        assert slow.result().text == "done"


def test_a_page_that_is_not_async_stops_no_other_page(app: faust.App) -> None:
    began, go_on = threading.Event(), threading.Event()

    @app.page("/slow/")
    def slow(web: Any, request: Any) -> str:
        began.set()
        assert go_on.wait(30)
        return "slow"

    @app.page("/quick/")
    class Quick(faust.View):
        def get(self, request: Any) -> Any:
            return self.text("quick")

    with served(app) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, "/slow/")
        assert began.wait(30)
        assert client.get("/quick/").text == "quick"
        go_on.set()
        assert waiting.result().text == "slow"


def test_a_page_waits_for_what_a_timer_puts_into_a_queue(app: faust.App) -> None:
    asked = asyncio.Queue[str]()
    answers = asyncio.Queue[str]()

    @app.task
    async def answer() -> None:
        while True:
            await answers.put(f"hello {await asked.get()}")

    @app.page("/ask/{name}")
    async def ask(web: Any, request: Any, name: str) -> str:
        await asked.put(name)
        return await answers.get()

    with served(app) as client:
        assert [client.get(f"/ask/{name}").text for name in ("ann", "bob")] == ["hello ann", "hello bob"]


def test_the_loop_lives_from_the_first_who_enters_it_to_the_last_who_leaves() -> None:
    loop, seen = AppLoop(), list[Any]()

    async def look() -> None:
        seen.append(asyncio.get_running_loop())

    with loop:
        with loop:
            loop.submit(look()).result(30)
        loop.submit(look()).result(30)
    with loop:
        loop.submit(look()).result(30)
    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
    assert seen[0].is_closed()


def test_a_page_that_is_answered_too_late_is_cancelled_in_its_own_loop() -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def ask(loop: AppLoop) -> None:
        async with asyncio.timeout(0):
            await loop.run(wait())

    with AppLoop() as loop:
        with pytest.raises(TimeoutError):
            asyncio.run(ask(loop))
        assert cancelled.wait(30)
