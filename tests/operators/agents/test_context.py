"""Handles of an app find the agents that are running through the context."""

from __future__ import annotations

import asyncio
import threading

from potok.operators.agents.context import Running, current, driving


def agent_group() -> Running:
    return Running("shop", {}, 0, [])


def test_a_crew_is_found_in_its_block_alone() -> None:
    running = agent_group()
    with driving(running):
        assert current() is running
    assert current() is None


def test_another_thread_of_the_process_does_not_find_it() -> None:
    found: list[Running | None] = []
    with driving(agent_group()):
        page = threading.Thread(target=lambda: found.append(current()))
        page.start()
        page.join()
    assert found == [None]


def test_tasks_and_threads_that_an_agent_starts_find_it() -> None:
    running = agent_group()

    async def agent() -> list[Running | None]:
        async def other() -> Running | None:
            return current()

        return [await asyncio.create_task(other()), await asyncio.to_thread(current)]

    with driving(running):
        assert asyncio.run(agent()) == [running, running]


def test_a_task_finds_the_stand_in_that_is_set_after_its_start() -> None:
    running, refusing = agent_group(), object()

    async def agent() -> object:
        started = asyncio.Event()

        async def other() -> object:
            await started.wait()
            return current()

        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        running.stand_in = refusing
        started.set()
        return await task

    with driving(running):
        assert asyncio.run(agent()) is refusing
