from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson

from potok.server.console.live import Live


class Counting:
    """A feed that counts the looks at it."""

    def __init__(self) -> None:
        self.looks = 0
        self.broken = False

    def topology(self) -> dict[str, Any]:
        return {"query": "q", "nodes": [], "tables": [], "panels": []}

    def snapshot(self) -> dict[str, Any]:
        if self.broken:
            raise OSError("no such directory")
        self.looks += 1
        return {"at": self.looks, "query": "q", "state": "running", "rate_in": self.looks * 10.0}

    def rows(self, table: str, find: str, limit: int) -> dict[str, Any]:
        return {"rows": [], "more": False}


def decoded(event: bytes) -> dict[str, Any]:
    text = event.removeprefix(b"retry: 1000\n")
    assert text.startswith(b"data: ") and text.endswith(b"\n\n")
    content: dict[str, Any] = orjson.loads(text.removeprefix(b"data: "))
    return content


def test_the_first_event_has_the_history_and_the_next_only_changes() -> None:
    async def scenario() -> None:
        live = Live(Counting(), interval=3600)
        for _ in range(2):
            await live.look()
        events = live.events()
        first = decoded(await anext(events))
        assert [point["rate_in"] for point in first["history"]][-2:] == [first["rate_in"] - 10, first["rate_in"]]

        await live.look()
        second = decoded(await anext(events))
        assert second["rate_in"] > first["rate_in"]
        assert "history" not in second

    asyncio.run(scenario())


def test_the_history_is_bounded() -> None:
    async def scenario() -> None:
        live = Live(Counting(), history=5)
        for _ in range(9):
            await live.look()
        assert [point["at"] for point in live.snapshot()["history"]] == [5, 6, 7, 8, 9]

    asyncio.run(scenario())


def test_a_slow_listener_gets_the_latest_and_not_a_queue() -> None:
    async def scenario() -> None:
        live = Live(Counting(), interval=3600)
        await live.look()
        events = live.events()
        await anext(events)
        for _ in range(5):
            await live.look()
        assert decoded(await anext(events))["at"] == live.snapshot()["at"]

    asyncio.run(scenario())


def test_a_listener_that_comes_before_the_first_look_waits_for_it() -> None:
    async def scenario() -> None:
        live = Live(Counting(), interval=3600)
        async with live.running():
            assert decoded(await anext(live.events()))["at"] == 1

    asyncio.run(scenario())


async def rest_of(events: AsyncIterator[bytes]) -> list[bytes]:
    return [event async for event in events]


def test_closing_ends_every_stream() -> None:
    async def scenario() -> None:
        live = Live(Counting(), interval=3600)
        await live.look()
        listeners = [live.events() for _ in range(3)]
        for events in listeners:
            await anext(events)
        waiting = [asyncio.ensure_future(rest_of(events)) for events in listeners]
        await asyncio.to_thread(live.close)
        assert [len(rest) for rest in await asyncio.gather(*waiting)] == [1, 1, 1]

    asyncio.run(scenario())


def test_a_feed_that_fails_is_shown_and_asked_again() -> None:
    async def scenario() -> None:
        feed = Counting()
        live = Live(feed)
        await live.look()
        feed.broken = True
        await live.look()
        broken = live.snapshot()
        assert (broken["state"], broken["error"]) == ("unreadable", "no such directory")
        assert broken["rate_in"] == 10.0

        feed.broken = False
        await live.look()
        assert live.snapshot()["state"] == "running"

    asyncio.run(scenario())


def test_the_last_event_is_the_state_at_the_end() -> None:
    async def scenario() -> None:
        feed = Counting()
        live = Live(feed, interval=3600)
        await live.look()
        events = live.events()
        await anext(events)
        closing = asyncio.create_task(asyncio.to_thread(live.close))
        last = decoded(await anext(events))
        assert last["at"] == feed.looks == 2
        assert await rest_of(events) == []
        await closing

    asyncio.run(scenario())
