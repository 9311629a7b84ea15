"""Large values that PostgreSQL does not send with each change."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.sources.cdc.runner import CaptureRunner, captured
from tests.sources.cdc.changed import Database, snapshot_landed, wait_for

SIZE = 20_000


@pytest.fixture
def large(database: Database) -> Database:
    database.run("CREATE TABLE users (id int PRIMARY KEY, name text, note text)")
    database.run("ALTER TABLE users ALTER COLUMN note SET STORAGE EXTERNAL")
    database.run("INSERT INTO users SELECT i, 'user', repeat(i::text, %s) FROM generate_series(1, 3) i", [SIZE])
    return database


def program(database: Database) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    shop = builder.cdc(database.url, tables=["users"], heartbeat="200 ms")
    shop.table("users", key=int, value="name string, note string")
    return builder


def test_a_table_equals_the_one_of_the_database(large: Database, tmp_path: Path) -> None:
    builder = program(large)
    with InProcess(builder, directory=tmp_path) as driver:
        with captured(builder, driver.broker) as (runner,):
            snapshot_landed(runner)
            large.run("UPDATE users SET name = 'changed' WHERE id < 3")
            large.run("UPDATE users SET id = 10 WHERE id = 2")
            large.run("UPDATE users SET name = 'twice' WHERE id = 10")
            wait_for(lambda: runner.status().changes == 4, runner)
        driver.run()
        found = {key: (row["name"], row["note"]) for key, row in driver.table("users").all().items()}
        assert found == {id_: (name, note) for id_, name, note in large.run("SELECT * FROM users")}
        assert driver.reasons() == []


def test_the_topic_says_what_was_not_sent(large: Database, tmp_path: Path) -> None:
    from potok.log.embedded.embedded_broker import EmbeddedBroker
    from tests.sources.cdc.changed import events

    broker = EmbeddedBroker(tmp_path)
    capture = large.capture()
    with CaptureRunner(capture, broker) as runner:
        snapshot_landed(runner)
        large.run("UPDATE users SET name = 'changed' WHERE id = 1")
        large.run("ALTER TABLE users REPLICA IDENTITY FULL")
        large.run("UPDATE users SET name = 'again' WHERE id = 1")
        wait_for(lambda: runner.status().changes == 2, runner)
    first, second = events(broker, capture.topic("users"))[-2:]
    assert first is not None and first["after"]["note"] == "__debezium_unavailable_value"
    assert second is not None and len(second["after"]["note"]) == SIZE
