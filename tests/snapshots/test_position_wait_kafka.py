"""Waiting for positions on Kafka, where transactions leave markers between records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from log.records import batch_of
from potok.dsl.builder import StreamsBuilder
from potok.log.broker import PublishedBatch, position_of
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.records.position import Position
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.snapshots.position_wait import Ledgers, PositionWait, wait_for_position
from runtime.one_query import group_of, process_all

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


def group(broker: Broker, builder: StreamsBuilder) -> QueryGroup:
    settings = Settings(broker=broker.url, shards=1)
    return group_of(prepare(builder, broker, settings), settings)


def caught_up(*groups: QueryGroup) -> None:
    for found in groups:
        process_all(found, lambda error: pytest.fail(str(error)))


def is_over(broker: Broker, query: str, position: Position) -> bool:
    ledgers = Ledgers(broker)
    wait = PositionWait(query, position, ledgers.links())
    ledgers.look(wait.queries)
    return wait.is_over(ledgers)


def appended(broker: Broker, topic: str, *values: bytes) -> Position:
    return position_of(topic, broker.append(topic, [LogRecord(b"k", value) for value in values], 0))


def aborted(kafka: ServerStatus, topic: str) -> None:
    """Leave a record and a marker that no reader sees."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"aborts-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"9999", b"k", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)


def test_markers_and_aborted_records_do_not_keep_a_wait_from_its_end(broker: Broker, kafka: ServerStatus) -> None:
    raw, clean, totals = "wait-raw", "wait-clean", "wait-totals"
    first, second = StreamsBuilder(clean), StreamsBuilder(totals)
    first.stream(raw).filter(lambda v: v > 0).to(clean)
    second.stream(clean).group_by_key().sum(lambda v: v, name="total")
    cleaning, adding = group(broker, first), group(broker, second)

    aborted(kafka, raw)
    plain = appended(broker, raw, b"5")
    staged = [broker.stage(None, raw, 0, batch_of([b"6", b"-1"]))]
    after: list[Position] = []

    def note(position: Position) -> dict[str, bytes | None]:
        after.append(position)
        return {"wait-noted": str(position).encode()}

    broker.publish(staged, {}, {}, PublishedBatch("wait-writer", 1, {}), note)
    (in_transaction,) = after
    aborted(kafka, raw)
    assert broker.get_metadata("wait-noted") == str(in_transaction).encode()
    # The aborted record and its marker, the plain record, then two records in a transaction.
    assert (str(plain), str(in_transaction)) == (f"{raw}:0:3", f"{raw}:0:5")

    assert not is_over(broker, totals, in_transaction)
    caught_up(cleaning)
    assert not is_over(broker, totals, in_transaction)
    caught_up(adding)
    assert is_over(broker, totals, in_transaction)
    with_tables = Position({clean: broker.end_offsets(clean)})
    wait_for_position(broker, totals, with_tables, 0)

    ignored = appended(broker, raw, b"-7")
    assert not is_over(broker, totals, ignored)
    caught_up(cleaning)
    assert is_over(broker, totals, ignored)
    cleaning.stop()
    adding.stop()


def test_a_position_behind_an_open_transaction_is_reached_once_that_ends(broker: Broker, kafka: ServerStatus) -> None:
    topic, query = "wait-open", "wait-open-totals"
    builder = StreamsBuilder(query)
    builder.stream(topic).group_by_key().sum(lambda v: v, name="total")
    adding = group(broker, builder)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "wait-open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1", b"k", partition=0)
    producer.flush(30)
    position = appended(broker, topic, b"2")
    caught_up(adding)
    assert not is_over(broker, query, position)
    producer.commit_transaction(30)
    while not is_over(broker, query, position):
        caught_up(adding)
        threading.Event().wait(0.01)
    adding.stop()
