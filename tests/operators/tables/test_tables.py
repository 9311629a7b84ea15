"""Tables at work: rows that replace each other, and steps on their changes."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder

TYPED = "name string, mail string"


@pytest.mark.parametrize("value", [TYPED, None], ids=["typed", "dynamic"])
def test_a_table_source_keeps_whole_rows(value: Any) -> None:
    builder = StreamsBuilder("q")
    builder.table("users", value=value).filter(lambda v: v["name"] == "Ann", name="ann")
    row = {"name": "Ann", "mail": "a@b"}
    with InProcess(builder) as driver:
        driver.send("users", row, "1", timestamp=1)
        driver.send("users", {"name": "Bob", "mail": "b@b"}, "2", timestamp=1)
        driver.run()
        assert driver.table("users").get("1") == row
        assert driver.table("ann").all() == {"1": row}


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_record_replaces_the_row_of_its_key_and_null_deletes_it(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.table("t").to_stream().to("out")
    with InProcess(builder) as driver:
        for key, value in (("a", 1), ("b", 1), ("a", 2), ("b", None), ("c", None)):
            driver.send("t", value, key, timestamp=10 - (value or 0))
        driver.run(batch_records)
        assert driver.table("t").all() == {"a": 2}
        last = {row.key: row.value for row in driver.read("out")}
        assert {key: value for key, value in last.items() if value is not None} == {"a": 2}


def test_a_record_without_a_key_is_set_aside() -> None:
    builder = StreamsBuilder("q")
    builder.table("t")
    builder.stream("s").to_table(name="made")
    with InProcess(builder) as driver:
        driver.send("t", 1, None, timestamp=1)
        driver.send("s", 1, None, timestamp=1)
        driver.run()
        assert driver.reasons() == [("made", "no key"), ("t", "no key")]


def test_to_table_orders_by_position_if_the_key_is_unchanged() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t").to_table(name="made")
    with InProcess(builder) as driver:
        driver.send("t", "first", "k", timestamp=100)
        driver.send("t", "second", "k", timestamp=1)
        driver.run()
        assert driver.table("made").all() == {"k": "second"}


@pytest.mark.parametrize("batch_records", [None, 1])
def test_to_table_orders_by_event_time_after_a_key_change(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.stream("t").select_key(lambda v: "k").map_values(lambda v: v["v"]).to_table(name="made")
    with InProcess(builder, partitions={"t": 2}) as driver:
        for partition, at, value in ((1, 5, "older"), (0, 9, "newest"), (0, 9, "newest, later"), (1, 7, "old")):
            driver.send("t", {"v": value}, "x", timestamp=at, partition=partition)
        driver.run(batch_records)
        assert driver.table("made").all() == {"k": "newest, later"}


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_delete_by_event_time_keeps_older_records_out(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.stream("t").select_key(lambda v: "k").map_values(lambda v: v["v"]).to_table(name="made")
    with InProcess(builder) as driver:
        for at, value in ((1, "a"), (9, None), (5, "late")):
            driver.send("t", {"v": value}, "x", timestamp=at)
        driver.run(batch_records)
        made = driver.table("made")
        assert (made.all(), made.get("k"), len(made)) == ({}, None, 0)


def test_a_table_of_two_topics_is_the_same_in_any_batches() -> None:
    found = []
    for between in (False, True):
        builder = StreamsBuilder("q")
        builder.stream("a").merge(builder.stream("b")).to_table(name="made")
        with InProcess(builder) as driver:
            driver.send("b", "from b", "k", timestamp=1)
            if between:
                driver.run()
            driver.send("a", "from a", "k", timestamp=2)
            driver.run()
            found.append(driver.table("made").all())
    assert found[0] == found[1]


@pytest.mark.parametrize("typed", [True, False])
def test_a_row_that_no_longer_passes_is_deleted_downstream(typed: bool) -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t", value=int if typed else None).to_table(name="made")
    table.filter(lambda v: v > 5, name="large").to_stream().to("out")
    table.filter_not(lambda v: v > 5, name="small")
    with InProcess(builder) as driver:
        for value in (9, 3, None, 7, 8):
            driver.send("t", value, "k", timestamp=1)
            driver.run()
        assert driver.tables.snapshot() == {"made": {"k": 8}, "large": {"k": 8}, "small": {}}
        assert [row.value for row in driver.read("out")] == [9, None, 7, 8]


@pytest.mark.parametrize("typed", [True, False])
def test_values_are_mapped_and_deletes_stay_deletes(typed: bool) -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t", value=int if typed else None).to_table(name="made")
    table.map_values(lambda v: v * 2, name="double").to_stream().to("out")
    with InProcess(builder) as driver:
        for key, value in (("a", 1), ("b", 2)):
            driver.send("t", value, key, timestamp=1)
        driver.run()
        driver.send("t", None, "a", timestamp=2)
        driver.run()
        assert driver.table("double").all() == {"b": 4}
        assert {row.key: row.value for row in driver.read("out")} == {"a": None, "b": 4}


def test_a_row_whose_function_raises_is_deleted_and_set_aside() -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t").to_table(name="made")
    table.map_values(lambda v: 6 // v, name="part").to_stream().to("out")
    table.filter(lambda v: 6 // v > 2, name="some")
    with InProcess(builder) as driver:
        for value in (2, 0, 1):
            driver.send("t", value, "k", timestamp=1)
            driver.run()
        assert driver.tables.snapshot() == {"made": {"k": 1}, "part": {"k": 6}, "some": {"k": 6 // 6}}
        assert [row.value for row in driver.read("out")] == [3, None, 6]
        assert driver.reasons() == [("part", "error"), ("some", "error")]


def test_a_row_that_was_never_there_is_not_deleted() -> None:
    builder = StreamsBuilder("q")
    builder.table("t").map_values(lambda v: 1 // 0).to_stream().to("out")
    with InProcess(builder) as driver:
        driver.send("t", 1, "k", timestamp=1)
        driver.run()
        assert driver.read("out") == []


def test_a_table_of_a_map_field_can_be_updated() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t", value="m map<string,int>").to_table(name="made").to_stream().to("out")
    with InProcess(builder) as driver:
        for number in (1, 2):
            driver.send("t", {"m": {"a": number}}, "k", timestamp=1)
            driver.run()
        assert driver.table("made").all() == {"k": {"m": {"a": 2}}}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("spread", [False, True])
def test_an_aggregate_of_an_aggregate_takes_its_changes(shards: int, spread: bool) -> None:
    builder = StreamsBuilder("q")
    counts = builder.stream("t").group_by_key().count(name="n")
    counts.to_stream().group_by(lambda v: v).count(name="by_count")
    counts.to_stream().group_by_key().max(name="same_shard")
    with InProcess(builder, shards=shards, spread=spread, partitions={"t": 2}) as driver:
        for key in "aabbbc":
            driver.send("t", 1, key, timestamp=1)
        driver.run()
        assert driver.table("same_shard").all() == {"a": 2, "b": 3, "c": 1}
        assert driver.table("by_count").all() == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_value_that_is_not_data_is_set_aside_and_the_row_stays(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    builder.stream("s").map_values(lambda v: object() if v == 2 else v).to_table(name="t")
    with InProcess(builder) as driver:
        for value in (1, 2, 3, 2):
            driver.send("s", value, "a", timestamp=value)
        driver.send("s", 2, "b", timestamp=9)
        driver.run(batch_records)
        assert driver.table("t").all() == {"a": 3}
        assert [letter.offset for letter in driver.dead_letters()] == [1, 3, 4]


def test_a_number_of_numpy_is_a_number() -> None:
    import numpy as np

    builder = StreamsBuilder("q")
    builder.stream("s").map_values(lambda v: np.float64(v)).to_table(name="t")
    with InProcess(builder) as driver:
        driver.send("s", 2, "a", timestamp=1)
        driver.run()
        assert driver.table("t").all() == {"a": 2.0}
