"""Sessions from slots that merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.snapshots.table_view import WindowedKey
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import Session

SCHEMA = "n bigint, x double"
Program = Callable[[Any], Any]


def counted(grouped: Any) -> Any:
    return grouped.count(name="w")


def sessions(gap: int, program: Program = counted, *, grace: int = 0, retention: int = 1_000, **options: Any) -> Any:
    builder = StreamsBuilder("q")
    window = Session(gap, grace_ms=grace, retention_ms=max(grace, retention))
    program(builder.stream("t", value=SCHEMA).group_by_key().windowed_by(window)).to_stream().to("out")
    return InProcess(builder, **options)


def send(driver: InProcess, *times: int, key: str = "k", partition: int | None = None, **value: Any) -> None:
    for at in times:
        driver.send("t", value or {"n": at, "x": at / 2}, key, timestamp=at, partition=partition)


def rows(driver: InProcess, key: str = "k") -> list[tuple[int, int, Any]]:
    return [(window.start_ms, window.end_ms, value) for window, value in driver.table("w").windows(key)]


def changes(driver: InProcess) -> list[tuple[int, int, Any]]:
    return [(record.key["start"], record.key["end"], record.value) for record in driver.read("out")]


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_records_that_are_no_more_than_a_gap_apart_are_one_session(batch_records: int | None) -> None:
    with sessions(10) as driver:
        send(driver, 100, 110, 121, 131, 131)
        driver.run(batch_records)
        assert rows(driver) == [(100, 110, 2), (121, 131, 3)]


def test_a_session_that_grows_is_another_row() -> None:
    with sessions(10) as driver:
        send(driver, 100, 105)
        driver.run(1)
        assert changes(driver) == [(100, 100, 1), (100, 100, None), (100, 105, 2)]


def test_a_record_inside_a_session_changes_its_row() -> None:
    with sessions(10) as driver:
        send(driver, 100, 110, 105)
        driver.run(2)
        assert changes(driver) == [(100, 110, 2), (100, 110, 3)]


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_a_record_between_two_sessions_joins_them(batch_records: int | None) -> None:
    with sessions(10) as driver:
        send(driver, 100, 115)
        driver.run()
        assert rows(driver) == [(100, 100, 1), (115, 115, 1)]
        send(driver, 108)
        driver.run(batch_records)
        assert rows(driver) == [(100, 115, 3)]
        assert changes(driver)[2:] == [(100, 100, None), (115, 115, None), (100, 115, 3)]


def test_deleted_rows_contain_their_old_values() -> None:
    with sessions(10, lambda grouped: grouped.count(name="w").filter(lambda v: v > 1, name="long")) as driver:
        send(driver, 100, 105, 108)
        driver.run(1)
        assert driver.table("long").all() == {WindowedKey("k", 100, 108): 3}
        assert [value for *_, value in changes(driver)] == [2, None, 3]


def test_the_time_of_a_change_is_that_of_the_last_record() -> None:
    with sessions(10) as driver:
        send(driver, 100, 105, 98)
        driver.run()
        assert [record.timestamp_ms for record in driver.read("out")] == [105]


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_record_whose_own_session_would_have_closed_is_late(batch_records: int | None) -> None:
    with sessions(10, grace=5) as driver:
        send(driver, 100, 85, 84)
        driver.run(batch_records)
        assert rows(driver) == [(85, 85, 1), (100, 100, 1)]
        (letter,) = driver.dead_letters()
        assert (letter.offset, letter.step, letter.reason) == (2, "w", "late")
        assert "until 94" in letter.error and "stream time 100 is 1 ms past that" in letter.error


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_session_closes_when_nothing_that_is_accepted_can_reach_it(batch_records: int | None) -> None:
    with sessions(10, grace=5, shards=1) as driver:
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        send(driver, 100, 125)
        driver.run(batch_records)
        assert store.entries("w") == 0
        send(driver, 126)
        driver.run(batch_records)
        assert store.entries("w") == 1
        assert rows(driver) == [(100, 100, 1), (125, 126, 2)]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_sessions_of_keys_without_records_close_and_are_dropped(shards: int) -> None:
    with sessions(10, retention=20, shards=shards) as driver:
        for key in "abcdefgh":
            send(driver, 100, key=key)
        send(driver, 1_000, key="z")
        driver.run()
        assert driver.table("w").all() == {WindowedKey("z", 1_000, 1_000): 1}
        assert driver.run() == 0


def test_a_row_is_dropped_when_its_retention_is_over_and_that_is_not_a_change_of_its_result() -> None:
    with sessions(10, retention=50) as driver:
        send(driver, 100, 149)
        driver.run()
        assert rows(driver) == [(100, 100, 1), (149, 149, 1)]
        send(driver, 150)
        driver.run()
        assert rows(driver) == [(149, 150, 2)]
        assert [value for *_, value in changes(driver)] == [1, 1, None, 2]


def test_a_row_whose_retention_is_short_stays_as_long_as_it_may_change() -> None:
    with sessions(10, retention=0) as driver:
        send(driver, 100, 120)
        driver.run()
        assert rows(driver) == [(100, 100, 1), (120, 120, 1)]
        send(driver, 121)
        driver.run()
        assert rows(driver) == [(120, 121, 2)]


def test_a_derived_table_loses_the_rows_that_are_dropped() -> None:
    with sessions(10, lambda grouped: grouped.count(name="w").map_values(lambda v: -v, name="minus")) as driver:
        send(driver, 100, 5_000)
        driver.run()
        assert driver.table("minus").all() == {WindowedKey("k", 5_000, 5_000): -1}


def test_the_slowest_partition_holds_back_the_watermark() -> None:
    with sessions(10, retention=0, partitions={"t": 2}) as driver:
        send(driver, 100, key="a", partition=0)
        send(driver, 900, key="b", partition=1)
        driver.run()
        assert len(driver.table("w")) == 2
        send(driver, 500, key="a", partition=0)
        driver.run()
        assert rows(driver, "a") == [(500, 500, 1)]


def test_parts_of_a_session_from_several_partitions_are_one() -> None:
    with sessions(10, partitions={"t": 3}, spread=True) as driver:
        for partition in range(3):
            send(driver, 100 + 8 * partition, 130 + 8 * partition, partition=partition)
        driver.run()
        assert rows(driver) == [(100, 116, 3), (130, 146, 3)]


def folded(grouped: Any) -> Any:
    return grouped.aggregate(
        {"n": 5, "x": 0.5}, lambda k, v, agg: {"n": agg["n"] + v["n"], "x": agg["x"] + v["x"]}, name="w"
    )


@pytest.mark.parametrize("batch_records", [None, 1])
def test_an_initial_value_counts_once_when_sessions_join(batch_records: int | None) -> None:
    with sessions(10, folded) as driver:
        send(driver, 100, 115, 108, n=1, x=2.0)
        driver.run(batch_records)
        assert rows(driver) == [(100, 115, {"n": 8, "x": 6.5})]


@pytest.mark.parametrize(
    ("kind", "field", "expected"),
    [("sum", "n", [None, 7]), ("min", "n", [None, 3]), ("max", "x", [None, 2.5]), ("avg", "x", [None, 2.0])],
)
@pytest.mark.parametrize("batch_records", [None, 1])
def test_nulls_are_left_out(kind: str, field: str, expected: list[Any], batch_records: int | None) -> None:
    with sessions(10, lambda grouped: getattr(grouped, kind)(field, name="w")) as driver:
        send(driver, 100, n=None, x=None)
        send(driver, 200, n=4, x=1.5)
        send(driver, 205, n=None, x=None)
        send(driver, 208, n=3, x=2.5)
        driver.run(batch_records)
        assert [value for *_, value in rows(driver)] == expected


def test_a_sum_that_does_not_fit_stops_the_query() -> None:
    with sessions(10, lambda grouped: grouped.sum("n", name="w")) as driver:
        send(driver, 100, 101, n=(1 << 63) - 1, x=0.0)
        with pytest.raises(AggregateOverflow, match='"w"'):
            driver.run()


def test_a_field_that_cannot_be_read_is_a_dead_letter_and_nothing_else() -> None:
    with sessions(10, lambda grouped: grouped.sum(lambda v: v["n"] + 1, name="w")) as driver:
        send(driver, 100, n=1, x=0.0)
        send(driver, 108, n=None, x=0.0)
        send(driver, 116, n=2, x=0.0)
        driver.run()
        assert rows(driver) == [(100, 100, 2), (116, 116, 3)]
        assert driver.reasons() == [("w", "error")]


@pytest.mark.parametrize("length", [1, 440, 465, 473, 475, 600])
def test_keys_of_any_length_have_sessions(length: int) -> None:
    key = "k" * length
    with sessions(10, retention=30) as driver:
        send(driver, 100, 200, key=key)
        driver.run()
        assert rows(driver, key) == [(200, 200, 1)]
        send(driver, 220, key="z")
        driver.run()
        assert driver.table("w").get(key, at=200) == 1


@pytest.mark.parametrize("key", [5, [1, "a"], {"a": 1}])
def test_keys_of_any_kind_have_sessions(key: Any) -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by(lambda v: v).windowed_by(Session(10, retention_ms=1_000))
    grouped.count(name="w").to_stream().to("out")
    with InProcess(builder) as driver:
        for at in (100, 105, 500):
            driver.send("t", key, timestamp=at)
        driver.run(1)
        assert [value for _, value in driver.table("w").windows(key)] == [2, 1]
        assert driver.read("out")[-1].key == {"key": key, "start": 500, "end": 500}


def test_sessions_resume_after_a_restart() -> None:
    with sessions(10) as driver:
        for at in (100, 108, 116, 300, 95):
            send(driver, at)
            driver.run()
            driver.restart()
        assert rows(driver) == [(100, 116, 3), (300, 300, 1)]
        assert driver.reasons() == [("w", "late")]


def test_sessions_that_are_over_leave_nothing_behind() -> None:
    with sessions(10, retention=20, shards=1) as driver:
        for at in range(100, 4_000, 50):
            send(driver, at, key=f"k{at % 7}")
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        tables = ["w", "w/open", "w/closing", "w/by_end"]
        sizes = {name: store.entries(name) for table in tables for name in (table, f"{table}/deleted")}
        assert max(sizes.values()) <= 5, sizes


def test_a_key_that_is_busy_does_not_write_a_timer_for_each_batch() -> None:
    with sessions(10, shards=1) as driver:
        for at in range(100, 120):
            send(driver, at)
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        assert store.entries("w/closing") == 1
        assert rows(driver) == [(100, 119, 20)]


def test_open_and_closed_rows_are_counted_as_state() -> None:
    with sessions(10) as driver:
        send(driver, 100, 200)
        driver.run()
        assert driver._runner.metrics.state_keys == {"w": 2}
