"""A Kafka broker that is restarted under the queries of a server. Batches run in this process; the broker is real."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.kafka.development.server import KafkaServer
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.server.server import Server
from potok.settings import Settings
from potok.testing.outputs import read_outputs
from statements.running import Running

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

QUERIES = """
CREATE STREAM a (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 2);
CREATE STREAM even AS SELECT id, n FROM a WHERE n % 2 = 0;
CREATE STREAM again AS SELECT id, n FROM even;
CREATE TABLE counts AS SELECT id, COUNT(*) AS c FROM a GROUP BY id;
"""
ROUNDS, RECORDS, LOOK_S = 2, 60, 0.05


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KafkaServer]:
    found = KafkaServer(tmp_path / "kafka", Settings.load().cache_path)
    try:
        found.start(0, timeout_s=120)
    except PotokError as error:
        pytest.skip(f"no Kafka on this machine: {error}")
    yield found
    found.stop()


class Batches(threading.Thread):
    """The loop over batches, until it is stopped; what ended it is raised by `stop`."""

    def __init__(self, database: Running) -> None:
        super().__init__(daemon=True)
        self._database, self._stopped = database, threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopped.wait(LOOK_S):
                self._database.run()
        except BaseException as error:  # noqa: BLE001 - raised by `stop`
            self._error = error

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        if self._error is not None:
            raise self._error


def until(holds: Callable[[], bool]) -> None:
    """Wait for something; the time limit of the test bounds it."""
    while not holds():
        time.sleep(LOOK_S)


def send(broker: Broker, first: int) -> None:
    records = [LogRecord(b"k%d" % (n % 5), b'{"N": %d}' % n, n) for n in range(first, first + RECORDS)]
    broker.append("a", records)


def numbers(broker: Broker, topic: str) -> Counter[int]:
    return Counter(json.loads(record.raw_value or b"null")["N"] for record in read_outputs(broker, topic))


def test_queries_wait_for_a_broker_that_is_restarted_and_lose_and_repeat_nothing(
    tmp_path: Path, server: KafkaServer
) -> None:
    status = server.status()
    port = int(status.bootstrap.rpartition(":")[2])
    broker = open_broker(f"{status.url}?home={tmp_path / 'home'}")
    database = Running(tmp_path, broker=broker)
    database.session.execute(QUERIES)
    database.start()
    web = Server(database, port=0)
    web.start()
    batches = Batches(database)
    batches.start()
    for rounds in range(ROUNDS):
        send(broker, rounds * RECORDS)
        server.stop()
        until(lambda: set(database.states().values()) == {"WAITING"})
        assert {row[2] for row in database.rows("SHOW QUERIES;")} == {"WAITING"}
        with urllib.request.urlopen(f"{web.url}/queries") as answer:
            assert {found["state"] for found in json.load(answer)["queries"]} == {"WAITING"}
        server.start(port, timeout_s=120)
        until(lambda: set(database.states().values()) == {"RUNNING"} and not any(q.lag for q in database.queries()))
    batches.stop()
    everything = range(ROUNDS * RECORDS)
    assert numbers(broker, "EVEN") == Counter(n for n in everything if n % 2 == 0)
    assert numbers(broker, "AGAIN") == numbers(broker, "EVEN")
    assert database.rows("SELECT id, c FROM counts;") == [(f"k{n}", ROUNDS * RECORDS // 5) for n in range(5)]
    web.stop()
    database.close()
    broker.close()
