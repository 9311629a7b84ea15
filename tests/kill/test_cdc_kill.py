"""Kill a capture at every durable step, and at random moments: the topic says what the table has, and each row of the
snapshot and each change is in it once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.sources.cdc.runner import CaptureRunner
from servers import MariadbServer, PostgresServer
from tests.sources.cdc.changed import Database, MysqlDatabase, equals_select, events, wait_for

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.kill, pytest.mark.timeout(180)]

ROWS = 600
FIRST = {
    Database: ("cdc.slot.intended", "cdc.slot.created", "cdc.slot.stored"),
    MysqlDatabase: ("cdc.position.stored",),
}
POINTS = (
    "cdc.chunk.requested:2",
    "cdc.before-landing:3",
    "log.publish.written:3",
    "log.publish.synced:3",
    "log.publish.committed:3",
    "cdc.landed:2",
    "cdc.landed:5",
)


@pytest.fixture
def postgres(logical_postgres: PostgresServer) -> Iterator[Database]:
    made = Database(logical_postgres)
    made.run("CREATE TABLE users (id int PRIMARY KEY, name text, balance int NOT NULL DEFAULT 0)")
    made.run("INSERT INTO users SELECT i, 'user ' || i FROM generate_series(1, %s) i", [ROWS])
    yield made
    made.close()


@pytest.fixture
def mysql(mariadb: MariadbServer) -> Iterator[MysqlDatabase]:
    made = MysqlDatabase(mariadb)
    made.run("CREATE TABLE users (id int PRIMARY KEY, name text, balance int NOT NULL DEFAULT 0)")
    made.run(f"INSERT INTO users SELECT seq, CONCAT('user ', seq), 0 FROM seq_1_to_{ROWS}")
    yield made
    made.close()


@pytest.fixture(params=["postgres", "mysql"])
def database(request: pytest.FixtureRequest) -> Database | MysqlDatabase:
    found: Database | MysqlDatabase = request.getfixturevalue(request.param)
    return found


def started(
    directory: Path, database: Database | MysqlDatabase, failpoint: str = "", broker: str = "file:./data"
) -> subprocess.Popen[bytes]:
    toml = f'[{database.name}]\nurl = "{database.url}"\ntables = ["users"]\nchunk_rows = 100\nheartbeat = "200 ms"\n'
    (directory / "cdc.toml").write_text(toml)
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "cdc", "cdc.toml", "--json"]
    environment = {**os.environ, "POTOK_FAILPOINT": failpoint, "POTOK_BROKER": broker}
    return subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Changes:
    """Changes of the table, a few at a time, so that each has another balance."""

    def __init__(self, database: Database | MysqlDatabase) -> None:
        self._database, self._random, self.number = database, random.Random(7), ROWS

    def some(self) -> None:
        run, pick = self._database.run, self._random.randrange
        for _ in range(5):
            self.number += 1
            run("UPDATE users SET balance = balance + 1 WHERE id %% 50 = %s", [pick(50)])
            run("INSERT INTO users VALUES (%s, 'new', 0)", [self.number])
            run("DELETE FROM users WHERE id = %s", [pick(self.number)])
            run("UPDATE users SET id = -id WHERE id = %s", [pick(self.number)])


def each_change_is_there_once(broker: Broker, database: Database | MysqlDatabase) -> None:
    """Finish the capture, and compare the topic with the table. A repeated change would have the same position."""
    capture = database.capture(chunk_rows=100)
    with CaptureRunner(capture, broker) as runner:
        wait_for(lambda: runner.status().snapshot_done, runner)
        equals_select(runner, broker, database)
    found = [event for event in events(broker, capture.topic("users")) if event is not None]
    streamed = [(_place(event["source"]), event["op"], str(event["after"])) for event in found if event["op"] != "r"]
    assert len(streamed) == len(set(streamed))
    read = [event["after"]["id"] for event in found if event["op"] == "r"]
    assert len(read) == len(set(read))
    broker.close()


def _place(source: dict[str, object]) -> tuple[object, ...]:
    return tuple(source[name] for name in ("lsn", "file", "pos", "row") if name in source)


def test_a_capture_killed_at_every_durable_step_loses_nothing_and_repeats_nothing(
    tmp_path: Path, database: Database | MysqlDatabase
) -> None:
    changes = Changes(database)
    for failpoint in (*FIRST[type(database)], *POINTS):
        process = started(tmp_path, database, failpoint)
        while process.poll() is None:
            changes.some()
            time.sleep(0.02)
        assert process.stderr is not None
        assert process.returncode == -signal.SIGKILL, (failpoint, process.stderr.read())
    each_change_is_there_once(EmbeddedBroker(tmp_path / "data"), database)


def test_a_capture_killed_at_random_moments_loses_nothing_and_repeats_nothing(
    tmp_path: Path, database: Database | MysqlDatabase
) -> None:
    changes, moments = Changes(database), random.Random(11)
    for _ in range(6):
        process = started(tmp_path, database)
        # A start takes about half a second.
        end = time.monotonic() + 0.4 + moments.random()
        while time.monotonic() < end:
            changes.some()
        process.kill()
        process.wait()
    each_change_is_there_once(EmbeddedBroker(tmp_path / "data"), database)


MORE = {
    Database: "INSERT INTO users SELECT i, 'more' FROM generate_series(1000, 52000) i",
    MysqlDatabase: "INSERT INTO users SELECT seq, 'more', 0 FROM seq_1000_to_52000",
}


def test_a_transaction_larger_than_a_batch_is_resumed_in_its_middle(
    tmp_path: Path, database: Database | MysqlDatabase
) -> None:
    process = started(tmp_path, database)
    broker = EmbeddedBroker(tmp_path / "data")
    # The snapshot is over, so that it does not read the rows of the transaction.
    wait_for(lambda: b'"done":true' in (broker.get_metadata(f"cdc/{database.name}") or b""))
    process.kill()
    process.wait()
    database.run(MORE[type(database)])
    database.run("INSERT INTO users VALUES (0, 'behind', 0)")
    process = started(tmp_path, database, "cdc.landed:1")
    assert process.wait(30) == -signal.SIGKILL
    partial = orjson.loads(broker.get_metadata(f"cdc/{database.name}") or b"")["stream"]
    assert 0 < partial["done"] < 51_001
    broker.close()
    each_change_is_there_once(EmbeddedBroker(tmp_path / "data"), database)


def test_a_capture_on_kafka_killed_around_its_transactions_repeats_nothing(
    tmp_path: Path, postgres: Database, kafka: ServerStatus
) -> None:
    url = f"{kafka.url}?home={tmp_path}"
    changes = Changes(postgres)
    points = ("cdc.intended:2", "log.publish.written:3", "log.publish.sent:2", "log.publish.sent:4", "cdc.landed:2")
    for failpoint in points:
        process = started(tmp_path, postgres, failpoint, url)
        while process.poll() is None:
            changes.some()
            time.sleep(0.02)
        assert process.stderr is not None
        assert process.returncode == -signal.SIGKILL, (failpoint, process.stderr.read())
    each_change_is_there_once(open_broker(url), postgres)
