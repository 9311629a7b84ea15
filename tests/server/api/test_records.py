from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.server.api.idempotent import append_once, prune
from potok.server.api.record_bodies import records_of
from potok.server.errors import KeyUsedBefore
from statements.playing import Play

RECORD = {"key": "k", "value": {"amount": 1}}


def records(broker: EmbeddedBroker, topic: str = "orders") -> list[dict[str, Any]]:
    found = []
    for partition, end in broker.end_offsets(topic).items():
        for batch in broker.read(topic, partition, 0, end):
            found += batch.to_pylist()
    return found


def send(client: httpx.Client, body: Any, key: str = "", topic: str = "orders") -> httpx.Response:
    return client.post(f"/topics/{topic}/records", json=body, headers={"Idempotency-Key": key} if key else {})


def test_one_record_is_appended(client: httpx.Client, shop: Play) -> None:
    body = {"key": "k", "value": {"amount": 1.5}, "timestamp": 7, "headers": {"trace": "x"}}
    answer = send(client, body)
    assert answer.status_code == 201
    assert answer.json()["records"] == 1
    (record,) = records(shop.broker)
    assert (record["key"], record["value"], record["timestamp"]) == (b"k", b'{"amount":1.5}', 7)
    assert record["headers"] == [{"name": "trace", "value": b"x"}]


def test_the_trace_of_a_request_becomes_that_of_its_records_unless_they_have_one(
    client: httpx.Client, shop: Play
) -> None:
    trace, own = (f"00-{number:032x}-00f067aa0ba902b7-01" for number in (1, 2))
    body = [{"key": "k", "value": 1}, {"key": "k", "value": 2, "headers": {"traceparent": own}}]
    for header in (trace, "nonsense"):
        client.post("/topics/orders/records", json=body, headers={"traceparent": header}).raise_for_status()
    found = [record["headers"] for record in records(shop.broker)]
    named = [{"name": "traceparent", "value": trace.encode()}], [{"name": "traceparent", "value": own.encode()}]
    assert found == [*named, None, named[1]]


def test_many_are_appended_in_their_order(client: httpx.Client, shop: Play) -> None:
    for body in ([{"key": "k", "value": str(n)} for n in range(5)], {"records": [{"key": "k", "value": "5"}]}):
        assert send(client, body).status_code == 201
    assert [record["value"] for record in records(shop.broker)] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_bytes_nulls_and_partitions_can_be_given(client: httpx.Client, shop: Play) -> None:
    body = [
        {"key_base64": "AP8=", "value_base64": "AQ==", "partition": 1},
        {"key": 7, "value": None, "partition": 1},
        {"value": "text", "partition": 1},
    ]
    assert send(client, body).json()["partitions"] == {"1": 3}
    found = [(record["key"], record["value"]) for record in records(shop.broker)]
    assert found == [(b"\x00\xff", b"\x01"), (b"7", None), (None, b"text")]


def test_the_same_key_appends_once(client: httpx.Client, shop: Play) -> None:
    first, again = send(client, RECORD, "abc"), send(client, RECORD, "abc")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "repeated": True}
    assert len(records(shop.broker)) == 1
    assert send(client, RECORD, "another").status_code == 201
    assert len(records(shop.broker)) == 2


def test_reusing_an_idempotency_key_for_other_records_is_an_error(client: httpx.Client, shop: Play) -> None:
    send(client, RECORD, "abc")
    answer = send(client, {"key": "k", "value": 2}, "abc")
    assert answer.status_code == 422
    assert len(records(shop.broker)) == 1


def test_the_same_key_for_another_topic_is_another_key(client: httpx.Client, shop: Play) -> None:
    shop.broker.create_topic("other")
    assert send(client, RECORD, "abc").status_code == send(client, RECORD, "abc", "other").status_code == 201


def test_an_idempotency_key_is_remembered_after_the_log_is_reopened(tmp_path: Path) -> None:
    body, placed = b"body", records_of(RECORD)
    broker = EmbeddedBroker(tmp_path)
    broker.create_topic("orders")
    reported = append_once(broker, "orders", placed, "abc", body)
    broker.close()
    broker = EmbeddedBroker(tmp_path)
    assert append_once(broker, "orders", placed, "abc", body) == {**reported, "repeated": True}
    with pytest.raises(KeyUsedBefore):
        append_once(broker, "orders", placed, "abc", b"another body")
    assert len(records(broker)) == 1
    assert prune(broker, before_ms=0) == 0
    assert prune(broker, before_ms=1 << 60) == 1
    append_once(broker, "orders", placed, "abc", body)
    assert len(records(broker)) == 2


@pytest.mark.parametrize("stored_as", ["told", "unknown"])
def test_a_key_stored_by_another_version_is_not_appended_again(tmp_path: Path, stored_as: str) -> None:
    body, placed = b"body", records_of(RECORD)
    with closing(EmbeddedBroker(tmp_path)) as broker:
        broker.create_topic("orders")
        reported = append_once(broker, "orders", placed, "abc", body)
        ((name, data),) = broker.list_metadata("http/once/").items()
        stored = orjson.loads(data)
        stored[stored_as] = stored.pop("response")
        broker.set_metadata({name: orjson.dumps(stored)}, {name: data})
        again = append_once(broker, "orders", placed, "abc", body)
        assert again["repeated"] and again.items() <= {**reported, "repeated": True}.items()
        assert ("position" in again) == (stored_as == "told")
        assert len(records(broker)) == 1
    broker.close()


def test_of_many_who_send_one_key_at_once_one_appends(client: httpx.Client, shop: Play) -> None:
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(send(client, RECORD, "x").status_code)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 7 + [201]
    assert len(records(shop.broker)) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([], 400),
        (7, 400),
        ([7], 400),
        ({"key": "k"}, 400),
        ({"value": 1, "valu": 2}, 400),
        ({"value": 1, "timestamp": "now"}, 400),
        ({"value": 1, "timestamp": -1}, 400),
        ({"value": 1, "headers": {"a": 1}}, 400),
        ({"value": 1, "value_base64": "AQ=="}, 400),
        ({"value_base64": "!"}, 400),
        ({"value": 1, "partition": 9}, 404),
        ([{"value": 1}, {"nothing": 1}], 400),
    ],
)
def test_what_is_not_a_record_is_refused_and_nothing_is_appended(
    client: httpx.Client, shop: Play, body: Any, status: int
) -> None:
    answer = send(client, body)
    assert answer.status_code == status, answer.text
    assert answer.json()["hint"]
    assert records(shop.broker) == []


def test_a_topic_must_be_there(client: httpx.Client) -> None:
    assert send(client, RECORD, topic="nowhere").status_code == 404


def test_a_compacted_topic_takes_no_record_without_a_key(client: httpx.Client, shop: Play) -> None:
    shop.broker.create_topic("latest", cleanup_policy="compact")
    assert send(client, {"value": 1}, topic="latest").status_code == 400
    assert send(client, {"key": "a", "value": None}, topic="latest").status_code == 201
