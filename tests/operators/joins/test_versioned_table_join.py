"""A stream joined with a table as it was: the row as of the record's own time, whatever came first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import Input, recompute
from tests.properties.compare import differences, made_by

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.duration import milliseconds
from potok.operators.tables.history import Version, as_of, still_needed
from potok.state.lmdb.lmdb_store import LmdbStore

TYPED = {"value": "n bigint"}


def versions(*times: int, deletes: tuple[int, ...] = ()) -> list[Version]:
    return [Version(at, at, ("t", 0, n), None if at in deletes else f"v{at}") for n, at in enumerate(times)]


def value_at(row: list[Version], at: int) -> Any:
    found = as_of(row, at)
    return found and found.value


def test_the_version_of_an_instant_is_the_last_one_before_it() -> None:
    row = versions(10, 30, 20)
    assert [value_at(row, at) for at in (9, 10, 29, 30, 99)] == [None, "v10", "v20", "v30", "v30"]


def test_only_versions_that_can_still_be_read_are_kept() -> None:
    row = versions(10, 20, 30)
    assert still_needed(row, 9) == row
    assert still_needed(row, 25) == row[1:]
    assert still_needed(row, 99) == row[2:]


def test_a_delete_is_forgotten_once_nothing_before_it_can_be_asked_for() -> None:
    row = versions(10, 20, deletes=(20,))
    assert still_needed(row, 15) == row
    assert still_needed(row, 20) == []


def looked_up(how: str = "left_join", grace: int | None = 10, **options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    typed = options.pop("typed", {})
    table = builder.table("t", **typed, **options)
    times = {} if grace is None else {"grace": milliseconds(grace)}
    getattr(builder.stream("s", **typed), how)(table, lambda s, t: [s["n"], t and t["n"]], **times, name="j").to("out")
    return builder


def values(driver: InProcess) -> list[Any]:
    return sorted((record.value for record in driver.read("out")), key=str)


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_record_waits_and_meets_the_row_of_its_time(batch_records: int | None) -> None:
    with InProcess(looked_up()) as driver:
        driver.send("s", {"n": 1}, "a", timestamp=5, headers={"trace": b"1"})
        driver.send("t", {"n": 7}, "a", timestamp=5)
        driver.send("t", {"n": 8}, "a", timestamp=6)
        driver.run(batch_records)
        assert driver.read("out") == []
        driver.advance_to(15)
        assert driver.read("out") == []
        driver.advance_to(16)
        (record,) = driver.read("out")
        assert (record.value, record.timestamp_ms, dict(record.headers)) == ([1, 7], 5, {"trace": b"1"})


def test_rows_and_records_that_are_over_leave_nothing_behind() -> None:
    with InProcess(looked_up(), shards=1) as driver:
        for at in range(0, 600, 20):
            driver.send("s", {"n": at}, "a", timestamp=at)
            driver.send("t", {"n": at}, "a", timestamp=at)
            driver.send("t", {"n": at}, f"gone {at}", timestamp=at)
            driver.send("t", None, f"gone {at}", timestamp=at)
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        names = ("j/waiting", "j/versions", "j/versions/by_end", "j/versions/deleted", "j/versions/by_end/deleted")
        sizes = {name: store.entries(name) for name in names}
        assert max(sizes.values()) <= 12, sizes


def test_a_table_with_a_history_is_asked_for_the_time_of_the_record_at_once() -> None:
    with InProcess(looked_up(grace=None, history=milliseconds(50))) as driver:
        for at in (10, 20, 30):
            driver.send("t", {"n": at}, "a", timestamp=at)
        for at in (5, 15, 25, 99):
            driver.send("s", {"n": at}, "a", timestamp=at)
        driver.run()
        assert values(driver) == [[15, 10], [25, 20], [5, None], [99, 30]]


def test_what_a_table_with_a_history_does_not_accept_the_join_does_not_see() -> None:
    with InProcess(looked_up(grace=5, history=milliseconds(10))) as driver:
        driver.send("t", {"n": 1}, "z", timestamp=100)
        driver.send("t", {"n": 2}, "a", timestamp=90)
        driver.send("t", {"n": 3}, "b", timestamp=91)
        for key in "ab":
            driver.send("s", {"n": 0}, key, timestamp=100)
        driver.run()
        driver.advance_to(1_000)
        assert values(driver) == [[0, 3], [0, None]]
        assert driver.reasons() == [("t", "late")]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("sst"),
        st.sampled_from(["a", "a", "b"]),
        st.integers(0, 60),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["join", "left_join"]),
    st.sampled_from([0, 4, 25]),
    st.booleans(),
    EVENTS,
    st.sets(st.integers(0, 30), max_size=4),
    st.sampled_from([None, 1, 5]),
)
def test_the_oracle_finds_the_same_rows_however_records_fall_into_batches(
    how: str, grace: int, typed: bool, events: list[Any], cuts: set[int], size: int | None
) -> None:
    builder = looked_up(how, grace, typed=TYPED if typed else {})
    inputs: dict[str, dict[int, list[Input]]] = {"s": {}, "t": {}}
    with InProcess(builder, partitions={"s": 2, "t": 2}) as driver:
        for n, (topic, key, at, deleted) in enumerate(events):
            value = None if deleted and topic == "t" else json.dumps({"n": n}).encode()
            partition = n % 2 if topic == "s" else "ab".index(key)
            rows = inputs[topic].setdefault(partition, [])
            headers = {"source": f"{topic}/{partition}/{len(rows)}".encode()}
            rows.append(Input(key.encode(), value, at))
            driver.send(topic, value, key, timestamp=at, partition=partition, headers=headers)
            if n in cuts:
                driver.run(size, more_to_come=True)
                driver.restart()
        driver.run(size)
        expected = recompute(driver._topology, inputs)
        found = differences(made_by(driver, expected), expected)
        # Records are let go by their time, not by their place.
        assert [text for text in found if "stream out: order" not in text] == []
