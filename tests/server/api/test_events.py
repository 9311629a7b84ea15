"""`POST /topics/{name}/events`: the three modes of the HTTP binding of CloudEvents."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from cloudevents.core.bindings import http as binding
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from potok.events.kafka_binding import read_record
from potok.log.embedded.embedded_broker import EmbeddedBroker
from statements.playing import Play

ATTRIBUTES = {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "order.created", "subject": "o1"}
BINARY = {"content-type": "application/json", **{f"ce-{name}": text for name, text in ATTRIBUTES.items()}}
STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"


def stored(broker: EmbeddedBroker, topic: str = "orders") -> list[dict[str, Any]]:
    batches = [
        batch.to_pylist()
        for partition, end in broker.end_offsets(topic).items()
        for batch in broker.read(topic, partition, 0, end)
    ]
    return [record for batch in batches for record in batch]


def post(
    client: httpx.Client, content: bytes, headers: dict[str, Any] | list[tuple[bytes, bytes]], query: str = ""
) -> httpx.Response:
    return client.post(f"/topics/orders/events{query}", content=content, headers=headers)


def headers_of(record: dict[str, Any]) -> dict[str, bytes]:
    return {header["name"]: header["value"] for header in record["headers"]}


def test_an_event_in_binary_mode_becomes_a_record_in_binary_mode(client: httpx.Client, shop: Play) -> None:
    answer = post(client, b'{"amount": 1.50}', BINARY, "?key=o1")
    assert (answer.status_code, answer.json()["records"]) == (201, 1)
    (record,) = stored(shop.broker)
    assert (record["key"], record["value"]) == (b"o1", b'{"amount": 1.50}')
    named = {f"ce_{name}": text.encode() for name, text in ATTRIBUTES.items()}
    assert headers_of(record) == {**named, "content-type": b"application/json"}


def test_an_event_in_structured_mode_keeps_its_bytes(client: httpx.Client, shop: Play) -> None:
    body = orjson.dumps({**ATTRIBUTES, "data": {"amount": 1}}, option=orjson.OPT_INDENT_2)
    kind = f"{STRUCTURED}; charset=UTF-8"
    assert post(client, body, {"content-type": kind}, "?key_from=subject").status_code == 201
    (record,) = stored(shop.broker)
    assert (record["key"], record["value"], headers_of(record)) == (b"o1", body, {"content-type": kind.encode()})


def test_the_events_of_a_batch_become_records_in_structured_mode(client: httpx.Client, shop: Play) -> None:
    big = b'{"specversion":"1.0","id":"%d","source":"/s","type":"t","data":18446744073709551616000}'
    answer = post(client, b"[" + b",".join(big % number for number in range(3)) + b"]", {"content-type": BATCH})
    assert answer.json()["records"] == 3
    assert sorted(record["value"] for record in stored(shop.broker)) == [big % number for number in range(3)]
    assert {record["key"] for record in stored(shop.broker)} == {None}


def test_a_batch_may_be_empty(client: httpx.Client, shop: Play) -> None:
    answer = post(client, b"[]", {"content-type": BATCH})
    assert (answer.status_code, answer.json()["records"], stored(shop.broker)) == (200, 0, [])
    assert client.post("/topics/nothing/events", content=b"[]", headers={"content-type": BATCH}).status_code == 404


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        (b"%65uro%20%e2%82%ac", "euro €"),
        (b'"a \\"quoted\\" %41 \\\\ text"', 'a "quoted" A \\ text'),
        (b"100%2541", "100%41"),
        (b"plain", "plain"),
    ],
)
def test_headers_are_unquoted_and_decoded_once(client: httpx.Client, shop: Play, header: bytes, text: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in BINARY.items() if name != "ce-subject"]
    assert post(client, b"{}", [*raw, (b"CE-Subject", header)]).status_code == 201
    assert headers_of(stored(shop.broker)[0])["ce_subject"] == text.encode()


@pytest.mark.parametrize(
    ("headers", "body", "status", "reason"),
    [
        ({"content-type": "application/cloudevents+avro"}, b"x", 415, '"application/cloudevents+avro" cannot be read'),
        ({"content-type": "application/cloudevents-batch+xml"}, b"x", 415, "cannot be read"),
        ({"content-type": f"{STRUCTURED}; charset=utf-16"}, b"x", 415, "cannot be read"),
        ({"content-type": "application/json"}, b"{}", 415, 'without "ce-" headers is not an event'),
        ({}, b"", 415, "is not an event"),
        ({"content-type": STRUCTURED}, b"[]", 400, "the envelope is not a JSON object"),
        ({"content-type": STRUCTURED}, b'{"specversion":"1.0"}', 400, 'attribute "id" is missing or empty'),
        ({"content-type": BATCH}, b"{}", 400, "the batch is not a JSON array"),
        ({"content-type": BATCH}, b'[{"specversion":"0.3"}]', 400, 'event 1 of the batch: attribute "specversion" is'),
        ({**BINARY, "ce-datacontenttype": "text/plain"}, b"", 400, '"ce-datacontenttype" is not allowed'),
        ({**BINARY, "ce-subject": "%C0%A0"}, b"", 400, 'header "ce-subject" is not UTF-8'),
        ({**BINARY, "ce-subject": '"open'}, b"", 400, "has an open double quote"),
        ({**BINARY, "ce-time": "today"}, b"", 400, "is not a timestamp of RFC 3339"),
        ({**BINARY, "ce-source": "a b"}, b"", 400, 'attribute "source" is not a URI'),
        ({**BINARY, "ce-my_name": "x"}, b"", 400, '"my_name" is not the name of an attribute'),
    ],
)
def test_a_request_that_is_not_an_event_appends_nothing(
    client: httpx.Client, shop: Play, headers: dict[str, str], body: bytes, status: int, reason: str
) -> None:
    answer = post(client, body, headers)
    assert answer.status_code == status
    assert reason in answer.json()["detail"] and answer.json()["hint"]
    assert stored(shop.broker) == []


def test_one_bad_event_of_a_batch_rejects_all(client: httpx.Client, shop: Play) -> None:
    body = orjson.dumps([{**ATTRIBUTES}, {**ATTRIBUTES, "type": ""}])
    answer = post(client, body, {"content-type": BATCH})
    assert answer.status_code == 400 and "event 2 of the batch" in answer.json()["detail"]
    assert stored(shop.broker) == []


def test_a_header_that_occurs_twice_is_refused(client: httpx.Client, shop: Play) -> None:
    raw = [(name.encode(), value.encode()) for name, value in BINARY.items()]
    answer = post(client, b"{}", [*raw, (b"ce-id", b"e2")])
    assert answer.status_code == 400 and 'header "ce-id" occurs twice' in answer.json()["detail"]


def test_an_event_without_a_body_has_no_data(client: httpx.Client, shop: Play) -> None:
    assert post(client, b"", BINARY).status_code == 201
    assert stored(shop.broker)[0]["value"] is None


def test_the_same_idempotency_key_appends_once_and_attributes_count(client: httpx.Client, shop: Play) -> None:
    once = {**BINARY, "Idempotency-Key": "k"}
    assert [post(client, b"{}", once).status_code for _ in range(2)] == [201, 200]
    assert len(stored(shop.broker)) == 1
    assert post(client, b"{}", {**once, "ce-id": "e2"}).status_code == 422


def test_clients_cannot_write_where_queries_do(client: httpx.Client, shop: Play) -> None:
    for topic in ("TOTALS", "_x", "orders-dead-letters"):
        answer = client.post(f"/topics/{topic}/events", content=b"{}", headers=BINARY)
        assert answer.status_code == 400, topic


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_requests_of_the_cloudevents_package_are_read(client: httpx.Client, shop: Play, mode: str) -> None:
    given = {"id": "e €1", "source": "/shop", "type": 'order "created" 100%', "myext": "a b", "specversion": "1.0"}
    event = CloudEvent({**given, "datacontenttype": "application/json"}, {"amount": 1})
    message = getattr(binding, f"to_{mode}")(event, JSONFormat())
    assert post(client, message.body, message.headers).status_code == 201
    (record,) = stored(shop.broker)
    found = read_record(record["value"], record["headers"], "cloudevents")
    assert {name: found.attributes[name] for name in given if name != "specversion"} == {
        name: text for name, text in given.items() if name != "specversion"
    }
