"""Sagas and patterns on Kafka: commands, timers and open matches survive a restart, and operators act on instances."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import potok
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
from potok.patterns import cep
from potok.records.log_record import LogRecord
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.snapshots.patterns.saga_instances import SagaInstances, saga_named, sagas_of
from potok.spark.spark_executor import start_spark

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)


@potok.event("kafka.booked")
@dataclass
class Booked:
    trip: str


@potok.event("kafka.paid")
@dataclass
class Paid:
    trip: str


@potok.event("kafka.declined")
@dataclass
class Declined:
    trip: str


@potok.event("kafka.seated")
@dataclass
class Seated:
    trip: str


@potok.event("kafka.refunded")
@dataclass
class Refunded:
    trip: str


@dataclass
class Pay:
    trip: str


@dataclass
class PayBack:
    trip: str


@dataclass
class Seat:
    trip: str


@potok.saga("kafka-trip", by="trip", starts=Booked)
class Trip:
    payment = potok.step(send=Pay, ok=Paid, failed=Declined, undo=PayBack, undone=Refunded)
    seat = potok.step(send=Seat, ok=Seated, timeout="1 hour")


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


def run(broker: Broker, *builders: potok.StreamsBuilder) -> None:
    settings = Settings(broker=broker.url, shards=2)
    with QueryGroup(broker, settings, start_spark(settings)) as group:
        for builder in builders:
            group.add(builder)
        group.wait_caught_up(120)


def send(broker: Broker, kind: str, *trips: str) -> None:
    for trip in trips:
        value = {"event_id": f"{kind}-{trip}", "event_type": f"kafka.{kind}", "data": {"trip": trip}}
        broker.append("kafka-trips", [LogRecord(trip.encode(), json.dumps(value).encode())])


def sent(broker: Broker, topic: str) -> dict[str, list[str]]:
    """Return the idempotency keys of the commands of each instance."""
    found: dict[str, list[str]] = {}
    with Consumer(broker, topic, start="earliest", until_end=True) as consumer:
        for record in consumer:
            key = (dict(record.headers)["idempotency-key"] or b"").decode()
            found.setdefault(record.key_text() or "", []).append(key.split("/", 2)[2])
    return found


@pytest.mark.usefixtures("spark")
def test_a_saga_on_kafka_sends_each_command_once_and_takes_what_operators_say(broker: Broker) -> None:
    broker.create_topic("kafka-trips", 2)
    builder = potok.StreamsBuilder("kafka-sagas")
    builder.saga(Trip, events="kafka-trips", commands="kafka-trip-commands")
    send(broker, "booked", "t1", "t2", "t3")
    run(broker, builder)
    send(broker, "paid", "t1", "t2")
    send(broker, "paid", "t1")  # a duplicate
    send(broker, "declined", "t3")
    run(broker, builder)
    instances = SagaInstances(broker, saga_named(sagas_of(broker, ["kafka-sagas"]), "kafka-trip"))
    assert {one["id"]: one["state"] for one in instances.listed()} == {
        "t1": "running",
        "t2": "running",
        "t3": "aborted",
    }
    assert instances.get("t1")["next_timer"]["name"] == "timeout:seat"
    instances.control("t2", "abort")
    send(broker, "seated", "t1")
    run(broker, builder)
    assert {one["id"]: one["state"] for one in instances.listed()} == {
        "t1": "completed",
        "t2": "aborting",
        "t3": "aborted",
    }
    assert sent(broker, "kafka-trip-commands") == {
        "t1": ["payment/1", "seat/1"],
        "t2": ["payment/1", "seat/1", "payment.undo/1"],
        "t3": ["payment/1"],
    }
    assert sum(broker.end_offsets("kafka-sagas-dead-letters").values()) == 0


@pytest.mark.usefixtures("spark")
def test_open_matches_on_kafka_survive_a_restart_and_matches_come_once(broker: Broker) -> None:
    broker.create_topic("kafka-payments", 2)
    small = cep.event("small", lambda e: e["amount"] < 10)
    big = cep.event("big", lambda e, m: e["amount"] > 100 * m["small"].first["amount"])
    builder = potok.StreamsBuilder("kafka-fraud")
    payments = builder.stream("kafka-payments", value="amount bigint").group_by_key()
    found = payments.match(small.times(2).followed_by(big).within("10 min"), after="skip_past_last", name="fraud")
    found.map_values(lambda m: m["big"][0]["amount"]).to("kafka-alerts")
    found.timeouts.map_values(lambda m: len(m["small"])).to("kafka-almost")

    def pay(key: str, *amounts: int, first_ms: int) -> None:
        for number, amount in enumerate(amounts):
            value = json.dumps({"amount": amount}).encode()
            broker.append("kafka-payments", [LogRecord(key.encode(), value, first_ms + number)])

    def read(topic: str) -> list[tuple[str | None, int]]:
        with Consumer(broker, topic, start="earliest", until_end=True) as consumer:
            return sorted((record.key_text(), record.json()) for record in consumer)

    pay("ann", 1, 2, first_ms=1_000)
    pay("bob", 5, 600, first_ms=1_002)
    run(broker, builder)
    pay("ann", 500, first_ms=2_000)
    for first_ms in (10_000_000, 20_000_000):  # the watermark of a batch is that of the records before it
        for number in range(20):
            pay(f"end-{number}", 50, first_ms=first_ms)
        run(broker, builder)
    assert read("kafka-alerts") == [("ann", 500)]
    assert read("kafka-almost") == [("bob", 1)]
    assert sum(broker.end_offsets("kafka-fraud-dead-letters").values()) == 0
