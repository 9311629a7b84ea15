"""Windows: what is late, what closes, and when."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.table_view import WindowedKey
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import tumbling_ms


def windows(size: int, grace: int, retention: int, kind: str = "count", **options: Any) -> InProcess:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by_key().windowed_by(tumbling_ms(size, grace, retention))
    getattr(grouped, kind)(name="w").to_stream().to("out")
    return InProcess(builder, **options)


def send(driver: InProcess, *times: int, key: str = "k", partition: int | None = None) -> None:
    for at in times:
        driver.send("t", at, key, timestamp=at, partition=partition)


def starts(driver: InProcess) -> list[int]:
    return [row.start_ms for row in driver.table("w").all()]


@pytest.mark.parametrize("kind", ["count", "collect_list"])
@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_records_fall_into_their_windows_and_late_ones_are_set_aside(kind: str, batch_records: int | None) -> None:
    with windows(10, 5, 1_000, kind) as driver:
        send(driver, 1, 9, 10, 14, 3, 15, 4)
        driver.run(batch_records)
        found = driver.table("w").all()
        sizes = {key: value if kind == "count" else len(value) for key, value in found.items()}
        assert sizes == {WindowedKey("k", 0, 10): 3, WindowedKey("k", 10, 20): 3}
        (letter,) = driver.dead_letters()
        assert (letter.offset, letter.reason, letter.step) == (6, "late", "w")


@pytest.mark.parametrize("kind", ["count", "collect_list"])
@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_window_is_dropped_when_the_watermark_reaches_its_end_and_retention(
    kind: str, batch_records: int | None
) -> None:
    with windows(10, 0, 20, kind) as driver:
        send(driver, 5, 12, 29)
        driver.run(batch_records)
        assert starts(driver) == [0, 10, 20]
        send(driver, 30)
        driver.run(batch_records)
        assert starts(driver) == [10, 20, 30]


@pytest.mark.parametrize("kind", ["count", "collect_list"])
@pytest.mark.parametrize("batch_records", [None, 1, 3])
def test_a_window_that_closes_as_it_opens_leaves_no_row_behind(kind: str, batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").ordered("5 ms").group_by_key().windowed_by(tumbling_ms(10, 0, 0))
    table = getattr(grouped, kind)(name="w")
    table.filter(lambda v: True, name="all")
    table.group_by(lambda k, v: "one").count(name="windows")
    with InProcess(builder) as driver:
        send(driver, 1, 12, 13, 100, 108)
        driver.run(batch_records)
        assert starts(driver) == [row.start_ms for row in driver.table("all").all()] == [100]
        assert driver.table("windows").all() == {"one": 3}


def test_a_dropped_window_is_not_a_change_of_its_result() -> None:
    with windows(10, 0, 20) as driver:
        send(driver, 5, 100)
        driver.run()
        assert [(row.key["start"], row.value) for row in driver.read("out")] == [(0, 1), (100, 1)]


def test_the_slowest_partition_holds_back_the_watermark() -> None:
    with windows(10, 0, 20, partitions={"t": 2}) as driver:
        send(driver, 5, partition=0)
        send(driver, 500, partition=1)
        driver.run()
        assert starts(driver) == [0, 500]
        send(driver, 400, partition=0)
        driver.run()
        assert starts(driver) == [400, 500]


def test_a_partition_that_never_had_a_record_does_not_hold_back_the_watermark_at_the_end() -> None:
    with windows(10, 0, 20, partitions={"t": 3}) as driver:
        send(driver, 5, 500, partition=0)
        driver.run()
        assert starts(driver) == [500]


def test_an_idle_partition_returns_at_the_watermark() -> None:
    with windows(10, 0, 20, partitions={"t": 2}) as driver:
        send(driver, 5, 500, partition=0)
        driver.run()
        send(driver, 7, partition=1)
        driver.run()
        assert starts(driver) == [500]
        assert driver.reasons() == [("w", "late")]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_windows_close_on_shards_without_records(shards: int) -> None:
    with windows(10, 0, 20, shards=shards) as driver:
        for key in "abcdefgh":
            send(driver, 5, key=key)
        send(driver, 1_000, key="z")
        driver.run()
        assert driver.table("w").all() == {WindowedKey("z", 1_000, 1_010): 1}
        assert driver.run() == 0


@pytest.mark.parametrize("kind", ["count", "collect_list"])
@pytest.mark.parametrize("length", [440, 442, 450, 465, 470, 475, 600])
def test_windows_of_long_keys_close_too(kind: str, length: int) -> None:
    with windows(10, 0, 20, kind) as driver:
        send(driver, 5, key="k" * length)
        driver.run()
        assert driver.table("w").get("k" * length, at=5) is not None
        send(driver, 500, key="z")
        driver.run()
        assert starts(driver) == [500]


def test_dropped_windows_leave_nothing_behind() -> None:
    with windows(10, 0, 20, shards=1) as driver:
        for at in range(0, 400, 10):
            send(driver, at)
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        sizes = {name: store.entries(name) for name in ("w/windows", "w/horizon", "w", "w/deleted")}
        assert max(sizes.values()) <= 5, sizes


def test_negative_times_have_windows_too() -> None:
    with windows(10, 0, 1_000) as driver:
        send(driver, -15, -5, 3)
        driver.run()
        assert starts(driver) == [-20, -10, 0]
