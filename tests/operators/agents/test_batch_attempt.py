"""Tasks that an agent starts and does not wait for."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.operators.agents import batch_attempt

TOLD: list[Any] = []
TASKS: set[asyncio.Task[Any]] = set()


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    TOLD.clear()
    TASKS.clear()
    if __name__ in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(batch_attempt, "_slow", {})
    monkeypatch.setattr(batch_attempt, "SHORT_TIMEOUT_S", 0.05)


def start(work: Any) -> None:
    TASKS.add(asyncio.get_running_loop().create_task(work))


async def note(item: str) -> None:
    await asyncio.sleep(0)
    start(note_again(item))
    TOLD.append(item)


async def note_again(item: str) -> None:
    await asyncio.sleep(0)
    TOLD.append(f"{item} again")


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("no such user")


async def never_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        TOLD.append("ended")


def program(*, timeout: float | None = 30.0, concurrency: int = 1) -> faust.App:
    app = faust.App("left")
    counts = app.Table("counts", default=int)

    async def write(item: str) -> None:
        await asyncio.sleep(0)
        counts[item] += 1

    @app.agent(app.topic("orders"), timeout=timeout, concurrency=concurrency)
    async def work(stream: Any) -> None:
        async for item in stream:
            counts["all"] += 1
            start({"fail": fail, "never": never_end}[item]() if item in ("fail", "never") else note(item))
            if item == "write":
                start(write(item))

    return app


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_batch_waits_for_the_tasks_of_its_agents_and_for_theirs(tmp_path: Path, concurrency: int) -> None:
    with InProcess(program(concurrency=concurrency), directory=tmp_path) as driver:
        for item in ("a", "b"):
            driver.send("orders", item)
        driver.run()
        assert sorted(TOLD) == ["a", "a again", "b", "b again"]
        assert driver.table("counts").all() == {"all": 2}


def test_a_failing_background_task_is_reported_and_its_record_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with InProcess(program(), directory=tmp_path) as driver:
        driver.send("orders", "fail")
        driver.run()
        assert driver.table("counts").all() == {"all": 1}
        assert driver.dead_letters() == []
    assert "fail, started by an agent and not awaited, failed" in caplog.text
    assert "no such user" in caplog.text


def test_a_task_that_writes_after_its_record_gets_an_error_with_a_hint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with InProcess(program(), directory=tmp_path) as driver:
        driver.send("orders", "write")
        driver.run()
        assert driver.table("counts").all() == {"all": 1}
    assert "used a table or a topic after all records were processed" in caplog.text


def test_a_task_that_never_ends_is_waited_for_once_and_ended_with_each_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with InProcess(program(timeout=0.01), directory=tmp_path) as driver:
        for _ in range(2):
            driver.send("orders", "never")
            driver.run()
        assert driver.table("counts").all() == {"all": 2}
    assert TOLD == ["ended", "ended"]
    assert caplog.text.count("never_end, started by an agent and not awaited, is still running") == 1
