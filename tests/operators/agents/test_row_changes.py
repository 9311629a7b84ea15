"""Rows of agents' tables that are changed in place, records and defaults among them."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.faust.records.values import Thaw
from potok.operators.agents.row_changes import LARGE_BYTES


class Kind(enum.StrEnum):
    BOOK = "book"


class Plain(enum.Enum):
    BOOK = "book"


def ran(app: faust.App, values: list[Any], batch: int | None = None, **options: Any) -> InProcess:
    driver = InProcess(app, **options)
    driver.__enter__()
    for number, value in enumerate(values):
        driver.send("t", value, timestamp=1000 + number)
    driver.run(batch, more_to_come=True)
    return driver


@pytest.mark.parametrize("key_type", [None, str])
def test_keys_with_the_same_bytes_have_one_row(key_type: Any) -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=int, key_type=key_type)
    windows = app.Table("windows", default=int, key_type=key_type).tumbling(60)

    @app.agent(app.topic("t"))
    async def count(stream: Any) -> None:
        async for _ in stream:
            for key in ("book", Kind.BOOK):
                rows[key] += 1
                windows[key] += 1

    driver = ran(app, [1, 2])
    assert (driver.table("rows").all(), driver.reasons()) == ({"book": 4}, [])
    assert list(driver.table("windows").all().values()) == [4]


def test_an_enum_of_texts_and_its_text_are_one_key_and_numbers_and_truth_are_two() -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=int)

    @app.agent(app.topic("t"))
    async def count(stream: Any) -> None:
        async for _ in stream:
            for key in (Plain.BOOK, "book", 1, True, 1.0):
                rows[key] += 1
            del rows[Plain.BOOK]

    driver = ran(app, [1, 2])
    assert driver.table("rows").get("book") is None
    assert [driver.table("rows").get(key) for key in (1, True, 1.0)] == [2, 2, 2]


def test_a_spread_agent_may_call_the_key_of_its_record_by_an_enum() -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=int)

    @app.agent(app.topic("t"), key=lambda value: value)
    async def count(stream: Any) -> None:
        async for value in stream:
            rows[Kind(value)] += 1

    driver = ran(app, ["book", "book"])
    assert (driver.table("rows").all(), driver.reasons()) == ({"book": 2}, [])


@pytest.mark.parametrize("batch", [None, 1])
def test_a_row_has_the_time_of_the_record_that_changed_it_and_not_of_those_that_looked(batch: int | None) -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=list)
    rows.to_stream().to("changes")

    @app.agent(app.topic("t"))
    async def change(stream: Any) -> None:
        async for value in stream:
            row = rows["a"]
            if value == "change":
                row.append(value)

    changes = ran(app, ["look", "change", "change", "look"], batch).read("changes")
    assert changes[-1].timestamp_ms == 1002


@pytest.mark.parametrize("batch", [None, 1])
def test_an_unchanged_default_is_not_stored_also_in_place_of_a_deleted_row(batch: int | None) -> None:
    app = faust.App("app")
    rows, out = app.SetTable("rows"), app.topic("out")

    @app.agent(app.topic("t"))
    async def look(stream: Any) -> None:
        async for value in stream:
            await out.send(value=["a" in rows, len(rows), rows.get("a") is None, len(rows["a"])])
            if value == "add":
                rows["a"].add(1)
            elif value == "take":
                rows["a"].discard(1)
            elif value == "delete":
                del rows["a"]

    driver = ran(app, ["look", "add", "take", "delete", "look", "delete"], batch)
    seen = [record.value for record in driver.read("out")]
    assert seen == [[False, 0, True, 0]] * 2 + [[True, 1, False, 1], [True, 1, False, 0], [False, 0, True, 0]]
    assert (driver.table("rows").all(), driver.reasons()) == ({}, [("look", "error")])


def test_a_default_that_is_not_a_function_is_another_object_for_each_key() -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=[])

    @app.agent(app.topic("t"))
    async def add(stream: Any) -> None:
        async for value in stream:
            rows[value].append(1)

    assert ran(app, ["a", "b"]).table("rows").all() == {"a": [1], "b": [1]}


@pytest.mark.parametrize("batch", [None, 1])
def test_a_row_read_before_the_loop_is_restored_and_still_usable(batch: int | None) -> None:
    app = faust.App("app")
    rows, topic = app.Table("rows", default=list), app.topic("t")

    @app.agent(topic)
    async def first(stream: Any) -> None:
        row = rows["a"]
        async for value in stream:
            row.append(value)
            if value == 2:
                raise ValueError("two")

    @app.agent(topic)
    async def second(stream: Any) -> None:
        async for value in stream:
            rows["a"].append(-value)
            if value == 3:
                raise ValueError("three")

    driver = ran(app, [1, 2, 3, 4], batch)
    assert driver.table("rows").all() == {"a": [1, -1, -2, 3, 4, -4]}
    assert driver.reasons() == [("first", "error"), ("second", "error")]


@pytest.mark.parametrize("before_the_loop", [True, False])
def test_a_result_that_is_not_data_makes_its_record_a_dead_letter(before_the_loop: bool) -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=list)

    @app.agent(app.topic("t"))
    async def add(stream: Any) -> None:
        row = rows["a"] if before_the_loop else None
        async for value in stream:
            row = rows["a"] if row is None else row
            row.append(object() if value == 2 else value)

    driver = ran(app, [1, 2, 3])
    assert (driver.table("rows").all(), driver.reasons()) == ({"a": [1, 3]}, [("add", "error")])


@pytest.mark.parametrize("batch", [None, 300])
def test_large_rows_are_undone_though_they_are_not_copied_for_each_record(batch: int | None) -> None:
    app = faust.App("app")
    rows = app.Table("rows", default=list)
    rows.to_stream().to("changes")

    @app.agent(app.topic("t"))
    async def add(stream: Any) -> None:
        async for value in stream:
            rows["a"].append("x" * 20)
            if value == 900:
                raise ValueError("nine hundred")

    driver = ran(app, list(range(1000)), batch)
    assert len(driver.table("rows").get("a")) * 20 == 999 * 20 > LARGE_BYTES
    assert driver.reasons() == [("add", "error")]
    assert driver.read("changes")[-1].timestamp_ms == 1999


class Old(faust.Record, namespace="kept"):
    amount: int


class Grown(faust.Record, namespace="kept"):
    amount: int
    seen: list[int] = []
    times: int = 5
    name: str | None = None


def kept(kind: type[faust.Record]) -> faust.App:
    app = faust.App("app")
    rows = app.Table("rows", default=lambda: kind(amount=0))

    @app.agent(app.topic("t"))
    async def add(stream: Any) -> None:
        async for value in stream:
            row = rows[value]
            row.amount += 1
            if kind is Grown:
                row.times += 1
                row.seen.append(row.amount)

    return app


def test_rows_of_a_record_class_that_has_more_fields_by_now_have_their_defaults(tmp_path: Path) -> None:
    ran(kept(Old), ["a", "b"], directory=tmp_path).__exit__(None, None, None)
    driver = ran(kept(Grown), ["a", "b"], directory=tmp_path)
    row = {"amount": 2, "seen": [2], "times": 6, "name": None}
    assert (driver.table("rows").all(), driver.reasons()) == ({"a": row, "b": row}, [])


def test_records_in_rows_have_the_defaults_of_fields_that_are_new() -> None:
    thawed = Thaw(None)([{"amount": 1, "__faust": {"ns": "Later"}}])

    assert [(type(each).__name__, each.extra) for each in thawed] == [("Later", 7)]


class Later(faust.Record):
    amount: int
    extra: int = 7
