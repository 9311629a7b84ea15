"""Groups of the rows of a table: what comes, what leaves, and what is left."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from operators.core.agreement import Sent, check
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.dsl.grouping.grouped_table import GroupedTable
from potok.operators.tables import group_rows
from potok.state.codec import dump_state
from potok.topology.nodes.windows import tumbling_ms

TYPED = "city string, age bigint"


def people(*rows: tuple[str, str | None, int | None]) -> list[Sent]:
    """Rows of (name, city, age); without a city the person is deleted."""
    return [
        Sent("people", name, None if city is None else {"city": city, "age": age}, at)
        for at, (name, city, age) in enumerate(rows)
    ]


def all_aggregates(group: GroupedTable) -> None:
    group.count(name="count").to_stream().to("counts")
    for kind in ("sum", "avg", "min", "max", "collect_list", "count_distinct"):
        getattr(group, kind)("age", name=kind)
    group.aggregate(0, lambda k, v, total: total + v["age"], lambda k, v, total: total - v["age"], name="fold")


@pytest.mark.parametrize("value", [TYPED, None], ids=["typed", "dynamic"])
def test_every_aggregate_agrees_with_one_recomputed_from_the_rows(value: Any) -> None:
    random = Random(3)
    cities = ["Riga", "Oslo", "Bonn", None]
    rows = [(random.choice("abcdef"), random.choice(cities), random.randrange(5)) for _ in range(40)]
    check(lambda builder: all_aggregates(builder.table("people", value=value).group_by("city")), people(*rows))


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_row_that_changes_its_group_leaves_the_old_one(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.table("people").group_by("city").count(name="t").to_stream().to("out")
    with InProcess(builder) as driver:
        for one in people(("ann", "Riga", 1), ("bob", "Riga", 1), ("ann", "Oslo", 1), ("bob", None, None)):
            driver.send("people", one.input.value, one.key, timestamp=one.at)
            driver.run(batch_records)
        assert driver.table("t").all() == {"Oslo": 1}
        last = {row.key: row.value for row in driver.read("out")}
        assert last == {"Riga": None, "Oslo": 1}


def test_a_pair_returns_group_and_value() -> None:
    def program(builder: StreamsBuilder) -> None:
        table = builder.table("people", value=TYPED)
        table.group_by(lambda k, v: (v["city"], v["age"] * 2), pairs=True).sum(name="traced")
        table.group_by(lambda k, v: (str(v["city"]), [v["age"]]), pairs=True).collect_list(name="python")

    check(program, people(("ann", "Riga", 1), ("bob", "Riga", 5), ("ann", "Oslo", 7), ("bob", "Riga", 2)))


def test_a_reducer_and_its_inverse_keep_a_total() -> None:
    def program(builder: StreamsBuilder) -> None:
        ages = builder.table("people").map_values(lambda v: v["age"], name="ages")
        ages.group_by(lambda k, v: k[0]).reduce(lambda total, v: total + v, lambda total, v: total - v, name="t")

    check(program, people(("ann", "x", 1), ("al", "x", 5), ("ann", "x", 7), ("bob", "x", 2), ("al", None, None)))


def test_numbers_that_are_not_finite_leave_without_a_trace() -> None:
    builder = StreamsBuilder("q")
    floats = builder.table("t").map_values(lambda v: float(v))
    floats.group_by(lambda k, v: "all").sum(name="sum")
    with InProcess(builder) as driver:
        found = []
        for key, text in (("a", "0.1"), ("b", "inf"), ("c", "0.2"), ("b", None), ("a", None)):
            driver.send("t", text, key, timestamp=1)
            driver.run()
            found.append(driver.table("sum").get("all"))
    assert found == [0.1, math.inf, math.inf, 0.1 + 0.2, 0.2]


@pytest.mark.parametrize("spread", [False, True])
def test_a_row_whose_grouping_key_fails_is_in_no_group(spread: bool) -> None:
    builder = StreamsBuilder("q")
    builder.table("t").group_by(lambda v: 6 // v["n"]).count(name="by")
    builder.table("u").group_by("n").count(name="by_null")
    with InProcess(builder, spread=spread) as driver:
        for value in (2, 0, 3):
            driver.send("t", {"n": value}, "k", timestamp=1)
            driver.run()
        assert driver.table("by").all() == {2: 1}
        driver.send("u", {"n": None}, "k", timestamp=1)
        driver.run()
        assert driver.table("by_null").all() == {}
        assert driver.reasons() == [("t.group_by", "error"), ("u.group_by", "no key")]


def test_what_the_adder_refused_is_not_subtracted() -> None:
    builder = StreamsBuilder("q")
    group = builder.table("t").group_by(lambda k, v: "all")
    group.aggregate(0, lambda v, total: total + 6 // v, lambda v, total: total - 6 // v, name="sum")
    with InProcess(builder) as driver:
        found = []
        for key, value in (("a", 0), ("b", 2), ("a", 3), ("b", 0), ("b", None), ("a", None)):
            driver.send("t", value, key, timestamp=1)
            driver.run()
            found.append(driver.table("sum").get("all"))
        assert found == [None, 3, 5, 2, 2, None]
        assert driver.reasons() == [("sum", "error"), ("sum", "error")]


def test_a_subtractor_that_raises_leaves_the_aggregate_but_the_row_is_gone() -> None:
    def subtract(v: int, total: int) -> int:
        raise ValueError("no way back")

    builder = StreamsBuilder("q")
    builder.table("t").group_by(lambda k, v: "all").aggregate(0, lambda v, total: total + v, subtract, name="sum")
    with InProcess(builder) as driver:
        found = []
        for key, value in (("a", 1), ("b", 2), ("a", None), ("b", None)):
            driver.send("t", value, key, timestamp=1)
            driver.run()
            found.append(driver.table("sum").get("all"))
        assert found == [1, 3, 3, None]
        assert driver.reasons() == [("sum", "error")]


def test_an_adder_that_changes_the_aggregate_and_raises_leaves_no_trace() -> None:
    def add(v: int, held: list[int]) -> list[int]:
        held.append(v)
        if v < 0:
            raise ValueError(v)
        return held

    builder = StreamsBuilder("q")
    builder.table("t").group_by(lambda k, v: "all").aggregate(list, add, lambda v, held: held, name="held")
    with InProcess(builder) as driver:
        for key, value in (("a", 1), ("b", -1), ("c", 3)):
            driver.send("t", value, key, timestamp=1)
        driver.run()
        assert driver.table("held").get("all") == [1, 3]


def test_an_aggregate_that_is_not_data_or_of_the_wrong_type_is_refused() -> None:
    builder = StreamsBuilder("q")
    group = builder.table("t").group_by(lambda k, v: "all")
    group.aggregate(0, lambda v, total: object() if v == 2 else v, lambda v, total: total, name="data")
    group.aggregate(0, lambda v, total: "x" if v == 2 else v, lambda v, total: total, value=int, name="typed")
    with InProcess(builder) as driver:
        for key, value in (("a", 1), ("b", 2)):
            driver.send("t", value, key, timestamp=1)
        driver.run()
        assert driver.tables.snapshot() | {"t": {}} == {"data": {"all": 1}, "typed": {"all": 1}, "t": {}}
        assert driver.reasons() == [("data", "error"), ("typed", "error")]


def test_windows_that_are_over_stay_counted() -> None:
    builder = StreamsBuilder("q")
    windows = builder.stream("in").group_by_key().windowed_by(tumbling_ms(10, 0, 10)).count(name="w")
    windows.group_by(lambda k, v: k["key"]).sum(name="total")
    with InProcess(builder) as driver:
        for at in (1, 2, 11, 55):
            driver.send("in", 1, "k", timestamp=at)
            driver.run()
        assert len(driver.table("w")) == 1
        assert driver.table("total").all() == {"k": 4}


def test_a_table_that_emits_each_record_is_grouped_once_a_batch() -> None:
    def program(builder: StreamsBuilder) -> None:
        counts = builder.stream("in").group_by_key().count(name="n", emit="each_record")
        counts.group_by(lambda k, v: v % 2).count(name="t")

    check(program, [Sent("in", key, 1, at) for at, key in enumerate("aabbbcaab")])


def test_mixed_values_have_an_order_of_their_own() -> None:
    builder = StreamsBuilder("q")
    group = builder.table("t").group_by(lambda k, v: "all")
    group.collect_list("n", name="list")
    group.min("n", name="min")
    with InProcess(builder) as driver:
        for key, value in (("a", "x"), ("b", 10), ("c", None), ("d", 9), ("e", 9)):
            driver.send("t", {"n": value}, key, timestamp=1)
        driver.run()
        assert driver.table("list").get("all") == [10, 9, 9, "x", None]
        assert driver.table("min").get("all") == 10


@pytest.mark.parametrize("value", ["n bigint", None], ids=["typed", "dynamic"])
def test_changes_show_what_was_before_and_what_is_after(value: Any) -> None:
    builder = StreamsBuilder("q")
    changes = builder.table("t", value=value).to_stream(changes=True)
    changes.filter(lambda v: v["after"] is not None).to("kept")
    changes.to("out")
    with InProcess(builder) as driver:
        for number in (1, 2, None):
            driver.send("t", None if number is None else {"n": number}, "k", timestamp=1)
            driver.run()
        first, second = {"before": None, "after": {"n": 1}}, {"before": {"n": 1}, "after": {"n": 2}}
        assert [row.value for row in driver.read("out")] == [first, second, {"before": {"n": 2}, "after": None}]
        assert [row.value for row in driver.read("kept")] == [first, second]


def test_rows_that_a_group_refuses_are_read_and_written_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each of them, the time would grow with the square of their number."""
    sizes: list[int] = []

    def dump(value: Any) -> bytes:
        data = dump_state(value)
        sizes.append(len(data))
        return data

    def refuse(k: str, v: Any, total: int) -> int:
        raise ValueError("refused")

    monkeypatch.setattr(group_rows, "dump_state", dump)
    builder = StreamsBuilder("q")
    builder.table("people").group_by("city").aggregate(0, refuse, refuse, name="t")
    with InProcess(builder, shards=1) as driver:
        for one in people(*((f"p{number}", "Riga", number) for number in range(300))):
            driver.send("people", one.input.value, one.key, timestamp=one.at)
        driver.run()
        assert driver.reasons() == [("t", "error")] * 300
        assert driver.table("t").all() == {}
    assert sum(sizes) < 3 * max(sizes) + 100 * len(sizes)
