"""Servers that sinks deliver to are restarted five times under load, without Spark: each sink waits and goes on."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
import redis
import urllib3

from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.mqtt import MqttTarget
from potok.sinks.messages.rabbitmq import RabbitMqTarget
from potok.sinks.opensearch.opensearch import OpenSearchTarget
from potok.sinks.postgres.postgres import PostgresTarget
from potok.sinks.redis.redis import RedisTarget
from potok.sinks.sink_spec import Types
from tests.faults.row import NotHere, Proof, row
from tests.faults.scene import Scene
from tests.kill.answer import same
from tests.opensearch import opensearch_server
from tests.servers import durable_redis, mqtt_server, postgres_server, rabbitmq_server
from tests.sinks.load import Load
from tests.sinks.messages.test_mqtt_sink import properties_of, subscriber
from tests.sinks.messages.test_rabbitmq_sink import taken_from
from tests.sinks.rows import typed

ROUNDS = 5
GIVE_UP_MS = 120_000
TYPES = Types(typed("string"), typed("n bigint"))


def _rows(numbers: range) -> list[tuple[Any, Any]]:
    return [(f"{number:09}", {"n": number}) for number in numbers]


def _restarted(
    scene: Scene,
    server: Any,
    target: Any,
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
) -> Load:
    """Restart a server while batches are delivered, each time at another moment."""
    load = Load(target, TYPES, guarantee, _rows)
    for _ in range(ROUNDS):
        load.wait_for_batches(scene.random.randint(1, 4))
        server.stop(scene.random.choice(signals))
        server.start()
    load.end()
    assert not load.failures, "nothing became a dead letter"
    return load


def _here(make: Callable[[], AbstractContextManager[Any]]) -> AbstractContextManager[Any]:
    try:
        return make()
    except pytest.skip.Exception as error:
        raise NotHere(str(error)) from error


def _proof(found: list[int], load: Load, done: str) -> Proof:
    same("what came out", Counter(found), Counter(load.sent))
    return Proof(f"{done} {ROUNDS} times while {len(load.sent)} records were delivered")


@row("rabbitmq-sink-restarted", "RabbitMQ ends or is killed, five times under load", servers=("rabbitmq",))
def rabbitmq_sink(scene: Scene) -> Proof:
    with _here(rabbitmq_server) as server:
        target = RabbitMqTarget(server.url, "q", None, "", True, True, GIVE_UP_MS, False)
        load = _restarted(scene, server, target, Guarantee.AT_LEAST_ONCE, (signal.SIGTERM, signal.SIGKILL))
        found = {each.message_id: json.loads(each.body)["n"] for each in taken_from(server.url, "q")}
    return _proof(list(found.values()), load, "RabbitMQ restarted; one message for each message_id")


@row("mqtt-sink-restarted", "mosquitto ends, five times under load", servers=("mqtt",))
def mqtt_sink(scene: Scene) -> Proof:
    with _here(mqtt_server) as server, subscriber(server.url, "t") as topics:
        target = MqttTarget(server.url, "t", 1, False, "5", GIVE_UP_MS, False)
        load = _restarted(scene, server, target, Guarantee.AT_LEAST_ONCE)

        def numbers() -> dict[str, int]:
            return {properties_of(each)["message-id"]: json.loads(each.payload)["n"] for each in topics.messages}

        scene.wait_until(lambda: len(numbers()) >= len(load.sent), "the messages")
    return _proof(list(numbers().values()), load, "mosquitto restarted; one message for each message-id")


@row("redis-sink-restarted", "Redis ends or is killed, five times under load", servers=("redis",))
def redis_sink(scene: Scene) -> Proof:
    with _here(durable_redis) as server:
        target = RedisTarget(server.url, "n:", "json", None, GIVE_UP_MS)
        load = _restarted(scene, server, target, signals=(signal.SIGTERM, signal.SIGKILL))
        client = redis.Redis.from_url(server.url)
        found = [json.loads(value)["n"] for value in client.mget(client.keys("n:*"))]
        client.close()
    return _proof(found, load, "Redis restarted")


@row("postgres-sink-restarted", "PostgreSQL ends or crashes, five times under load", servers=("postgres",))
def postgres_sink(scene: Scene) -> Proof:
    with _here(postgres_server) as server:
        target = PostgresTarget(server.url, "numbers", (), (), GIVE_UP_MS)
        load = _restarted(scene, server, target, signals=(signal.SIGINT, signal.SIGQUIT))
        with psycopg.connect(server.url) as connection:
            found = [int(each[0]) for each in connection.execute("SELECT n FROM numbers").fetchall()]
    return _proof(found, load, "PostgreSQL restarted")


@row("opensearch-sink-restarted", "OpenSearch ends or is killed, five times under load", servers=("opensearch",))
def opensearch_sink(scene: Scene) -> Proof:
    with _here(opensearch_server) as server:
        target = OpenSearchTarget(server.url, "numbers", (), 5_000_000, 30_000, GIVE_UP_MS)
        load = _restarted(scene, server, target, signals=(signal.SIGTERM, signal.SIGKILL))
        found: list[int] = []
        with urllib3.PoolManager() as pool:
            pool.request("POST", f"{server.url}/numbers/_refresh")
            after: list[Any] = [-1]
            while hits := pool.request(
                "POST",
                f"{server.url}/numbers/_search",
                json={"size": 10_000, "sort": [{"n": "asc"}], "search_after": after},
            ).json()["hits"]["hits"]:
                found += [hit["_source"]["n"] for hit in hits]
                after = hits[-1]["sort"]
    return _proof(found, load, "OpenSearch restarted")
