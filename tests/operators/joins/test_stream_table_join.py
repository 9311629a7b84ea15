"""A stream joined with a table: the row as of the turn of each record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.duration import milliseconds
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import tumbling_ms
from potok.topology.validate import WaitsForItself

USERS = {"value": "name string, age bigint"}
ORDERS = {"value": "user string, n bigint"}


def values(driver: InProcess) -> list[Any]:
    return sorted((record.value for record in driver.read("out")), key=str)


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("spread", [False, True])
def test_changes_of_the_same_time_come_before_the_records(typed: bool, spread: bool) -> None:
    builder = StreamsBuilder("q")
    users = builder.table("users", **(USERS if typed else {}))
    orders = builder.stream("orders", **(ORDERS if typed else {}))
    orders.join(users, lambda o, u: [o["n"], u["name"]]).to("out")
    with InProcess(builder, shards=3, spread=spread) as driver:
        for n in range(6):
            driver.send("orders", {"user": "x", "n": n}, f"u{n}", timestamp=n)
            driver.send("users", {"name": "first", "age": n}, f"u{n}", timestamp=n)
            driver.send("users", {"name": f"user {n}", "age": n}, f"u{n}", timestamp=n)
        driver.run()
        assert values(driver) == [[n, f"user {n}"] for n in range(6)]
        driver.send("orders", {"user": "x", "n": 7}, "u1", timestamp=9)
        driver.send("users", None, "u1", timestamp=9)
        driver.run()
        assert len(values(driver)) == 6
        driver.send("orders", {"user": "x", "n": 8}, "u2", timestamp=9)
        driver.run()
        assert [8, "user 2"] in values(driver)


def test_records_keep_their_key_their_time_and_their_headers() -> None:
    builder = StreamsBuilder("q")
    users = builder.global_table("users", **USERS)
    builder.stream("orders", **ORDERS).left_join(users, "user", lambda k, o, u: k).to("out")
    with InProcess(builder) as driver:
        driver.send("users", {"name": "Ann", "age": 1}, "ann")
        driver.send("orders", {"user": "ann", "n": 1}, "o1", timestamp=5, headers={"trace": b"1"})
        driver.run()
        (record,) = driver.read("out")
        assert (record.key, record.value, record.timestamp_ms) == ("o1", "o1", 5)
        assert dict(record.headers) == {"trace": b"1"}


def test_keys_may_be_numbers_and_the_table_may_be_looked_up_by_a_number() -> None:
    builder = StreamsBuilder("q")
    users = builder.table("users", key=int, **USERS)
    builder.stream("orders", key=int, value="n bigint").join(users, lambda o, u: [o["n"], u["age"]], on="n").to("out")
    with InProcess(builder) as driver:
        driver.send("users", {"name": "Ann", "age": 30}, 7)
        driver.send("orders", {"n": 7}, 1)
        driver.send("orders", {"n": 8}, 2)
        driver.run()
        assert [(record.raw_key, record.value) for record in driver.read("out")] == [(b"1", [7, 30])]


def test_a_joiner_that_reads_nothing_of_the_row_still_needs_one() -> None:
    builder = StreamsBuilder("q")
    builder.stream("orders", **ORDERS).join(builder.table("users", **USERS), lambda o, u: o["n"]).to("out")
    with InProcess(builder) as driver:
        driver.send("users", {"name": "Ann", "age": 1}, "a")
        driver.send("orders", {"user": "", "n": 1}, "a")
        driver.send("orders", {"user": "", "n": 2}, "b")
        driver.run()
        assert values(driver) == [1]


def test_a_window_of_a_table_is_met_by_records_that_have_its_key() -> None:
    builder = StreamsBuilder("q")
    counts = builder.stream("clicks").group_by_key().windowed_by(tumbling_ms(10, 0, 1_000)).count(name="counts")
    of_window = counts.to_stream().filter(lambda v: v == 1)
    of_window.join(counts, lambda n, now: [n, now], name="j").to("out")
    with InProcess(builder) as driver:
        for at in (1, 2, 15):
            driver.send("clicks", 1, "a", timestamp=at)
        driver.run(1)
        assert [(record.key["start"], record.value) for record in driver.read("out")] == [(0, [1, 1]), (10, [1, 1])]


def test_a_table_that_keeps_its_rows_is_read_where_it_lies() -> None:
    builder = StreamsBuilder("q")
    users = builder.table("users")
    orders = builder.stream("orders")
    orders.join(users, name="direct").to("out")
    orders.join(users.filter(lambda v: v["age"] > 1), name="copied").to("out2")
    with InProcess(builder, shards=1) as driver:
        for n in range(5):
            driver.send("users", {"age": n}, f"u{n}")
        driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        assert (store.entries("direct/rows"), store.entries("copied/rows")) == (0, 3)


def filled(directory: Path, **topics: list[LogRecord]) -> Path:
    broker = EmbeddedBroker.shared(directory)
    for topic, records in topics.items():
        broker.create_topic(topic, 1)
        broker.append(topic, records, 0)
    return directory


@pytest.mark.parametrize(("waits", "expected"), [(False, None), (True, "row")])
def test_a_stream_may_wait_until_the_table_is_loaded(tmp_path: Path, waits: bool, expected: str | None) -> None:
    rows = [LogRecord(str(n).encode(), b"0", 0, ()) for n in range(20)] + [LogRecord(b"k", b'"row"', 10, ())]
    filled(tmp_path, a=[LogRecord(b"k", b"1", 0, ())], users=rows)
    builder = StreamsBuilder("q")
    users = builder.table("users")
    builder.stream("a").left_join(users, lambda n, row: row, wait_for_table=waits).to("out")
    with InProcess(builder, directory=tmp_path) as driver:
        driver.run(3)
        assert values(driver) == [expected]


def test_what_the_table_gets_later_is_not_waited_for(tmp_path: Path) -> None:
    filled(tmp_path, a=[], users=[LogRecord(b"x", b"0", 0, ())])
    builder = StreamsBuilder("q")
    builder.stream("a").left_join(builder.table("users"), lambda n, row: row, wait_for_table=True).to("out")
    with InProcess(builder, directory=tmp_path) as driver:
        driver.run()
        driver.restart()
        driver.send("a", 1, "k", timestamp=0)
        driver.send("users", "row", "k", timestamp=1)
        driver.run(1)
        assert values(driver) == [None]


def test_a_stream_cannot_wait_for_a_table_that_it_feeds() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("a")
    stream.join(stream.to_table(name="latest"), wait_for_table=True).to("out")
    with pytest.raises(WaitsForItself, match='nothing would ever be read of "a"'):
        builder.build()


def test_a_reference_is_dropped_by_an_inner_join_and_kept_by_a_left_one_while_it_waits() -> None:
    for how, expected in (("join", [[2, "row"]]), ("left_join", [[1, None], [2, "row"]])):
        builder = StreamsBuilder("q")
        orders = builder.stream("orders", **ORDERS)
        rows = builder.table("rows", value=str)
        options = {"on": "user", "grace": milliseconds(5)}
        getattr(orders, how)(rows, lambda o, row: [o["n"], row], **options, name="j").to("out")
        with InProcess(builder) as driver:
            driver.send("rows", b"row", "u", timestamp=0)
            driver.send("orders", {"user": None, "n": 1}, "a", timestamp=1)
            driver.send("orders", {"user": "u", "n": 2}, None, timestamp=1)
            driver.run()
            driver.advance_to(100)
            assert values(driver) == expected
            assert {record.key for record in driver.read("out")} <= {"a", None}
