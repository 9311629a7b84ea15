"""Events from their topic to typed values, and back into envelopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import potok
from potok.errors import TopologyError
from potok.events.event_type import event_types
from potok.events.read import read_events
from potok.events.write import EventWriting, write_events
from potok.log.broker import HEADERS
from potok.testing import TestDriver


@potok.event("test.created", version=2)
@dataclass
class Created:
    order_id: str
    amount: float


@potok.event("test.paid")
@dataclass
class Paid:
    order_id: str
    method: str = "card"


@potok.upcast("test.created", from_version=1)
def created_1(data: dict[str, Any]) -> Any:
    if data.get("test"):
        return None
    parts = data.get("parts")
    return (
        [{"order_id": data["id"], "amount": part} for part in parts] if parts else {"order_id": data["id"], "amount": 0}
    )


def old(data: dict[str, Any], version: str = "2.0", kind: str = "test.created") -> dict[str, Any]:
    return {
        "event_id": "evt_1",
        "event_type": kind,
        "event_version": version,
        "timestamp": "2024-01-15T10:00:00Z",
        "source": "order-service",
        "correlation_id": "req_123",
        "data": data,
    }


def build(envelope: Any = "cloudevents") -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.events("orders", types=[Created, Paid]).filter(lambda e: e["order_id"] != "").to("out", envelope=envelope)
    return builder


def play(values: list[Any], *, each: bool = False, envelope: Any = "cloudevents") -> tuple[list[Any], list[str]]:
    with TestDriver(build(envelope)) as driver:
        for value in values:
            driver.send("orders", value, key="k")
            if each:
                driver.run()
        driver.run()
        return [record.value for record in driver.read("out")], [letter.error for letter in driver.dead_letters()]


def test_a_dictionary_becomes_a_cloud_event_with_inherited_correlation() -> None:
    (event,), letters = play([old({"order_id": "o1", "amount": 5})])
    assert letters == []
    assert event["specversion"] == "1.0" and event["type"] == "test.created" and event["eventversion"] == 2
    assert (event["correlationid"], event["causationid"]) == ("req_123", "evt_1")
    assert (event["time"], event["source"]) == ("2024-01-15T10:00:00.000Z", "/potok/shop")
    assert event["data"] == {"order_id": "o1", "amount": 5.0}


def test_ids_do_not_depend_on_batches() -> None:
    values = [old({"id": f"o{n}", "parts": [1, 2]}, "1.0") for n in range(3)]
    together, one_by_one = play(values)[0], play(values, each=True)[0]
    assert [event["id"] for event in together] == [event["id"] for event in one_by_one]
    assert len({event["id"] for event in together}) == 6


def test_an_old_version_is_upcast_split_and_dropped() -> None:
    values = [old({"id": "a"}, "1.0"), old({"id": "b", "parts": [1, 2]}, "1.0"), old({"id": "c", "test": True}, "1.0")]
    events, letters = play(values)
    assert [event["data"] for event in events] == [
        {"order_id": "a", "amount": 0.0},
        {"order_id": "b", "amount": 1.0},
        {"order_id": "b", "amount": 2.0},
    ]
    assert letters == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (old({}, kind="test.lost"), 'unknown event type "test.lost"'),
        (old({"order_id": "a", "amount": 1}, "3.0"), "has version 3, but the program knows only up to 2"),
        (old({"order_id": "a", "amount": 1}, "x"), '"x" is not the version of an event'),
        (old({"order_id": "a"}), 'field "amount" is missing or null'),
        (old({}, "1.0"), "KeyError"),
        ({"amount": 1}, 'it has no "event_type"'),
        ({"specversion": "1.0"}, 'needs the header "content-type: application/cloudevents+json"'),
        ([1], "the envelope is not a JSON object"),
        ({**old({}), "timestamp": "yesterday"}, "is not a timestamp of RFC 3339"),
    ],
)
def test_a_record_that_is_not_an_event_of_the_stream_is_a_dead_letter(value: Any, reason: str) -> None:
    events, (letter,) = play([value])
    assert events == [] and reason in letter


def test_a_dictionary_is_written_as_the_seed_shows_it() -> None:
    (event,), _ = play([old({"order_id": "o1"}, "1.0", "test.paid")], envelope="dictionary")
    assert {name: event[name] for name in ("event_type", "event_version", "correlation_id", "data")} == {
        "event_type": "test.paid",
        "event_version": "1.0",
        "correlation_id": "req_123",
        "data": {"order_id": "o1", "method": "card"},
    }
    assert event["metadata"]["causation_id"] == "evt_1"


@pytest.mark.parametrize("envelope", ["cloudevents", "cloudevents_binary", "dictionary"])
def test_what_is_written_can_be_read_again_in_each_envelope(envelope: str) -> None:
    types = event_types([Paid])
    how = EventWriting(envelope, types.types, "/test", "paid#0")
    written = write_events([{"order_id": "o1", "method": "cash"}], [None], [1000], how, lambda row, data: ("id-1", "7"))
    read = read_events(written.values, pa.array(written.headers, HEADERS), types)
    assert (written.errors, read.errors) == ({}, {})
    assert read.values.to_pylist() == [{"order_id": "o1", "method": "cash"}]
    assert read.times == [1000]
    assert {"name": "potok.event.id", "value": b"id-1"} in read.headers[0]


def test_values_of_an_unknown_event_type_are_refused_when_the_topology_is_built() -> None:
    builder = potok.StreamsBuilder("shop")
    with pytest.raises(TopologyError, match="the event type of these values is not known"):
        builder.stream("orders").to("out", envelope="cloudevents")
    with pytest.raises(TopologyError, match="int is not an event class"):
        builder.events("orders", types=[int])
