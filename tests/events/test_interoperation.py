"""Events of the `cloudevents` package are read, and it reads those that Potok writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from cloudevents.core.bindings import kafka as binding
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

import potok
from potok.events.event_type import event_types
from potok.events.kafka_binding import read_record
from potok.events.read import read_events
from potok.events.write import EventWriting, write_events
from potok.log.broker import HEADERS
from potok.testing import TestDriver


@potok.event("interop.paid", version=3)
@dataclass
class Paid:
    order_id: str
    amount: float


GIVEN = {
    "id": "e-1 €",
    "source": "/shop",
    "type": "interop.paid",
    "specversion": "1.0",
    "time": datetime(2024, 1, 15, 10, tzinfo=UTC),
    "subject": "o 1",
    "eventversion": "3",
    "correlationid": "req_1",
}


def headers_of(message: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in message.headers.items()]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_records_of_the_package_are_read(mode: str) -> None:
    event = CloudEvent({**GIVEN, "datacontenttype": "application/json"}, {"order_id": "o1", "amount": 1.5})
    message = getattr(binding, f"to_{mode}")(event, JSONFormat(), lambda _: "the key")
    types = event_types([Paid], "cloudevents")
    read = read_events(pa.array([message.value]), pa.array([headers_of(message)], HEADERS), types)
    assert read.errors == {}
    assert read.values.to_pylist() == [{"order_id": "o1", "amount": 1.5}]
    assert read.times == [1705312800000]
    assert {header["name"]: header["value"] for header in read.headers[0]} == {
        "potok.event.id": "e-1 €".encode(),
        "potok.event.correlation": b"req_1",
    }


@pytest.mark.parametrize("envelope", ["cloudevents", "cloudevents_binary"])
def test_the_package_reads_what_is_written(envelope: str) -> None:
    types = event_types([Paid])
    how = EventWriting(envelope, types.types, "/potok/shop", "paid#0")
    written = write_events([{"order_id": "€", "amount": 1.5}], [None], [1000], how, lambda row, data: ("id-1", "7"))
    headers = {header["name"]: header["value"] for header in written.headers[0]}
    event = binding.from_kafka(binding.KafkaMessage(headers, None, written.values[0].as_py()), JSONFormat())
    assert (event.get_id(), event.get_type(), event.get_source()) == ("id-1", "interop.paid", "/potok/shop")
    assert event.get_time() == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert event.get_data() == {"order_id": "€", "amount": 1.5}
    assert (event.get_extension("correlationid"), event.get_extension("sequence")) == ("id-1", "7")
    assert str(event.get_extension("eventversion")) == "3"
    assert event.get_extension("partitionkey") is None


def test_the_content_type_decides_the_mode_also_where_both_are_there() -> None:
    """`from_kafka` of the package takes this for binary mode, because there are `ce_` headers."""
    value = b'{"specversion":"1.0","id":"inner","source":"/s","type":"t"}'
    headers = [
        {"name": "Content-Type", "value": b"Application/CloudEvents+JSON; charset=utf-8"},
        {"name": "ce_id", "value": b"outer"},
        {"name": "ce_id", "value": b"\xff"},
    ]
    assert read_record(value, headers).attributes["id"] == "inner"


def test_a_binary_event_without_a_value_has_no_data_and_a_structured_one_is_bad() -> None:
    types = event_types([Paid], "cloudevents")
    named = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"interop.paid")]
    binary = [{"name": name, "value": value} for name, value in [*named, ("ce_eventversion", b"3")]]
    structured = [{"name": "content-type", "value": b"application/cloudevents+json"}]
    assert read_record(None, binary, "cloudevents").data is None
    read = read_events(pa.nulls(2, pa.binary()), pa.array([binary, structured], HEADERS), types)
    assert 'field "order_id" is missing or null' in read.errors[0]
    assert read.errors[1] == "an event in structured mode has no value"


def test_the_key_of_a_record_stays_that_of_the_user() -> None:
    builder = potok.StreamsBuilder("shop")
    builder.events("in", types=[Paid]).to("out", envelope="cloudevents_binary")
    event = CloudEvent(
        {**GIVEN, "partitionkey": "p", "datacontenttype": "application/json"}, {"order_id": "a", "amount": 1}
    )
    message = binding.to_structured(event, JSONFormat(), lambda _: "own")
    with TestDriver(builder) as driver:
        driver.send("in", message.value, key="own", headers=dict(message.headers))
        driver.run()
        assert driver.dead_letters() == []
        (record,) = driver.read("out")
    headers = dict(record.headers)
    assert record.raw_key == b"own" and "ce_partitionkey" not in headers
    assert headers["ce_causationid"] == "e-1 €".encode()
