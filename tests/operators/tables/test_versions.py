"""Tables that keep versions: out of order they come, in order they stand."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from tests.oracle.canonical import canonical
from tests.oracle.lifetimes import VersionedRows
from tests.oracle.records import Input, Item, Position
from tests.oracle.tables import SetAside

from operators.core.agreement import Sent, check, ways
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import QueryError
from potok.state.lmdb.lmdb_store import LmdbStore


def prices(**options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    builder.table("prices", history=0.100, **options).to_stream().to("out")
    return builder


def send(driver: InProcess, *rows: tuple[int, Any], key: str = "k") -> None:
    for at, value in rows:
        driver.send("prices", value, key, timestamp=at)


@pytest.mark.parametrize("value", [int, None], ids=["typed", "dynamic"])
@pytest.mark.parametrize("batch_records", [None, 1])
def test_versions_that_arrive_out_of_order_are_stored_in_order(value: Any, batch_records: int | None) -> None:
    with InProcess(prices(value=value)) as driver:
        send(driver, (10, 1), (50, 5), (30, 3), (40, None), (20, 2))
        driver.run(batch_records)
        table = driver.table("prices")
        assert table.all() == {"k": 5}
        assert table.history("k") == [(10, 1), (20, 2), (30, 3), (40, None), (50, 5)]
        instants = (9, 10, 19, 20, 35, 40, 45, 50, 99)
        assert [table.get("k", as_of=at) for at in instants] == [None, 1, 1, 2, 3, None, None, 5, 5]
        assert table.get("k", "nothing", as_of=45) == "nothing"
        assert table.get("k", as_of=datetime(1970, 1, 1, 0, 0, 0, 20_000, UTC)) == 2
        assert table.history("unknown") == []
        assert [row.value for row in driver.read("out")][-1] == 5


def test_history_is_kept_longer_after_a_step_that_holds_records_back() -> None:
    builder = StreamsBuilder("q")
    builder.stream("prices").ordered("50 ms").to_table(history=0.100, name="made")
    with InProcess(builder) as driver:
        send(driver, (10, 1), (200, 2), (400, 4))
        driver.run()
        table = driver.table("made")
        assert table.history("k") == [(200, 2)]
        assert [table.get("k", as_of=at) for at in (250, 299)] == [2, 2]
        with pytest.raises(QueryError, match="goes back to 250, not to 249"):
            table.get("k", as_of=249)


def test_what_does_not_change_the_newest_version_is_not_a_change_of_the_row() -> None:
    with InProcess(prices()) as driver:
        for row in ((10, 1), (50, 5), (30, 3), (60, None), (55, 4), (70, 7)):
            send(driver, row)
            driver.run()
        assert [row.value for row in driver.read("out")] == [1, 5, None, 7]


@pytest.mark.parametrize("batch_records", [None, 1])
def test_of_two_versions_of_one_instant_the_later_position_counts(batch_records: int | None) -> None:
    with InProcess(prices()) as driver:
        send(driver, (10, "first"), (20, "next"), (10, "second"), (20, None), (20, "last"))
        driver.run(batch_records)
        assert driver.table("prices").history("k") == [(10, "second"), (20, "last")]


@pytest.mark.parametrize("batch_records", [None, 1])
def test_versions_are_kept_for_the_history_and_one_before_it(batch_records: int | None) -> None:
    with InProcess(prices()) as driver:
        send(driver, (10, 1), (20, 2), (30, 3), (140, 14))
        send(driver, (5, "gone"), key="deleted")
        send(driver, (15, "late"), key="late")
        driver.run(batch_records)
        table = driver.table("prices")
        assert table.history("k") == [(30, 3), (140, 14)]
        assert table.get("k", as_of=40) == 3
        with pytest.raises(QueryError, match="goes back to 40, not to 39"):
            table.get("k", as_of=39)
        assert driver.reasons() == [("prices", "late"), ("prices", "late")]


def test_a_deleted_row_is_forgotten_behind_the_history() -> None:
    with InProcess(prices(), shards=1) as driver:
        send(driver, (10, 1), (20, None))
        send(driver, (15, "x" * 600), key="l" * 600)
        driver.run()
        assert driver.table("prices").get("l" * 600, as_of=15) == "x" * 600
        assert driver.table("prices").history("l" * 600) == [(15, "x" * 600)]
        driver.advance_to(500)
        send(driver, (500, 2), key="l" * 600)
        driver.run()
        driver.advance_to(1_000)
        store = LmdbStore(driver._prepared.directory / "state" / "0", create=False)
        tables = ("prices", "prices/versions", "prices/by_time")
        left = {table: [cell.new for _, cell in store.scan(table) if cell.new is not None] for table in tables}
        assert [len(cells) for cells in left.values()] == [1, 1, 0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_versions_do_not_depend_on_the_batches(seed: int) -> None:
    random = Random(seed)
    sent, time = [], 0
    for _ in range(60):
        time += random.randrange(6)
        key = random.choice("abcd")
        at = max(0, time - random.choice([0, 0, 5, 30, 120]))
        sent.append(Sent("prices", key, random.choice([None, 1, 2, 3]), at, int(key > "b")))
    expected = oracle(sent)
    for cuts in ways(len(sent), random):
        with InProcess(prices(), shards=2, spread=True, partitions={"prices": 2}) as driver:
            for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True):
                for one in sent[start:stop]:
                    driver.send("prices", one.value, one.key, timestamp=one.at, partition=one.partition)
                driver.run()
            table, watermark = driver.table("prices"), driver.tables.watermark_ms("prices")
            assert watermark is not None
            for key in "abcd":
                for at in range(watermark - 100, time + 1, 3):
                    assert table.get(key, as_of=at) == expected.as_of(canonical(key), at)
            assert {canonical(key): value for key, value in table.all().items()} == expected.rows()


def oracle(sent: list[Sent]) -> VersionedRows:
    rows, clocks, offsets = VersionedRows(100), [0, 0], [0, 0]
    for one in sorted(sent, key=lambda one: one.partition):
        clocks[one.partition] = max(clocks[one.partition], one.at)
        position = Position("prices", one.partition, offsets[one.partition])
        offsets[one.partition] += 1
        try:
            rows.take(Item(one.key, one.value, one.at, clocks[one.partition], position, Input(None, None)))
        except SetAside:
            pass
    return rows


def test_steps_after_a_table_with_versions_see_its_newest() -> None:
    def program(builder: StreamsBuilder) -> None:
        table = builder.table("prices", history=1)
        table.group_by(lambda k, v: v).count(name="counts")
        table.filter(lambda v: v > 1, name="large")
        builder.stream("more").select_key(lambda k, v: "x").to_table(history=1, name="made")

    random = Random(9)
    topics = ["prices", "more"]
    check(
        program,
        [
            Sent(random.choice(topics), random.choice("abc"), random.choice([1, 2, 3]), random.randrange(500))
            for _ in range(40)
        ],
    )


def test_a_table_without_a_history_says_so() -> None:
    builder = StreamsBuilder("q")
    builder.table("t")
    with InProcess(builder) as driver, pytest.raises(QueryError, match='table "t" has no versions'):
        driver.table("t").history("k")
