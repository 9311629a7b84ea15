"""A group of queries on Spark: one job for each batch."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.group_query import QueryState
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.spark.spark_executor import start_spark
from runtime.queries.by_hand import counting, read_counts, send

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def shared_at(directory: Path, **settings: Any) -> QueryGroup:
    broker = EmbeddedBroker.shared(directory)
    chosen = Settings(broker=f"file:{directory}", shards=2, **settings)
    return QueryGroup(broker, chosen, start_spark(chosen))


def total(shared: QueryGroup, name: str) -> int:
    return sum(shared.tables(name)["counts"].all().values())


def test_queries_can_be_added_and_removed_while_the_group_runs(spark: Any, tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    send(broker, 100)
    with shared_at(tmp_path) as shared:
        shared.add(counting("one"))
        shared.wait_caught_up(60)
        shared.add(counting("two"))
        send(broker, 50)
        shared.wait_caught_up(60)
        assert total(shared, "one") == total(shared, "two") == 150
        shared.remove("one")
        send(broker, 50)
        shared.wait_caught_up(60)
        assert (total(shared, "one"), total(shared, "two")) == (150, 200)
    assert shared.wait(0)
    with shared_at(tmp_path) as again:
        again.add(counting("one"))
        again.add(counting("two"))
        again.wait_caught_up(60)
        assert total(again, "one") == total(again, "two") == 200


@pytest.mark.usefixtures("spark")
def test_a_query_waits_for_its_sink_and_the_planner_lets_it_try_again(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    builder = StreamsBuilder("waiting")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").count(name="counts")
    calls: list[int] = []

    def take(records: Any) -> None:
        calls.append(len(list(records)))
        if len(calls) <= 4:
            raise ConnectionError("the door is shut")

    orders.to_callable(take, name="door", guarantee="at_least_once")
    send(broker, 100)
    with shared_at(tmp_path) as shared:
        shared.add(builder)
        shared.add(counting("sound"))
        shared.wait_caught_up(60)
        assert calls == [100] * 5, "the same share, until it is taken"
        assert total(shared, "waiting") == total(shared, "sound") == 100


def deadly(name: str) -> StreamsBuilder:
    """Ends the worker that comes to an order of 13."""
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount bigint")

    def die(value: Any) -> bool:
        if value["amount"] == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    orders.filter(die).group_by("user").count(name="counts")
    return builder


def test_a_worker_that_is_killed_fails_its_query_and_the_others_lose_nothing(spark: Any, tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    with shared_at(tmp_path) as shared:
        shared.add(counting("sound"))
        shared.add(deadly("deadly"))
        send(broker, 100)
        shared.wait_caught_up(60)
        send(broker, 100, amount=13)
        shared.wait_caught_up(120)
        found = shared.statuses()
        assert (found["sound"].state, found["deadly"].state) == (QueryState.RUNNING, QueryState.FAILED)
        assert "a Python worker of Spark died" in found["deadly"].error
        assert (total(shared, "sound"), total(shared, "deadly")) == (200, 100)
        assert shared.is_active


def test_readers_see_the_tables_of_all_queries_at_one_batch(spark: Any, tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    send(broker, 200)
    seen: set[int] = set()
    torn: list[Any] = []
    with shared_at(tmp_path) as shared:
        for name in ("one", "two"):
            shared.add(counting(name))
        shared.wait_caught_up(60)

        def feed() -> None:
            for _ in range(15):
                send(broker, 200)
                shared.wait_caught_up(60)

        feeder = threading.Thread(target=feed)
        feeder.start()
        while feeder.is_alive():
            one, two = read_counts(broker, ["one", "two"], lambda counts: [read() for read in counts.values()])
            seen.add(sum(one.values()))
            if one != two:
                torn.append((one, two))
        feeder.join()
        assert total(shared, "one") == total(shared, "two") == 3_200
    assert torn == []
    assert len(seen) > 3, "the reader saw too few different snapshots to prove anything"
