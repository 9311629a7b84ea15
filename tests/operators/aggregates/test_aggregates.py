"""Every kind of aggregate, as columns and row by row, in one batch and in many."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.expressions.functions import greatest
from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.snapshots.progress import read_progress

RECORDS: list[tuple[str, dict[str, Any], int]] = [
    ("a", {"n": 5, "x": 1.5, "s": "p"}, 30),
    ("b", {"n": None, "x": None, "s": None}, 10),
    ("a", {"n": None, "x": None, "s": None}, 40),
    ("a", {"n": 2, "x": 0.5, "s": "q"}, 20),
    ("c", {"n": -1, "x": -2.0, "s": "p"}, 5),
    ("a", {"n": 2, "x": 4.0, "s": "p"}, 20),
]
TYPED = "n bigint, x double, s string"


def run(make: Any, value: Any, batch_records: int | None = None, *, spread: bool = False) -> dict[Any, Any]:
    builder = StreamsBuilder("q")
    grouped: GroupedStream = builder.stream("t", value=value).group_by_key()
    make(grouped).to_stream().to("out")
    with InProcess(builder, shards=2, spread=spread) as driver:
        for key, record, at in RECORDS:
            driver.send("t", record, key, timestamp=at)
        driver.run(batch_records)
        assert driver.dead_letters() == []
        found = driver.table("made").all()
        latest = {row.key: row.value for row in driver.read("out")}
        assert {key: value for key, value in found.items() if value is not None} == {
            key: value for key, value in latest.items() if value is not None
        }
        return found


CASES = [
    ("count", lambda g: g.count(name="made"), {"a": 4, "b": 1, "c": 1}),
    ("sum of integers", lambda g: g.sum("n", name="made"), {"a": 9, "b": None, "c": -1}),
    ("sum of floats", lambda g: g.sum("x", name="made"), {"a": 6.0, "b": None, "c": -2.0}),
    ("min", lambda g: g.min("n", name="made"), {"a": 2, "b": None, "c": -1}),
    ("max", lambda g: g.max(lambda k, v: v["x"], name="made"), {"a": 4.0, "b": None, "c": -2.0}),
    ("min of text", lambda g: g.min("s", name="made"), {"a": "p", "b": None, "c": "p"}),
    ("avg", lambda g: g.avg("n", name="made"), {"a": 3.0, "b": None, "c": -1.0}),
    ("count_distinct", lambda g: g.count_distinct("s", name="made"), {"a": 2, "b": 0, "c": 1}),
    ("earliest", lambda g: g.earliest("x", name="made"), {"a": 0.5, "b": None, "c": -2.0}),
    ("latest", lambda g: g.latest("n", name="made"), {"a": None, "b": None, "c": -1}),
    ("collect_list", lambda g: g.collect_list("n", name="made"), {"a": [5, None, 2, 2], "b": [None], "c": [-1]}),
    (
        "reduce",
        lambda g: g.reduce(lambda one, two: two if two["n"] is None else one, name="made"),
        {"a": RECORDS[2][1], "b": RECORDS[1][1], "c": RECORDS[4][1]},
    ),
    ("fold", lambda g: g.aggregate(0, lambda k, v, agg: agg + 1, name="made"), {"a": 4, "b": 1, "c": 1}),
    (
        "fold to a dict",
        lambda g: g.aggregate(
            {"n": 10, "most": -5},
            lambda v, agg: {"n": agg["n"] + 1, "most": greatest(agg["most"], v["n"])},
            name="made",
        ),
        {"a": {"n": 14, "most": 5}, "b": {"n": 11, "most": -5}, "c": {"n": 11, "most": -1}},
    ),
    (
        "fold in place",
        lambda g: g.aggregate(list, lambda k, v, agg: agg.append(v["s"]) or agg, name="made"),
        {"a": ["p", None, "q", "p"], "b": [None], "c": ["p"]},
    ),
]


@pytest.mark.parametrize("value", [TYPED, None], ids=["typed", "dynamic"])
@pytest.mark.parametrize("batch_records", [None, 1], ids=["one batch", "batches of one"])
@pytest.mark.parametrize(("make", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_aggregate_is_the_same_typed_or_dynamic_and_in_any_batches(
    make: Any, expected: dict[str, Any], batch_records: int | None, value: Any
) -> None:
    assert run(make, value, batch_records) == expected


@pytest.mark.parametrize(("make", "expected"), [case[1:] for case in CASES[:4]], ids=[case[0] for case in CASES[:4]])
def test_an_aggregate_is_the_same_when_its_batch_is_spread_over_tasks(make: Any, expected: dict[str, Any]) -> None:
    assert run(make, TYPED, spread=True) == expected


def sums(*rows: tuple[str, int]) -> Any:
    builder = StreamsBuilder("q")
    builder.stream("t", value=int).group_by_key().sum(name="s")
    with InProcess(builder) as driver:
        for key, value in rows:
            driver.send("t", value, key, timestamp=1)
        driver.run()
        return driver.table("s").all()


def test_sums_of_two_keys_do_not_overflow_each_other() -> None:
    assert sums(("a", 1 << 62), ("b", 1 << 62)) == {"a": 1 << 62, "b": 1 << 62}


def test_a_sum_that_overflows_is_never_wrong_in_silence() -> None:
    with suppress(AggregateOverflow):
        assert sums(("a", 1 << 62), ("a", 1 << 62), ("b", -(1 << 62)), ("b", -(1 << 62)))["a"] != -(1 << 63)


def test_records_without_a_key_and_records_that_raise_are_set_aside() -> None:
    for value in ("n bigint", None):
        builder = StreamsBuilder("q")
        grouped = builder.stream("t", value=value).group_by_key()
        grouped.aggregate(0, lambda k, v, agg: agg + v["n"], name="total")
        with InProcess(builder) as driver:
            driver.send("t", {"n": 1}, "a", timestamp=1)
            driver.send("t", {"n": 1}, None, timestamp=1)
            driver.send("t", {"n": None}, "a", timestamp=1)
            driver.run()
            assert driver.table("total").all() == {"a": 1}
            assert driver.reasons() == [("total", "error"), ("total", "no key")], value


def test_a_sum_of_what_is_not_a_number_is_an_error_whichever_comes_first() -> None:
    for values in ((1, "text"), ("text", 1)):
        builder = StreamsBuilder("q")
        builder.stream("t").group_by_key().sum(name="s")
        with InProcess(builder) as driver:
            for value in values:
                driver.send("t", value, "k", timestamp=1)
            driver.run()
            assert driver.table("s").all() == {"k": 1}
            assert driver.reasons() == [("s", "error")]


def test_a_step_counts_each_record_once() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t", value=int).group_by_key()
    grouped.sum(name="s")
    grouped.latest(name="l").filter(lambda v: v > 0, name="f")
    builder.table("u", name="u")
    with InProcess(builder) as driver:
        for key in "aab":
            driver.send("t", 1, key, timestamp=1)
            driver.send("u", 1, key, timestamp=1)
        driver.run()
        progress = read_progress(driver.broker, "q")
        assert progress is not None
        assert {name: progress.steps[name]["in"] for name in ("t", "s", "l", "f", "u")} == {
            "t": 3,
            "s": 3,
            "l": 3,
            "f": 2,
            "u": 3,
        }
