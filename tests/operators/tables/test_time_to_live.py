"""Tables whose rows are deleted when nobody has changed them for long enough."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from operators.core.agreement import Sent, check
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import tumbling


def carts(**options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    builder.table("carts", ttl=0.010, **options).to_stream().to("out")
    return builder


@pytest.mark.parametrize("value", [int, None], ids=["typed", "dynamic"])
@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_row_is_deleted_when_the_watermark_has_passed_its_last_change(value: Any, batch_records: int | None) -> None:
    with InProcess(carts(value=value)) as driver:
        for key, at in (("a", 1), ("b", 5), ("a", 8), ("c", 15)):
            driver.send("carts", at, key, timestamp=at)
        driver.run(batch_records)
        assert driver.table("carts").all() == {"a": 8, "c": 15}
        driver.advance_to(18)
        assert driver.table("carts").all() == {"c": 15}
        gone = [(row.key, row.timestamp_ms) for row in driver.read("out") if row.value is None]
        assert gone in ([("b", 15), ("a", 18)], [("a", 18)])


def test_a_row_that_is_over_when_it_comes_never_shows() -> None:
    with InProcess(carts(), partitions={"carts": 1}) as driver:
        driver.send("carts", 1, "a", timestamp=100)
        driver.run()
        driver.send("carts", 2, "b", timestamp=50)
        driver.run()
        assert driver.table("carts").all() == {"a": 1}
        driver.send("carts", 3, "a", timestamp=60)
        driver.run()
        assert driver.table("carts").all() == {}
        assert [(row.key, row.value) for row in driver.read("out")] == [("a", 1), ("a", None)]


def test_the_slowest_partition_decides() -> None:
    with InProcess(carts(), partitions={"carts": 2}) as driver:
        driver.send("carts", 1, "a", timestamp=1, partition=0)
        driver.send("carts", 1, "b", timestamp=2, partition=1)
        driver.send("carts", 1, "c", timestamp=50, partition=0)
        driver.run()
        assert set(driver.table("carts").all()) == {"a", "b", "c"}
        driver.send("carts", 1, "d", timestamp=11, partition=1)
        driver.run()
        assert set(driver.table("carts").all()) == {"b", "c", "d"}


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_left_does_not_depend_on_the_batches(seed: int) -> None:
    def program(builder: StreamsBuilder) -> None:
        table = builder.table("carts", ttl=0.020)
        table.filter(lambda v: v % 2 == 0, name="even")
        table.group_by(lambda k, v: v % 3).count(name="counts").to_stream().to("changes")
        stream = builder.stream("events").select_key(lambda k, v: "ab"[v % 2])
        stream.to_table(ttl=0.015, name="by_time").map_values(lambda v: [v], name="mapped")
        builder.stream("more").to_table(ttl=0.005, name="by_position")

    random = Random(seed)
    sent, time = [], 0
    for _ in range(60):
        time += random.randrange(4)
        topic, gone = random.choice(["carts", "events", "more"]), random.random() < 0.15
        at, key = max(0, time - random.choice([0, 0, 3, 25])), random.choice("abcdef")
        sent.append(Sent(topic, key, None if gone and topic != "events" else random.randrange(9), at, int(key > "c")))
    check(program, sent, seed)


@pytest.mark.parametrize("by_time", [False, True])
def test_rows_expire_by_processing_time(by_time: bool) -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("t")
    (stream.select_key(lambda k, v: k) if by_time else stream).to_table(
        ttl="1 hour", ttl_clock="processing", name="made"
    ).to_stream().to("out")
    with InProcess(builder) as driver:
        driver.send("t", 1, "a", timestamp=7)
        driver.run()
        driver.wait(1800)
        driver.send("t", 2, "b", timestamp=1)
        driver.run()
        driver.wait(1800)
        assert driver.table("made").all() == {"b": 2}
        driver.send("t", 3, "b", timestamp=9)
        driver.run()
        driver.wait(1900)
        assert driver.table("made").all() == {"b": 3}
        driver.wait(1900)
        assert driver.table("made").all() == {}
        out = [(row.key, row.value, row.timestamp_ms) for row in driver.read("out")]
        assert out == [("a", 1, 7), ("b", 2, 1), ("a", None, 7), ("b", 3, 9), ("b", None, 9)]


def deletes_in_windows(**options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    gone = builder.table("carts", **options).to_stream().filter(lambda v: v is None).select_key(lambda k, v: "all")
    gone.group_by_key().windowed_by(tumbling("10 ms")).emit_final().count(name="gone").to_stream().to("out")
    return builder


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_a_delete_has_the_stream_time_of_the_record_that_was_over_when_it_came(batch_records: int | None) -> None:
    with InProcess(deletes_in_windows(ttl=0.010)) as driver:
        for key, at in (("b", 60), ("a", 95), ("z", 100), ("a", 60), ("z", 101)):
            driver.send("carts", at, key, timestamp=at)
            if batch_records == 1:
                driver.run()
        driver.run(batch_records)
        assert [(row.key["start"], row.value) for row in driver.read("out")] == [(70, 1)]
        assert driver.reasons() == [("gone", "late")]


def test_deletes_by_processing_time_have_the_stream_time() -> None:
    with InProcess(deletes_in_windows(ttl="1 hour", ttl_clock="processing")) as driver:
        driver.send("carts", 1, "a", timestamp=7)
        driver.send("carts", 1, "b", timestamp=93)
        driver.send("carts", 1, "z", timestamp=95)
        driver.run()
        driver.wait(3_700)
        driver.send("carts", 1, "z", timestamp=200)
        driver.run()
        assert [(row.key["start"], row.value) for row in driver.read("out")] == [(90, 2)]
        assert driver.reasons() == [("gone", "late")]


def test_nothing_is_left_behind_of_what_is_over() -> None:
    with InProcess(carts(), shards=1) as driver:
        for at in range(0, 300, 3):
            driver.send("carts", at, f"k{at}", timestamp=at)
            driver.run()
        driver.advance_to(1_000)
        driver.send("carts", 1, "last", timestamp=1_000)
        driver.run()
        driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0", create=False)
        found = [key for table in ("carts", "carts/since") for key, cell in store.scan(table) if cell.new is not None]
        assert [key[-4:] for key in found] == [b"last", b"last"]


def test_a_ttl_may_be_changed_but_not_added() -> None:
    with InProcess(carts()) as driver:
        driver.send("carts", 1, "a", timestamp=1)
        driver.run()
        longer = StreamsBuilder("q")
        longer.table("carts", ttl=0.5).to_stream().to("out")
        driver.replace(longer)
        driver.advance_to(100)
        assert driver.table("carts").all() == {"a": 1}
        driver.replace(carts())
        driver.send("carts", 2, "b", timestamp=100)
        driver.run()
        assert driver.table("carts").all() == {"b": 2}
        without = StreamsBuilder("q")
        without.table("carts").to_stream().to("out")
        with pytest.raises(TopologyError, match="its cells were objects with event times"):
            driver.replace(without)
        driver.replace(carts())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ttl": 1, "ttl_clock": "wall"}, "is not known"),
        ({"ttl": 1, "history": 1}, "either a ttl or a history"),
        ({"ttl": 0}, "keeps nothing"),
        ({"history": "0 s"}, "keeps nothing"),
    ],
)
def test_a_wrong_lifetime_is_found_when_it_is_written(options: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        StreamsBuilder("q").table("t", **options)
    with pytest.raises(TopologyError, match=message):
        StreamsBuilder("q").stream("t").to_table(**options)


def test_the_description_says_how_long_rows_live() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", ttl="1 day")
    builder.stream("s").to_table(history="7 days", name="made")
    assert "time to live 1d" in builder.describe()
    assert "history of 7d" in builder.describe()
