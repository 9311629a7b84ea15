"""Servers that go away for a while during a query, and come back. Batches run in this process; the servers are real."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from object_store import FaultyProxy
from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.kafka.development.server import KafkaServer
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.snapshots.tables import Tables
from runtime.one_query import group_of, process_all
from servers import Server, durable_redis, postgres_server

pytestmark = pytest.mark.timeout(240)

BATCHES, RECORDS = 6, 40


class Outage:
    """Stops a server before one of the batches, and starts it again as soon as the query waits for it."""

    def __init__(self, stop: Callable[[], None], start: Callable[[], None]) -> None:
        self._stop, self._start = stop, start
        self._back: threading.Thread | None = None
        self.waited_for: list[str] = []

    def begin(self) -> None:
        self._stop()

    def waiting(self, error: PotokError | None) -> None:
        if error is not None:
            self.waited_for.append(error.message)
            if self._back is None:
                self._back = threading.Thread(target=self._start)
                self._back.start()

    def end(self) -> None:
        if self._back is not None:
            self._back.join()


def run(broker: Broker, settings: Settings, outage: Outage) -> dict[Any, Any]:
    """Count records by key, in batches, of which the third finds that the server is away."""
    builder = StreamsBuilder("counting")
    builder.stream("numbers").group_by_key().count(name="counts").to_stream().to("out")
    prepared = prepare(builder, broker, settings)
    group = group_of(prepared, replace(settings, retry_for_ms=120_000))
    for batch in range(BATCHES):
        records = [LogRecord(b"k%d" % (n % 7), b"%d" % n, n) for n in range(RECORDS)]
        broker.append("numbers", records, 0)
        if batch == 2:
            outage.begin()
        process_all(group, outage.waiting)
    outage.end()
    found = Tables(broker, "counting")["counts"].all()
    group.stop()
    return found


def expected() -> dict[str, int]:
    return {f"k{key}": BATCHES * len(range(key, RECORDS, 7)) for key in range(7)}


@contextmanager
def _redis(_: Path) -> Iterator[tuple[Server, str]]:
    with durable_redis() as server:
        yield server, server.url


@contextmanager
def _postgres(_: Path) -> Iterator[tuple[Server, str]]:
    with postgres_server() as server:
        yield server, server.url


@pytest.mark.parametrize("place", [_redis, _postgres])
def test_a_query_waits_for_the_server_of_its_state_and_continues(tmp_path: Path, place: Any) -> None:
    broker = open_broker(tmp_path / "log")
    broker.create_topic("numbers", 1)
    with place(tmp_path) as (server, url):
        outage = Outage(server.stop, server.start)
        assert run(broker, Settings(state=url, shards=2), outage) == expected()
    assert any("cannot be reached" in message for message in outage.waited_for)
    broker.close()


@pytest.mark.usefixtures("cache")
def test_a_query_waits_for_the_bucket_of_its_state_and_continues(tmp_path: Path, faulty: FaultyProxy) -> None:
    broker = open_broker(tmp_path / "log")
    broker.create_topic("numbers", 1)
    outage = Outage(faulty.shut, faulty.open)
    assert run(broker, Settings(state=faulty.url, shards=2), outage) == expected()
    assert any("cannot be reached" in message for message in outage.waited_for)
    broker.close()


@pytest.mark.kafka
def test_a_query_waits_for_kafka_and_continues(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "kafka", Settings.load().cache_path)
    try:
        status = server.start(0, timeout_s=120)
    except PotokError as error:
        pytest.skip(f"no Kafka on this machine: {error}")
    port = int(status.bootstrap.rpartition(":")[2])
    settings = Settings(broker=status.url, shards=2, state=str(tmp_path / "state"))
    try:
        broker = open_broker(status.url, settings)
        broker.create_topic("numbers", 1)
        outage = Outage(server.stop, lambda: (server.start(port, timeout_s=120), None)[1])
        assert run(broker, settings, outage) == expected()
        assert any("Kafka at" in message for message in outage.waited_for)
        broker.close()
    finally:
        server.stop()
