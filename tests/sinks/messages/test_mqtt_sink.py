"""Publish to a real MQTT broker."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.mqtt import MqttTarget
from potok.sinks.sink_spec import Batch, Types
from potok.testing import TestDriver
from tests.log.waiting import until
from tests.servers import mqtt_server
from tests.sinks.load import Load
from tests.sinks.rows import deliver, opening, rows_of, typed

NUMBERS = Types(typed("string"), typed("bigint"))
TEXTS = Types(typed("string"), typed("string"))
RESTARTS = int(os.environ.get("POTOK_RESTARTS", "1"))


class Subscriber:
    """A client with a persistent session, so that the broker keeps messages for it."""

    def __init__(self, url: str, topic: str) -> None:
        self.url = url
        self.messages: list[MQTTMessage] = []
        self._ready = threading.Event()
        self._client = Client(
            CallbackAPIVersion.VERSION2, client_id=f"s-{uuid.uuid4().hex[:12]}", protocol=MQTTProtocolVersion.MQTTv5
        )
        self._client.reconnect_delay_set(0.05, 0.2)  # type: ignore[arg-type]
        self._client.on_connect = lambda *_: self._client.subscribe(topic, 1)
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.on_message = lambda _, __, message: self.messages.append(message)
        found = urlsplit(url)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3_600
        self._client.connect(found.hostname or "", found.port or 1883, clean_start=False, properties=properties)
        self._client.loop_start()
        assert self._ready.wait(10)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def subscriber(url: str, topic: str) -> Iterator[Subscriber]:
    made = Subscriber(url, topic)
    try:
        yield made
    finally:
        made.close()


def target_of(url: str, topic: str, **options: Any) -> MqttTarget:
    given: dict[str, Any] = {"qos": 1, "retain": False, "version": "5", "give_up_after_ms": 2_000, "with_key": False}
    return MqttTarget(url, topic, **given | options)


@contextmanager
def publishing(target: MqttTarget, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE, **options: Any) -> Iterator[Any]:
    found: Any = target.open(opening(NUMBERS, guarantee, **options))
    try:
        yield found
    finally:
        found.close()


def properties_of(message: MQTTMessage) -> dict[str, str]:
    return dict(message.properties.UserProperty) if message.properties is not None else {}


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex}"


def test_a_record_is_a_message_with_an_id_and_its_headers(mqtt_url: str, topic: str) -> None:
    builder = StreamsBuilder("home")
    builder.stream("readings", value="n bigint").to_mqtt(mqtt_url, f"{topic}/{{key}}", name="out")
    with subscriber(mqtt_url, f"{topic}/#") as found, TestDriver(builder) as driver:
        driver.send("readings", key="kitchen", value={"n": 1}, headers={"tenant": b"acme"})
        driver.send("readings", key="hall/up", value={"n": 2})
        driver.send("readings", key="all/#", value={"n": 3})
        driver.run()
        until(lambda: len(found.messages) == 2)
        assert [(each.topic, each.payload) for each in found.messages] == [
            (f"{topic}/kitchen", b'{"n":1}'),
            (f"{topic}/hall/up", b'{"n":2}'),
        ]
        first, second = map(properties_of, found.messages)
        assert first["tenant"] == "acme" and first["message-id"] != second["message-id"]
        assert [each.error for each in driver.dead_letters()] == ["the topic has a wildcard: +, # or NUL"]


@pytest.mark.parametrize(
    ("version", "qos", "guarantee"),
    [("5", 1, "at_least_once"), ("3.1.1", 1, "at_least_once"), ("5", 0, "at_most_once"), ("3.1.1", 0, "at_most_once")],
)
def test_all_messages_arrive_in_their_order(mqtt_url: str, topic: str, version: str, qos: int, guarantee: str) -> None:
    target = target_of(mqtt_url, topic, version=version, qos=qos)
    rows = rows_of([("k", number) for number in range(3_000)], NUMBERS)
    with subscriber(mqtt_url, topic) as found, publishing(target, Guarantee.of(guarantee)) as writer:
        assert deliver(target, writer, rows, NUMBERS, Batch(1, 1)) == {}
        until(lambda: len(found.messages) >= (3_000 if qos else 1))
    numbers = [int(each.payload) for each in found.messages]
    assert numbers == sorted(set(numbers)), "QoS 0 may lose messages, and repeats none"


def test_a_repeated_batch_has_the_same_ids(mqtt_url: str, topic: str) -> None:
    target = target_of(mqtt_url, topic)
    with subscriber(mqtt_url, topic) as found:
        for epoch in (1, 2):
            with publishing(target, epoch=epoch) as writer:
                deliver(target, writer, rows_of([("k", 1), ("k", 2)], NUMBERS), NUMBERS, Batch(epoch, 1))
        until(lambda: len(found.messages) == 4)
    ids = [properties_of(each)["message-id"] for each in found.messages]
    assert ids[:2] == ids[2:] and len(set(ids)) == 2


def test_a_retained_message_is_the_last_of_its_key_and_a_null_value_deletes_it(mqtt_url: str, topic: str) -> None:
    target = target_of(mqtt_url, f"{topic}/{{key}}", retain=True)
    records = [("a", 1), ("b", 2), ("a", 3), ("b", None), (None, None)]
    with publishing(target) as writer:
        failures = deliver(target, writer, rows_of(records, NUMBERS), NUMBERS, Batch(1, 1))
    assert list(failures) == [4]
    with subscriber(mqtt_url, f"{topic}/#") as found:
        until(lambda: len(found.messages) == 1)
        assert (found.messages[0].topic, found.messages[0].payload) == (f"{topic}/a", b"3")
    unretained = target_of(mqtt_url, topic)
    with publishing(unretained) as writer:
        failures = deliver(unretained, writer, rows_of([("a", None)], NUMBERS), NUMBERS, Batch(1, 2))
    assert "pass with_key=True" in failures[0]


@pytest.mark.timeout(200)
def test_a_broker_that_restarts_under_load_gets_everything_and_repeats_have_the_same_id() -> None:
    with mqtt_server() as server, subscriber(server.url, "#") as found:
        repeated, single = loads = [
            Load(target_of(server.url, guarantee.value, give_up_after_ms=60_000), NUMBERS, guarantee)
            for guarantee in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)
        ]
        for _ in range(RESTARTS):
            for load in loads:
                load.wait_for_batches(2)
            server.stop()
            server.start()
        for load in loads:
            load.end()

        def of(load: Load) -> list[MQTTMessage]:
            return [each for each in found.messages if each.topic == load.target.topic]

        until(lambda: {int(each.payload) for each in of(repeated)} == set(repeated.sent), 60)
        until(lambda: {int(each.payload) for each in of(single)} | single.failures == set(single.sent), 60)
    assert not repeated.failures
    ids = {properties_of(each)["message-id"]: int(each.payload) for each in of(repeated)}
    assert sorted(ids.values()) == repeated.sent


@pytest.mark.timeout(60)
def test_what_the_broker_refuses_becomes_a_dead_letter_or_stops_the_query() -> None:
    files = {"acl": "topic readwrite open/#\n"}
    with mqtt_server("max_packet_size 1000", "acl_file {directory}/acl", files=files) as server:
        target = target_of(server.url, "{key}")
        with publishing(target) as writer:
            rows = rows_of([("open/a", "x"), ("closed", "y"), ("open/b", "z" * 2_000), ("open/c", "w")], TEXTS)
            failures = deliver(target, writer, rows, TEXTS, Batch(1, 1))
        assert failures == {
            1: "the broker refuses it: Not authorized",
            2: "the message is larger than 1000 bytes, the most that the broker takes",
        }
        fixed = target_of(server.url, "closed")
        with publishing(fixed) as writer, pytest.raises(DeliveryFailed, match="Not authorized") as raised:
            deliver(fixed, writer, rows_of([("k", 1)], NUMBERS), NUMBERS, Batch(1, 1))
        assert not raised.value.passing


def test_a_broker_that_is_away_is_waited_for_and_a_wrong_password_is_not() -> None:
    settings = ("allow_anonymous false", "password_file {directory}/passwords")
    with mqtt_server(*settings, files={"passwords": ""}) as server:
        url = server.url.replace("mqtt://", "mqtt://ann:s3cret-password@")
        with pytest.raises(DeliveryFailed, match="Not authorized") as refused:
            target_of(url, "t", give_up_after_ms=None).open(opening(NUMBERS, Guarantee.AT_LEAST_ONCE))
        server.stop()
        with pytest.raises(DeliveryFailed, match="Connection refused") as away:
            target_of(url, "t", give_up_after_ms=200).open(opening(NUMBERS, Guarantee.AT_LEAST_ONCE))
    assert not refused.value.passing
    assert "s3cret-password" not in f"{refused.value}{away.value}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://localhost"}, "this is not an MQTT broker"),
        ({"topic": "a/#"}, "nothing can be published to the topic"),
        ({"topic": ""}, "nothing can be published to the topic"),
        ({"qos": 2}, "qos = 2 is not possible"),
        ({"qos": 0}, "QoS 0 has no acknowledgements"),
        ({"version": "3.1"}, 'there is no version "3.1"'),
        ({"guarantee": "exactly_once"}, "MQTT cannot promise exactly_once"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    builder = StreamsBuilder("home")
    builder.stream("readings").to_mqtt(**{"url": "mqtt://localhost", "topic": "t"} | options)
    with pytest.raises(TopologyError, match=message), TestDriver(builder):
        pass
