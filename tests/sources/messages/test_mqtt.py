"""Topics of a real MQTT broker."""

from __future__ import annotations

import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Mqtt, Overload
from tests.log.waiting import until
from tests.servers import mqtt_server
from tests.sources.test_appender import AwayBroker, values

RESTARTS = int(os.environ.get("POTOK_RESTARTS", "2"))


def publish(url: str, topic: str, bodies: Iterable[bytes], *, qos: int = 1, ids: bool = False) -> None:
    """Publish messages, and wait until the broker has confirmed them."""
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.max_queued_messages_set(0)
    found = urlsplit(url)
    client.connect(found.hostname or "", found.port or 1883)
    client.loop_start()
    sent = []
    for body in bodies:
        properties = Properties(PacketTypes.PUBLISH)
        if ids:
            properties.UserProperty = [("id", body.decode())]
        sent.append(client.publish(topic, body, qos, properties=properties))
    for each in sent:
        each.wait_for_publish(30)
    client.disconnect()
    client.loop_stop()


@contextmanager
def subscribed(broker: EmbeddedBroker, url: str, topic: str, **options: Any) -> Iterator[Gateway]:
    given = {"name": "m", "topic": "t", "url": url, "subscribe": (f"{topic}/#",), "client_id": f"potok-{topic}"}
    with Gateway(broker, [Mqtt(**given | options)], stop_timeout_s=0.2) as gateway:
        until(lambda: gateway.status()[0].state["connections"] > 0)
        yield gateway


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex}"


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_becomes_a_record_whose_key_is_its_topic(
    tmp_path: Path, mqtt_url: str, topic: str, version: Any, qos: int
) -> None:
    with subscribed(EmbeddedBroker(tmp_path), mqtt_url, topic, version=version) as gateway:
        publish(mqtt_url, f"{topic}/a", [b"21.5"], qos=qos, ids=True)
        until(lambda: gateway.counts("m").landed == 1)
        [batch] = gateway.broker.read("t", 0, 0, 1)
    [row] = batch.to_pylist()
    assert (row["key"], row["value"]) == (f"{topic}/a".encode(), b"21.5")
    assert row["headers"] == ([{"name": "id", "value": b"21.5"}] if version == "5" else None)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_what_was_published_while_the_gateway_was_away_or_could_not_append_lands(
    tmp_path: Path, mqtt_url: str, topic: str, version: Any
) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    with subscribed(broker, mqtt_url, topic, version=version):
        publish(mqtt_url, f"{topic}/a", numbered(0, 30))
        assert broker.tried.wait(10)
    publish(mqtt_url, f"{topic}/a", numbered(30, 60))
    broker.there.set()
    with subscribed(broker, mqtt_url, topic, version=version) as gateway:
        until(lambda: gateway.counts("m").landed == 60)
    assert Counter(values(broker)) == Counter(numbered(0, 60))
    with subscribed(broker, mqtt_url, topic, version=version) as gateway:
        publish(mqtt_url, f"{topic}/a", [b"last"])
        until(lambda: gateway.counts("m").landed == 1)
        assert gateway.counts("m").received == 1


def test_a_full_buffer_withholds_acknowledgements(tmp_path: Path, mqtt_url: str, topic: str) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    overload = Overload(max_records=20)
    with subscribed(broker, mqtt_url, topic, receive_maximum=50, overload=overload) as gateway:
        publish(mqtt_url, f"{topic}/a", numbered(0, 1_000))
        assert broker.tried.wait(10)
        assert gateway.counts("m").received <= 50
        broker.there.set()
        until(lambda: gateway.counts("m").landed == 1_000)
        assert gateway.counts("m").lost == {}
    assert values(broker) == numbered(0, 1_000)


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
@pytest.mark.parametrize("qos", [0, 1])
def test_under_a_flood_everything_has_landed_or_is_counted(
    tmp_path: Path, mqtt_url: str, topic: str, policy: Any, qos: int
) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    overload = Overload(max_records=50, when_full=policy)
    with subscribed(broker, mqtt_url, topic, overload=overload) as gateway:
        publish(mqtt_url, f"{topic}/a", numbered(0, 1_000), qos=qos)
        assert broker.tried.wait(10)
        until(lambda: gateway.counts("m").received == 1_000)
        broker.there.set()
        until(lambda: not gateway.counts("m").buffered)
        counts = gateway.counts("m")
        assert counts.received == counts.landed + sum(counts.lost.values())
        assert counts.landed == len(values(broker)) < 1_000


@pytest.mark.timeout(120)
def test_a_broker_that_restarts_under_load_loses_nothing_and_ids_keep_duplicates_out(tmp_path: Path) -> None:
    total = 400 * RESTARTS
    with (
        mqtt_server() as server,
        subscribed(EmbeddedBroker(tmp_path), server.url, "load", id="header:id", receive_maximum=20) as gateway,
    ):
        for number in range(RESTARTS):
            publish(server.url, "load/a", numbered(number * 400, number * 400 + 400), ids=True)
            until(lambda number=number: gateway.counts("m").landed > number * 400)  # type: ignore[misc]
            server.stop()
            server.start()
            until(lambda number=number: gateway.status()[0].state["connections"] > number + 1)  # type: ignore[misc]
        until(lambda: gateway.counts("m").landed == total)
        counts = gateway.counts("m")
        assert counts.received == counts.landed + counts.duplicates
    assert Counter(values(EmbeddedBroker(tmp_path))) == Counter(numbered(0, total))


def test_messages_without_the_parts_that_options_name_land_without_them(
    tmp_path: Path, mqtt_url: str, topic: str
) -> None:
    bodies = [b"\xff\xfe", b"", b"{", b'{"id":["a"]}', b"x" * 1_000_000, b"[" * 100_000]
    with subscribed(EmbeddedBroker(tmp_path), mqtt_url, topic, key="body:user", id="body:id") as gateway:
        publish(mqtt_url, f"{topic}/a", bodies)
        until(lambda: gateway.counts("m").landed == len(bodies))
        assert gateway.counts("m").lost == {}
    assert values(EmbeddedBroker(tmp_path)) == bodies


def test_a_broker_that_is_not_there_or_refuses_is_reported(tmp_path: Path) -> None:
    with mqtt_server("allow_anonymous false") as server:
        refusing = Mqtt(name="m", topic="t", url=server.url, subscribe=("a",), client_id="c")
        missing = Mqtt(name="n", topic="t", url="mqtt://127.0.0.1:1", subscribe=("a",), client_id="c")
        with Gateway(EmbeddedBroker(tmp_path), [refusing, missing]) as gateway:
            until(lambda: "Not authorized" in (gateway.status()[0].problem or ""))
            until(lambda: "refused" in (gateway.status()[1].problem or ""))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://localhost"}, "the url is not one of MQTT"),
        ({"subscribe": ()}, "there is no topic to subscribe to"),
        ({"client_id": ""}, "a persistent session needs a name"),
        ({"qos": 2}, "qos = 2 is not possible"),
        ({"qos": 0}, "QoS 0 has no acknowledgements to withhold"),
        ({"receive_maximum": 0}, "receive_maximum = 0 is out of range"),
        ({"overload": Overload(when_full="reject")}, "MQTT cannot reject a message"),
        ({"id": "topic"}, 'id = "topic" names no part of a message'),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    given = {"name": "m", "topic": "t", "url": "mqtt://localhost", "subscribe": ("a",), "client_id": "c"}
    with pytest.raises(TopologyError, match=message):
        Mqtt(**given | options).check()
