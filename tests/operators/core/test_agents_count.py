"""How many rows a table of agents has: always as many as it would show, and found without looking at all each time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.operators.agents.tables import OpenTable
from potok.state.session import StateSession

RECORDS = 300


def changed(table: faust.Table, verb: str, key: str) -> None:
    """Do something to a table of lists."""
    if verb == "put":
        table[key] = ["new"]
    elif verb == "append":
        table[key].append(1)
    elif verb == "look":
        len(table[key])
    elif verb == "drop":
        table.pop(key, None)
    elif verb == "empty":
        table[key].clear()


def program(concurrency: int) -> faust.App:
    app = faust.App("counting")
    table = app.Table("lists", default=list)
    out = app.topic("out")

    @app.agent(app.topic("orders", key_type=str), concurrency=concurrency)
    async def work(stream: Any) -> None:
        async for order in stream:
            changed(table, order["before"], order["key"])
            before = len(table), sum(1 for _ in table.items())
            if concurrency > 1:
                await asyncio.sleep(0)
            changed(table, order["after"], order["key"])
            await out.send(value=[*before, len(table), sum(1 for _ in table.items())])
            if order["fails"]:
                raise RuntimeError("nothing of it stays")

    return app


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_there_are_as_many_rows_as_are_shown(tmp_path: Path, concurrency: int, seed: int) -> None:
    random = Random(seed)
    verbs = ("put", "append", "look", "drop", "empty")
    with InProcess(program(concurrency), directory=tmp_path) as driver:
        for _ in range(RECORDS):
            key = f"k{random.randrange(12)}"
            order = {"key": key, "before": random.choice(verbs), "after": random.choice(verbs)}
            driver.send("orders", {**order, "fails": random.random() < 0.2}, key)
        driver.run(batch_records=RECORDS // 3)
        found = [record.value for record in driver.read("out")]
        assert len(found) == RECORDS - len(driver.dead_letters())
    assert [(one, other) for one, _, other, _ in found] == [(one, other) for _, one, _, other in found]
    assert len({count for count, *_ in found}) > 2


def test_rows_are_looked_at_once_in_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = faust.App("counting")
    table, out = app.Table("counts", default=int), app.topic("out")

    @app.agent(app.topic("orders"))
    async def work(stream: Any) -> None:
        async for key in stream:
            table[key] += 1
            await out.send(value=len(table))

    scans, looks = list[str](), list[int]()
    scan, is_row = StateSession.rows_between, OpenTable._is_row
    monkeypatch.setattr(StateSession, "rows_between", lambda *asked: (scans.append(asked[1]), scan(*asked))[1])
    monkeypatch.setattr(OpenTable, "_is_row", lambda *asked: (looks.append(1), is_row(*asked))[1])
    with InProcess(app, directory=tmp_path) as driver:
        for number in range(RECORDS):
            driver.send("orders", f"k{number}")
        driver.run()
        assert [record.value for record in driver.read("out")] == list(range(1, RECORDS + 1))
    assert scans == ["counts"]
    assert len(looks) < 10 * RECORDS
