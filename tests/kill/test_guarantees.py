"""Kill the process on each side of the commit point, and see what every sink has of every guarantee."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
import redis
import urllib3
import zmq
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.sinks.files import batches_in
from potok.testing.outputs import read_outputs
from tests.kill.guarantees_program import GUARANTEES, iceberg_catalog
from tests.log.waiting import until
from tests.sinks.messages.test_mqtt_sink import Subscriber, properties_of, subscriber
from tests.sinks.messages.test_rabbitmq_sink import taken_from
from tests.sinks.web import Site, web_server

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(600)]

RECORDS = 400
EVERYTHING = Counter(range(RECORDS))

REPEATED, LOST = 2, 3
"""The batches that are being delivered when the process dies, before the commit of one and after that of the other."""

FAILPOINTS = ["deliver.before:2", "deliver.done:1", "ledger.committed:2", "deliver.after:1", ""]

SINKS = ("topic", "files", "delta", "iceberg", "jdbc", "postgres", "http", "callable", "redis", "opensearch")
KEYED = frozenset({"redis", "opensearch"})
"""Sinks that keep one value per key: what is written again replaces the same."""

MESSAGES = ("rabbitmq", "mqtt")
"""Sinks that repeat a message under its id, so that its consumer may recognise it."""

COUNT_WRITES = """
CREATE FUNCTION count_write() RETURNS trigger AS
$$ BEGIN INSERT INTO writes VALUES (TG_TABLE_NAME, NEW.n); RETURN NULL; END $$ LANGUAGE plpgsql
"""


class Aftermath:
    """How often each record is in each sink, when the query has come to the end at last."""

    def __init__(
        self, directory: Path, site: Site, database: str, cache: str, search: str, queues: str, topics: Subscriber
    ) -> None:
        self.directory, self.site = directory, site
        self.database, self.cache, self.search = database, cache, search
        self.queues, self.topics = queues, topics
        self.sockets, self.metrics = Pulled(), Metrics()
        self._taken: dict[str, list[tuple[str, int]]] = {}

    def run(self, failpoint: str) -> None:
        finished = subprocess.run(
            [sys.executable, "-m", "tests.kill.guarantees_program", str(self.directory), *self._servers],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "POTOK_FAILPOINT": failpoint},
            timeout=180,
            capture_output=True,
            check=False,
        )
        wanted = -signal.SIGKILL if failpoint else 0
        assert finished.returncode == wanted, f"{failpoint}: {finished.stderr.decode()[-3_000:]}"

    @property
    def _servers(self) -> tuple[str, ...]:
        servers = self.site.url, self.database, self.cache, self.search, self.queues, self.topics.url
        return *servers, self.sockets.endpoint, self.metrics.address

    def batch(self, number: int) -> Counter[int]:
        return Counter(json.loads((self.directory / "exactly_once" / f"{number}.json").read_text()))

    def found(self, sink: str, guarantee: str) -> Counter[int]:
        return Counter(getattr(self, f"_{sink}")(guarantee))

    def _topic(self, guarantee: str) -> Iterator[int]:
        broker = EmbeddedBroker.shared(self.directory / "data")
        return (record.value["n"] for record in read_outputs(broker, guarantee))

    def _files(self, guarantee: str) -> list[int]:
        """As somebody sees it who reads the directory, and knows nothing of manifests."""
        return list(pq.read_table(self.directory / "files" / guarantee).column("n").to_pylist())

    def _delta(self, guarantee: str) -> list[int]:
        table = DeltaTable(str(self.directory / "delta" / guarantee))
        return list(table.to_pyarrow_table().column("n").to_pylist())

    def _iceberg(self, guarantee: str) -> list[int]:
        table = load_catalog(**iceberg_catalog(self.directory)).load_table(f"shop.{guarantee}")
        return list(table.scan().to_arrow().column("n").to_pylist())

    def _jdbc(self, guarantee: str) -> list[int]:
        with psycopg.connect(self.database) as connection:
            return [row[0] for row in connection.execute(f"SELECT n FROM jdbc_{guarantee}").fetchall()]

    def _postgres(self, guarantee: str) -> Iterator[int]:
        with psycopg.connect(self.database) as connection:
            rows = connection.execute("SELECT n FROM writes WHERE sink = %s", (guarantee,)).fetchall()
        return (int(row[0]) for row in rows)

    def _http(self, guarantee: str) -> list[int]:
        """As a server sees it that goes by the idempotency key, if it may count on being asked again."""
        requests: list[tuple[str, Any]] = [
            (key, body)
            for (key, body), headers in zip(self.site.requests, self.site.headers, strict=True)
            if headers["path"].endswith(f"/{guarantee}")
        ]
        bodies = dict(requests).values() if guarantee == "exactly_once" else [body for _, body in requests]
        return [item["n"] for body in bodies for item in body]

    def _redis(self, guarantee: str) -> list[int]:
        """As a reader of the cache sees it: a key has one value, however often it was written."""
        client = redis.Redis.from_url(self.cache)
        try:
            return [json.loads(value)["n"] for value in client.mget(client.keys(f"{guarantee}:*"))]
        finally:
            client.close()

    def _opensearch(self, guarantee: str) -> list[int]:
        index = f"{self.search}/guarantees-{guarantee}"
        with urllib3.PoolManager() as pool:
            pool.request("POST", f"{index}/_refresh")
            found = pool.request("GET", f"{index}/_search?size=10000").json()
        return [hit["_source"]["n"] for hit in found["hits"]["hits"]]

    def _rabbitmq(self, guarantee: str) -> list[int]:
        return [n for _, n in self.messages("rabbitmq", guarantee)]

    def _mqtt(self, guarantee: str) -> list[int]:
        return [n for _, n in self.messages("mqtt", guarantee)]

    def messages(self, sink: str, guarantee: str) -> list[tuple[str, int]]:
        """Return the ids and the numbers of messages."""
        if sink == "mqtt":
            found = [each for each in self.topics.messages if each.topic == f"guarantees/{guarantee}"]
            return [(properties_of(each)["message-id"], json.loads(each.payload)["n"]) for each in found]
        if guarantee not in self._taken:
            taken = taken_from(self.queues, f"guarantees-{guarantee}")
            self._taken[guarantee] = [(each.message_id, json.loads(each.body)["n"]) for each in taken]
        return self._taken[guarantee]

    def _callable(self, guarantee: str) -> list[int]:
        path = self.directory / guarantee
        if guarantee == "exactly_once":
            return [n for found in path.glob("*.json") for n in json.loads(found.read_text())]
        return [int(line) for line in path.read_text().splitlines()]


class Pulled:
    """A PULL socket, read when the query has come to its end."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self.endpoint = f"tcp://127.0.0.1:{self._socket.bind_to_random_port('tcp://127.0.0.1')}"

    def numbers(self) -> list[int]:
        found = []
        while self._socket.poll(0 if len(found) else 10_000):
            found.append(json.loads(self._socket.recv())["n"])
        return found

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class Metrics:
    """A socket that StatsD metrics are sent to."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def numbers(self) -> list[int]:
        lines: list[bytes] = []
        with suppress(BlockingIOError):
            while True:
                lines += self._socket.recv(65_536).split(b"\n")
        return [int(line.removeprefix(b"guarantees:").removesuffix(b"|c")) for line in lines]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def aftermath(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_url: str,
    redis_url: str,
    opensearch_url: str,
    rabbitmq_url: str,
    mqtt_url: str,
) -> Iterator[Aftermath]:
    directory = tmp_path_factory.mktemp("guarantees")
    name = f"guarantees_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    database = postgres_url.rsplit("/", 1)[0] + f"/{name}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE writes (sink text, n bigint)")
        connection.execute(COUNT_WRITES)
        for sink in GUARANTEES:
            connection.execute(f"CREATE TABLE {sink} (key text PRIMARY KEY, n bigint)")
            connection.execute(
                f"CREATE TRIGGER counted AFTER INSERT OR UPDATE ON {sink} FOR EACH ROW EXECUTE FUNCTION count_write()"
            )
    broker = EmbeddedBroker.shared(directory / "data")
    broker.create_topic("orders", 2)
    broker.append("orders", [LogRecord(b"%d" % n, b'{"n": %d}' % n, n) for n in range(RECORDS)])
    with web_server() as site, subscriber(mqtt_url, "guarantees/#") as topics:
        site.url = site.url.removesuffix("/orders")
        made = Aftermath(directory, site, database, redis_url, opensearch_url, rabbitmq_url, topics)
        for failpoint in FAILPOINTS:
            made.run(failpoint)
        # The broker delivers in order, so what the query has published is there with its end.
        until(lambda: len(set(made.found("mqtt", "at_least_once"))) == RECORDS)
        yield made
        made.sockets.close()
        made.metrics.close()


@pytest.mark.parametrize("sink", SINKS)
def test_exactly_once_has_every_record_once(aftermath: Aftermath, sink: str) -> None:
    assert aftermath.found(sink, "exactly_once") == EVERYTHING


@pytest.mark.parametrize("sink", [*SINKS, *MESSAGES])
def test_at_least_once_has_twice_what_was_out_when_the_process_died_and_loses_nothing(
    aftermath: Aftermath, sink: str
) -> None:
    repeated = Counter[int]() if sink in KEYED else aftermath.batch(REPEATED)
    assert aftermath.found(sink, "at_least_once") == EVERYTHING + repeated


@pytest.mark.parametrize("sink", [*SINKS, *MESSAGES])
def test_at_most_once_lacks_what_was_not_out_when_the_process_died_and_repeats_nothing(
    aftermath: Aftermath, sink: str
) -> None:
    assert aftermath.found(sink, "at_most_once") == EVERYTHING - aftermath.batch(LOST)


def test_a_function_of_dataframes_that_replaces_its_batch_has_every_record_once(aftermath: Aftermath) -> None:
    found = pq.read_table(aftermath.directory / "frames").column("n").to_pylist()
    assert Counter(found) == EVERYTHING


def test_the_kills_hit_different_batches_and_the_manifests_name_all(aftermath: Aftermath) -> None:
    assert aftermath.batch(REPEATED) and aftermath.batch(LOST)
    assert not aftermath.batch(REPEATED) & aftermath.batch(LOST)
    batches = batches_in(aftermath.directory / "files" / "exactly_once")
    rows = {number: pq.read_table(paths).column("n").to_pylist() for number, paths in batches.items()}
    assert sorted(batches) == list(range(1, len(batches) + 1))
    assert Counter(rows[REPEATED]) == aftermath.batch(REPEATED)


def test_a_server_that_ignores_the_idempotency_key_gets_repeated_requests(aftermath: Aftermath) -> None:
    bodies = [
        body
        for (_, body), headers in zip(aftermath.site.requests, aftermath.site.headers, strict=True)
        if headers["path"].endswith("/exactly_once")
    ]
    assert Counter(item["n"] for body in bodies for item in body) == EVERYTHING + aftermath.batch(REPEATED)


def test_webhooks_have_every_record_and_repeat_one_only_under_its_id(aftermath: Aftermath) -> None:
    requests = [
        request
        for request, headers in zip(aftermath.site.requests, aftermath.site.headers, strict=True)
        if headers["path"].endswith("/webhooks")
    ]
    assert Counter(body["n"] for body in dict(requests).values()) == EVERYTHING


@pytest.mark.parametrize("sink", MESSAGES)
def test_messages_repeat_a_record_only_under_its_id(aftermath: Aftermath, sink: str) -> None:
    assert Counter(dict(aftermath.messages(sink, "at_least_once")).values()) == EVERYTHING


def test_metrics_lack_what_was_not_sent_when_the_process_died_and_repeat_nothing(aftermath: Aftermath) -> None:
    assert Counter(aftermath.metrics.numbers()) == EVERYTHING - aftermath.batch(LOST)


def test_a_socket_without_acknowledgements_repeats_nothing(aftermath: Aftermath) -> None:
    found = Counter(aftermath.sockets.numbers())
    assert found and found <= EVERYTHING - aftermath.batch(LOST)
