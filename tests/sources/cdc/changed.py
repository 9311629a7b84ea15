"""What the tests of captures share: a database, a capture of it, and what has landed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import orjson
import psycopg

from potok.log.broker import Broker
from potok.sources.cdc.errors import CaptureStopped
from potok.sources.cdc.runner import CaptureRunner
from potok.topology.capture import Capture
from servers import MariadbServer, PostgresServer

TIMEOUT_S = 30.0
_numbers = itertools.count()


class Database:
    """A database of its own, and a connection to it."""

    def __init__(self, server: PostgresServer) -> None:
        self.name = f"shop{next(_numbers)}"
        self.url = server.create_database(self.name)
        self.connection = psycopg.connect(self.url, autocommit=True)

    def run(self, statement: Any, values: Any = None) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

    def capture(self, *tables: str, **options: Any) -> Capture:
        given: dict[str, Any] = {"heartbeat": "200 ms", **options}
        return Capture(url=self.url, tables=tables or ("users",), **given)

    def drop_slots(self) -> None:
        mine = "FROM pg_replication_slots WHERE database = current_database()"
        self.run(f"SELECT pg_terminate_backend(active_pid) {mine}")
        wait_for(lambda: self.run(f"SELECT count(*) {mine} AND active") == [(0,)])
        self.run(f"SELECT pg_drop_replication_slot(slot_name) {mine}")

    def topic(self, table: str = "users") -> str:
        return f"{self.name}.public.{table}"

    def selected(self, table: str) -> dict[bytes, dict[str, Any]]:
        """Return the rows of a table by their key, as a topic has them."""
        return {
            orjson.dumps({"id": row["id"]}): row
            for (row,) in self.run(f"SELECT to_jsonb(t) FROM {table} t ORDER BY id")
        }

    def reconnect(self) -> None:
        self.connection.close()
        self.connection = psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        """Drop what slots there are: the server is shared, and its slots are counted."""
        self.drop_slots()
        self.connection.close()


class MysqlDatabase:
    """The same in MariaDB."""

    def __init__(self, server: MariadbServer) -> None:
        self.name, self._server = f"shop{next(_numbers)}", server
        self.url = server.create_database(self.name)
        self.connection = server.connect(self.name)

    def run(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def capture(self, *tables: str, **options: Any) -> Capture:
        return Capture(url=self.url, tables=tables or ("users",), **options)

    def topic(self, table: str = "users") -> str:
        return f"{self.name}.{self.name}.{table}"

    def selected(self, table: str) -> dict[bytes, dict[str, Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return {orjson.dumps({"id": row["id"]}): row for row in found}

    def reconnect(self) -> None:
        self.connection = self._server.connect(self.name)

    def close(self) -> None:
        self.connection.close()


AnyDatabase = Database | MysqlDatabase


def users(database: AnyDatabase, count: int = 0) -> None:
    """Create the table of users, and some of them."""
    database.run("CREATE TABLE users (id int PRIMARY KEY, name varchar(100), balance int NOT NULL DEFAULT 0)")
    if count:
        numbers = f"generate_series(1, {count}) seq" if isinstance(database, Database) else f"seq_1_to_{count}"
        database.run(f"INSERT INTO users SELECT seq, CONCAT('user ', seq), 0 FROM {numbers}")


def captured_once(database: AnyDatabase, broker: Broker) -> None:
    users(database, 2)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)


def stopped(runner: CaptureRunner) -> CaptureStopped:
    """Run a capture until it stops by itself, and return why."""
    with runner:
        assert runner.wait(20)
    assert isinstance(runner.error, CaptureStopped)
    return runner.error


def wait_for(condition: Callable[[], bool], runner: CaptureRunner | None = None) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        if runner is not None and runner.error is not None:
            raise runner.error
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.01)


def records(broker: Broker, topic: str) -> list[dict[str, Any]]:
    found = []
    for partition, end in broker.end_offsets(topic).items():
        for batch in broker.read(topic, partition, 0, end):
            found += batch.to_pylist()
    return found


def events(broker: Broker, topic: str) -> list[dict[str, Any] | None]:
    """Return the values of a topic; None for a tombstone."""
    return [None if each["value"] is None else orjson.loads(each["value"]) for each in records(broker, topic)]


def rows(broker: Broker, topic: str) -> dict[bytes, dict[str, Any]]:
    """Return the rows that a reader of a topic has in the end."""
    found: dict[bytes, dict[str, Any]] = {}
    for record in records(broker, topic):
        event = None if record["value"] is None else orjson.loads(record["value"])
        after = None if event is None else event["after"]
        if after is None:
            found.pop(record["key"], None)
        else:
            found[record["key"]] = after
    return found


def caught_up(runner: CaptureRunner, broker: Broker, database: Database, topic: str, count: int) -> None:
    """Wait until a topic has so many records."""
    wait_for(lambda: broker.has_topic(topic) and sum(broker.end_offsets(topic).values()) >= count, runner)


def snapshot_landed(runner: CaptureRunner) -> None:
    wait_for(lambda: runner.status().snapshot_done, runner)


def equals_select(runner: CaptureRunner | None, broker: Broker, database: AnyDatabase, table: str = "users") -> None:
    """Wait until the topic says what the table has."""
    topic = database.topic(table)
    compared = -1

    def same() -> bool:
        """Compare again only after more has landed."""
        nonlocal compared
        landed = sum(broker.end_offsets(topic).values()) if broker.has_topic(topic) else -1
        if landed == compared:
            return False
        compared = landed
        return rows(broker, topic) == database.selected(table)

    wait_for(same, runner)
