"""A shared query over Kafka: every member has its own transactions, small batches and large ones in one job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.log.waiting import until

import potok
from potok import StreamsBuilder
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
from potok.monitoring.exposition import expose
from potok.monitoring.scrape import Scrape
from potok.records.log_record import LogRecord
from potok.runtime.monitoring.query_collector import QueryCollector
from potok.runtime.monitoring.readings import group_readings
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.spark.spark_executor import start_spark

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)

TOPIC = "shared-orders"


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


def counting(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream(TOPIC, value="user string")
    orders.group_by("user").count(name="counts").to_stream().to(f"{name}-counts")
    return builder


def latest(broker: Broker, topic: str) -> dict[str, int]:
    with Consumer(broker, topic, start="earliest", until_end=True) as consumer:
        return {record.key_text() or "": record.json() for record in consumer}


@pytest.mark.usefixtures("spark")
def test_the_lag_of_a_query_is_that_of_the_group_of_its_name(broker: Broker) -> None:
    broker.create_topic("lag-orders", 1)
    builder = StreamsBuilder("lagging")
    builder.stream("lag-orders", value="user string").group_by("user").count(name="counts")
    records = [LogRecord(b"k", b'{"user": "u"}', 1_000)] * 5
    broker.append("lag-orders", records)
    settings = Settings(broker=broker.url, shards=2)
    with QueryGroup(broker, settings, start_spark(settings)) as shared:
        shared.add(builder)
        shared.wait_caught_up(90)
        shared.pause("lagging")
        broker.append("lag-orders", records[:3])
        collector, scrape = QueryCollector(broker, lambda: group_readings(shared)), Scrape()
        collector(Scrape())
        collector.lag_times.settle()
        collector(scrape)
        lines = expose(scrape).body.decode().splitlines()
        until(lambda: broker.committed("lagging", "lag-orders") == {0: 5}, 30)
    assert 'kafka_consumergroup_group_lag{group="lagging",topic="lag-orders",partition="0"} 3' in lines
    assert any(line.startswith('potok_source_lag_seconds{query="lagging",topic="lag-orders"}') for line in lines)


@pytest.mark.usefixtures("spark")
def test_queries_write_in_transactions_of_their_own_whatever_reads_their_records(broker: Broker) -> None:
    broker.create_topic(TOPIC, 3)
    records = [LogRecord(b"%d" % number, b'{"user": "u%d"}' % (number % 7), 1_000) for number in range(700)]
    broker.append(TOPIC, records)
    names = ["shared-small", "shared-large"]
    settings = Settings(broker=broker.url, shards=2)
    with QueryGroup(broker, settings, start_spark(settings)) as shared:
        for name in names:
            shared.add(counting(name))
        # Every batch of this one goes through Spark's connector, where it is there, and through a shuffle.
        shared._queries["shared-large"].runner.small_batch = -1
        shared.wait_caught_up(90)
        broker.append(TOPIC, records)
        shared.wait_caught_up(60)
    for name in names:
        expected = {f"u{n}": 200 for n in range(7)}
        assert dict(potok.open_tables(broker.url, name)["counts"].all()) == expected
        assert latest(broker, f"{name}-counts") == expected
