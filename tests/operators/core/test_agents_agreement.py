"""Whatever the batches, the shards and the keys, agents leave what plain Python leaves."""

from __future__ import annotations

import enum
import random
from collections import defaultdict
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.runtime.operations.reshard import reshard

SIZE_MS = 100
EXPIRES_MS = 1_000


class Paid(faust.Record):
    user: str
    amount: int


def payments(key: Any = None) -> faust.App:
    """Counts, lists that are changed in place, rows that go, windows, and a record that raises after it has written."""
    app = faust.App("app")
    topic, out = app.topic("payments", value_type=Paid), app.topic("out")
    counts = app.Table("counts", default=int)
    last = app.Table("last", default=list)
    windows = app.Table("sums", default=int).tumbling(SIZE_MS / 1000, expires=EXPIRES_MS / 1000)

    @app.agent(topic, key=key)
    async def count(stream: Any) -> None:
        async for paid in stream:
            counts[paid.user] += 1
            last[paid.user].append(paid.amount)
            del last[paid.user][:-3]
            windows[paid.user] += paid.amount
            if paid.amount == 0:
                raise ValueError("nothing was paid")
            if paid.amount == 9:
                del last[paid.user]
            await out.send(key=paid.user, value=[counts[paid.user], paid.amount])

    return app


def expected(records: list[tuple[str, int, int]]) -> tuple[dict[str, Any], ...]:
    counts: dict[str, int] = defaultdict(int)
    last: dict[str, list[int]] = defaultdict(list)
    sums: dict[tuple[str, int], int] = defaultdict(int)
    sent: dict[str, list[Any]] = defaultdict(list)
    for user, amount, at in records:
        if amount != 0:
            counts[user] += 1
            last[user] = [*last[user], amount][-3:]
            sums[user, at - at % SIZE_MS] += amount
            if amount == 9:
                del last[user]
            sent[user].append([counts[user], amount])
    return dict(counts), dict(last), dict(sums), dict(sent)


def found(driver: InProcess) -> tuple[dict[str, Any], ...]:
    sent: dict[str, list[Any]] = defaultdict(list)
    for record in driver.read("out"):
        sent[record.key].append(record.value)
    sums = {(key.key, key.start_ms): value for key, value in driver.table("sums").all().items()}
    return driver.table("counts").all(), driver.table("last").all(), sums, dict(sent)


@pytest.mark.parametrize("seed", range(12))
def test_agents_leave_what_plain_python_leaves(seed: int) -> None:
    chance = random.Random(seed)
    records = [(f"u{chance.randrange(6)}", chance.randrange(10), 20 * number) for number in range(chance.randrange(60))]
    key = chance.choice([None, Paid.user, lambda paid: paid.user])
    shards = chance.choice([1, 2, 3])
    with InProcess(payments(key), shards=shards, spread=chance.random() < 0.5) as driver:
        cut = chance.randrange(len(records) + 1)
        for part in (records[:cut], records[cut:]):
            for user, amount, at in part:
                driver.send("payments", {"user": user, "amount": amount}, timestamp=at)
            driver.run(chance.choice([None, 1, 7, 40]), more_to_come=True)
            if chance.random() < 0.5:
                driver.restart()
        failed = sum(amount == 0 for _, amount, _ in records)
        assert driver.reasons() == [("count", "error")] * failed
        live = [record for record in records if record[2] + EXPIRES_MS > 20 * len(records)]
        counts, last, sums, sent = found(driver)
        right = expected(records)
        assert (counts, last, sent) == (right[0], right[1], right[3])
        assert {place: total for place, total in right[2].items() if place in sums} == sums
        assert set(expected(live)[2]) <= set(sums)


@pytest.mark.parametrize("key", [None, Paid.user])
@pytest.mark.parametrize("after", [3, 1])
def test_cells_moved_to_other_shards_keep_their_contents(key: Any, after: int) -> None:
    records = [(f"u{number * 7 % 9}", number % 9 + 1, 20 * number) for number in range(60)]
    with InProcess(payments(key)) as driver:
        for user, amount, at in records[:40]:
            driver.send("payments", {"user": user, "amount": amount}, timestamp=at)
        driver.run(more_to_come=True)
        driver._prepared.release()
        reshard(driver._topology, driver.broker, after)
        driver._begin()
        for user, amount, at in records[40:]:
            driver.send("payments", {"user": user, "amount": amount}, timestamp=at)
        driver.run(more_to_come=True)
        right = expected(records)
        counts, last, _, sent = found(driver)
        assert (counts, last, sent) == (right[0], right[1], right[3])
        driver.advance_to(100_000)
        assert driver.table("sums").all() == {}


class Kind(enum.StrEnum):
    """Keys that are text, and of a class of their own."""

    A = "a"
    B = "b"


def rows_of_two() -> faust.App:
    """Two agents on one table of lists, by keys of two classes: one changes rows in place, one looks and raises."""
    app = faust.App("app")
    topic, out = app.topic("steps"), app.topic("out")
    rows = app.Table("rows", default=list)
    rows.to_stream().to("changes")

    @app.agent(topic)
    async def change(stream: Any) -> None:
        everything = rows["everything"]
        async for at, what, key in stream:
            row = rows[Kind(key)]
            if what == "append":
                row.append(at)
            elif what == "cut":
                del row[1:]
            elif what == "set":
                rows[key] = [at]
            elif what == "delete":
                rows.pop(key, None)
            everything.append(at)
            if at % 5 == 0:
                raise ValueError("each fifth")

    @app.agent(topic)
    async def look(stream: Any) -> None:
        async for at, _, key in stream:
            seen = [key in rows, len(rows), len(rows[key]), Kind(key) in rows]
            if at % 4 == 0:
                rows[key].append(-at)
            if at % 8 == 0:
                raise ValueError("each eighth")
            await out.send(value=seen)

    return app


def expected_rows(steps: list[tuple[int, str, str]]) -> tuple[dict[str, list[int]], dict[str, int], list[Any]]:
    """The rows, the times of their last changes, and what was sent."""
    rows: dict[str, list[int]] = {}
    times: dict[str, int] = {}
    sent: list[Any] = []
    for at, what, key in steps:
        if at % 5:
            before = list(rows[key]) if key in rows else None
            row = rows.get(key, [])
            after = {"append": [*row, at], "cut": row[:1], "set": [at], "delete": None}.get(what, row)
            if after is None:
                rows.pop(key, None)
            elif after or key in rows or what == "set":
                rows[key] = after
            times[key] = at if rows.get(key) != before else times.get(key, 0)
            rows["everything"] = [*rows.get("everything", []), at]
            times["everything"] = at
        seen = [key in rows, len(rows), len(rows.get(key, [])), key in rows]
        if at % 8:
            sent.append(seen)
            if at % 4 == 0:
                rows[key] = [*rows.get(key, []), -at]
                times[key] = at
    return rows, times, sent


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_are_changed_in_place_are_those_of_plain_python(seed: int) -> None:
    chance = random.Random(seed)
    kinds = ["append", "append", "cut", "set", "delete", "look"]
    steps = [(at, chance.choice(kinds), chance.choice("ab")) for at in range(1, chance.randrange(2, 60))]
    with InProcess(rows_of_two()) as driver:
        cut = chance.randrange(len(steps) + 1)
        for part in (steps[:cut], steps[cut:]):
            for step in part:
                driver.send("steps", step, timestamp=step[0])
            driver.run(chance.choice([None, 1, 3, 20]), more_to_come=True)
        rows, times, sent = expected_rows(steps)
        assert driver.table("rows").all() == rows
        assert [record.value for record in driver.read("out")] == sent
        last = {record.key: record for record in driver.read("changes")}
        assert {key: (last[key].value, last[key].timestamp_ms) for key in rows} == {
            key: (row, times[key]) for key, row in rows.items()
        }
