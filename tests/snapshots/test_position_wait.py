"""Reading one's own writes: waiting until a query has committed past a position."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.errors import BrokerClosed
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.records.position import BadPosition, Position
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.snapshots.position_wait import Ledgers, PositionNotReachedError, PositionWait, wait_for_position
from potok.snapshots.tables import open_tables
from potok.state.entry import metadata_key_of
from runtime.one_query import group_of


def clean() -> StreamsBuilder:
    """Copies the positive numbers of `raw` to `clean`."""
    builder = StreamsBuilder("clean")
    builder.stream("raw").filter(lambda v: v > 0).to("clean")
    return builder


def totals(source: str = "clean") -> StreamsBuilder:
    builder = StreamsBuilder("totals")
    builder.stream(source).group_by_key().sum(lambda v: v, name="total")
    return builder


def write(broker: Broker, topic: str, *values: int) -> Position:
    records = [LogRecord(b"k", b"%d" % value) for value in values]
    results = broker.append(topic, records)
    return Position.after((topic, found.partition, found.first_offset + found.count) for found in results)


class Wait:
    """A wait that a test looks at between batches."""

    def __init__(self, broker: Broker, query: str, position: Position) -> None:
        self._broker, self._ledgers = broker, Ledgers(broker)
        self._wait = PositionWait(query, position, self._ledgers.links())

    def __call__(self) -> bool:
        self._ledgers.look(self._wait.queries)
        return self._wait.is_over(self._ledgers)

    @property
    def error(self) -> PositionNotReachedError:
        return self._wait.error(self._ledgers, self._broker)


def opened(tmp_path: Path) -> Broker:
    return open_broker(f"file:{tmp_path}")


def test_a_table_has_reached_a_position_once_its_query_has_committed_the_records_before_it(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(totals("t"), directory=tmp_path) as driver:
        position = write(broker, "t", 1, 2)
        is_over = Wait(broker, "totals", position)
        assert not is_over()
        assert str(is_over.error.reached) == "t:0:0"
        driver.run(more_to_come=True)
        assert is_over()
        write(broker, "t", 3)
        assert Wait(broker, "totals", position)()


def test_records_that_the_query_ignores_move_its_position_as_well(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(clean(), directory=tmp_path) as first, InProcess(totals(), directory=tmp_path) as second:
        is_over = Wait(broker, "totals", write(broker, "raw", -1, -2))
        assert not is_over()
        first.run(more_to_come=True)
        # Nothing was written to its source, so there is nothing to wait for.
        assert is_over()
        assert second.tables.snapshot()["total"] == {}


def test_a_position_is_followed_through_a_query_that_feeds_the_table(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(clean(), directory=tmp_path) as first, InProcess(totals(), directory=tmp_path) as second:
        is_over = Wait(broker, "totals", write(broker, "raw", 5, -1))
        second.run(more_to_come=True)
        assert not is_over()
        first.run(more_to_come=True)
        assert not is_over()
        assert (is_over.error.query, str(is_over.error.wanted), str(is_over.error.reached)) == (
            "totals",
            "clean:0:1",
            "clean:0:0",
        )
        second.run(more_to_come=True)
        assert is_over()
        assert second.tables.snapshot()["total"] == {"k": 5}


def test_an_old_position_does_not_wait_for_output_that_followed_it(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(clean(), directory=tmp_path) as first, InProcess(totals(), directory=tmp_path) as second:
        position = write(broker, "raw", 5)
        first.run(more_to_come=True)
        second.run(more_to_come=True)
        later = write(broker, "raw", 6)
        first.run(more_to_come=True)
        assert Wait(broker, "totals", position)()
        assert not Wait(broker, "totals", later)()


def test_output_is_followed_after_the_query_has_started_again(tmp_path: Path) -> None:
    for value in (5, 6):
        with InProcess(clean(), directory=tmp_path) as first:
            broker = opened(tmp_path)
            position = write(broker, "raw", value)
            first.run(more_to_come=True)
    broker = opened(tmp_path)
    with InProcess(totals(), directory=tmp_path) as second:
        is_over = Wait(broker, "totals", position)
        assert not is_over()
        second.run(more_to_come=True)
        assert is_over()
        assert second.tables.snapshot()["total"] == {"k": 11}


def test_a_history_that_is_missing_is_replaced_by_the_ends_of_the_topics(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(clean(), directory=tmp_path) as first, InProcess(totals(), directory=tmp_path) as second:
        position = write(broker, "raw", 5)
        first.run(more_to_come=True)
        broker.set_metadata({metadata_key_of("clean", "outputs"): None})
        is_over = Wait(broker, "totals", position)
        assert not is_over()
        second.run(more_to_come=True)
        assert is_over()


def test_a_position_in_a_topic_that_does_not_feed_the_table_is_reached_at_once(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(totals("t"), directory=tmp_path):
        assert Wait(broker, "totals", Position({"elsewhere": {0: 1_000_000}}))()


def test_output_that_returns_to_its_own_query_is_followed(tmp_path: Path) -> None:
    app = faust.App("loop")
    total = app.Table("total", default=int)
    first, second, third = (app.topic(name) for name in ("first", "second", "third"))

    @app.agent(first)
    async def one(numbers: Any) -> None:
        async for number in numbers:
            await second.send(key="k", value=number)

    @app.agent(second)
    async def two(numbers: Any) -> None:
        async for number in numbers:
            await third.send(key="k", value=number)

    @app.agent(third)
    async def three(numbers: Any) -> None:
        async for number in numbers:
            total["all"] += number

    broker, settings = opened(tmp_path), Settings(broker=f"file:{tmp_path}", shards=1)
    group = group_of(prepare(app, broker, settings), settings)
    is_over = Wait(broker, "loop", write(broker, "first", 5))
    seen = [is_over()]
    while not is_over():
        assert group.step()
        seen.append(open_tables(f"file:{tmp_path}", "loop")["total"].get("all") == 5)
    assert seen == [False, False, False, True]
    group.stop()


def test_two_queries_that_feed_each_other_do_not_make_a_wait_endless(tmp_path: Path) -> None:
    there, back = StreamsBuilder("there"), StreamsBuilder("back")
    there.stream("ping").filter(lambda v: v < 100).to("pong")
    pongs = back.stream("pong")
    pongs.map_values(lambda v: v + 1).to("ping")
    pongs.group_by_key().count(name="pongs")
    broker = opened(tmp_path)
    with InProcess(there, directory=tmp_path) as first, InProcess(back, directory=tmp_path) as second:
        is_over = Wait(broker, "back", write(broker, "ping", 1))
        rounds = 0
        while not is_over():
            first.run(more_to_come=True)
            second.run(more_to_come=True)
            rounds += 1
        assert 1 <= rounds <= 3


def test_a_query_that_never_ran_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with pytest.raises(PositionNotReachedError, match='"totals" has reached t:0:0, not t:0:1') as caught:
        wait_for_position(broker, "totals", "t:0:1", 0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.query, again.wanted) == ("totals", Position({"t": {0: 1}}))


def test_tables_are_opened_at_a_position(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    with InProcess(totals("t"), directory=tmp_path) as driver:
        position = write(broker, "t", 1)
        with pytest.raises(PositionNotReachedError):
            open_tables(f"file:{tmp_path}", "totals", wait_for=position, timeout=0)
        driver.run(more_to_come=True)
        with open_tables(f"file:{tmp_path}", "totals", wait_for=str(position), timeout=0) as tables:
            assert tables["total"].get("k") == 1
            with pytest.raises(BadPosition):
                tables.wait_for("nonsense")
        with pytest.raises(BrokerClosed):
            tables.wait_for(position)


@pytest.mark.parametrize("damage", [b"{", b"[[1]]", b'[["x", {}, {}]]', b"null"])
def test_a_damaged_history_is_an_error_that_names_it(tmp_path: Path, damage: bytes) -> None:
    broker = opened(tmp_path)
    with InProcess(clean(), directory=tmp_path):
        broker.set_metadata({metadata_key_of("clean", "outputs"): damage})
        look: Callable[[], object] = Wait(broker, "clean", Position({"raw": {0: 1}}))
        with pytest.raises(Exception, match="the output history of a query cannot be read"):
            look()
