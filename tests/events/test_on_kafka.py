"""Events on Kafka: written by the `cloudevents` package, read, written and read by it again; subjects are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pytest
from cloudevents.core.bindings import kafka as binding
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

import potok
from potok.events.personal.key_store import open_key_store
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.operations.forget_subject import forget_subject
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.spark.spark_executor import start_spark

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)


@potok.event("kafka.ordered", version=2)
@dataclass
class Ordered:
    user_id: str
    amount: float


@potok.event("kafka.invoiced")
@dataclass
class Invoiced:
    user_id: str
    note: Annotated[str, potok.personal(subject="user_id")]


@potok.upcast("kafka.ordered", from_version=1)
def ordered_1(data: dict[str, object]) -> object:
    return {**data, "amount": 1.0}


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


@pytest.mark.usefixtures("spark")
def test_events_cross_kafka_in_both_modes_and_subjects_are_forgotten(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("kafka-orders", 2)
    for number, (mode, version) in enumerate([("binary", "2"), ("structured", "2"), ("binary", "1")]):
        data = {"user_id": f"u{number}", "amount": 5.0} if version == "2" else {"user_id": f"u{number}"}
        attributes = {"id": f"e{number}", "source": "/shop", "type": "kafka.ordered", "specversion": "1.0"}
        event = CloudEvent({**attributes, "eventversion": version, "datacontenttype": "application/json"}, data)
        message = getattr(binding, f"to_{mode}")(event, JSONFormat(), lambda _: None)
        headers = tuple(message.headers.items())
        broker.append("kafka-orders", [LogRecord(f"u{number}".encode(), message.value, headers=headers)])
    builder = potok.StreamsBuilder("kafka-events")
    orders = builder.events("kafka-orders", types=[Ordered])
    invoices = orders.map_values(lambda e: Invoiced(e.user_id, f"a secret of {e.user_id}: {e.amount}"))
    invoices.to("kafka-invoices", envelope="cloudevents_binary", event=Invoiced)
    reading = potok.StreamsBuilder("kafka-notes")
    reading.events("kafka-invoices", types=[Invoiced]).map_values(lambda e: e.note).to("kafka-notes-out")
    settings = Settings(broker=broker.url, shards=2, personal_keys=str(tmp_path / "keys"))
    broker.create_topic("kafka-invoices", 2)
    with QueryGroup(broker, settings, start_spark(settings)) as group:
        group.add(builder)
        group.wait_caught_up(120)
    with Consumer(broker, "kafka-invoices", start="earliest", until_end=True) as consumer:
        found = {record.key_text(): record for record in consumer}
    assert set(found) == {"u0", "u1", "u2"}
    for key, record in found.items():
        assert record.value is not None and b"a secret" not in record.value
        message = binding.KafkaMessage(dict(record.headers), None, record.value)
        read = binding.from_kafka(message, JSONFormat())
        assert (read.get_type(), read.get_extension("causationid")) == ("kafka.invoiced", f"e{str(key)[1:]}")
        assert read.get_extension("encryptedfields") == "note"
    assert forget_subject(broker, open_key_store(settings.personal_keys), "u1") == ["kafka-invoices"]
    with QueryGroup(broker, settings, start_spark(settings)) as group:
        group.add(reading)
        group.wait_caught_up(120)
    with Consumer(broker, "kafka-notes-out", start="earliest", until_end=True) as consumer:
        notes = {record.key_text(): record.json() for record in consumer}
    assert notes == {"u0": "a secret of u0: 5.0", "u1": None, "u2": "a secret of u2: 1.0"}
    assert broker.end_offsets("kafka-events-dead-letters") == {0: 0}
