"""What captures of every database do, with each of the real servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.runner import CaptureRunner
from servers import mariadb_server, postgres_server
from tests.sources.cdc.changed import (
    AnyDatabase,
    Database,
    MysqlDatabase,
    captured_once,
    equals_select,
    events,
    records,
    rows,
    snapshot_landed,
    users,
    wait_for,
)

SERVERS = {"logical_postgres": Database, "mariadb": MysqlDatabase}


@pytest.fixture(params=list(SERVERS))
def database(request: pytest.FixtureRequest) -> Iterator[AnyDatabase]:
    made = SERVERS[request.param](request.getfixturevalue(request.param))
    yield made
    made.close()


@pytest.fixture
def broker(tmp_path: Path) -> EmbeddedBroker:
    return EmbeddedBroker(tmp_path)


def test_a_changed_key_is_a_delete_and_a_create_that_name_each_other(
    database: AnyDatabase, broker: EmbeddedBroker
) -> None:
    users(database)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann', 10)")
        database.run("UPDATE users SET id = 2 WHERE id = 1")
        wait_for(lambda: len(records(broker, database.topic())) == 4, runner)
    found = records(broker, database.topic())
    assert [(record["key"], record["headers"]) for record in found[1:]] == [
        (b'{"id":1}', [{"name": "__debezium.newkey", "value": b'{"id":2}'}]),
        (b'{"id":1}', None),
        (b'{"id":2}', [{"name": "__debezium.oldkey", "value": b'{"id":1}'}]),
    ]
    assert [event and event["op"] for event in events(broker, database.topic())] == ["c", "d", None, "c"]


def test_a_truncate_deletes_each_row(database: AnyDatabase, broker: EmbeddedBroker) -> None:
    users(database, 3)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("DELETE FROM users WHERE id = 2")
        database.run("TRUNCATE users")
        database.run("INSERT INTO users VALUES (9, 'new', 0)")
        wait_for(lambda: b'{"id":9}' in rows(broker, database.topic()), runner)
    ops = [event and event["op"] for event in events(broker, database.topic())]
    assert ops == ["r", "r", "r", "d", None, "t", None, None, "c"]
    assert rows(broker, database.topic()).keys() == {b'{"id":9}'}


def test_the_snapshot_and_the_stream_have_neither_gap_nor_overlap(
    database: AnyDatabase, broker: EmbeddedBroker
) -> None:
    users(database, 1_500)
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set() and number < 1_000:
            number += 1
            database.run("UPDATE users SET balance = balance + 1 WHERE id %% 7 = %s", [number % 7])
            database.run("UPDATE users SET id = id + 10000 WHERE id = %s", [number])
            database.run("DELETE FROM users WHERE id = %s", [1_500 - number])
            database.run("INSERT INTO users VALUES (%s, 'more', 0)", [5_000 + number])

    thread = threading.Thread(target=change)
    thread.start()
    with CaptureRunner(database.capture(chunk_rows=100), broker) as runner:
        snapshot_landed(runner)
        stop.set()
        thread.join()
        equals_select(runner, broker, database)
    found = [event for event in events(broker, database.topic()) if event]
    read = [event["after"]["id"] for event in found if event["op"] == "r"]
    assert len(read) == len(set(read))
    # Each change continues from the row that the topic has, as far as it names that; rows of the snapshot repeat it.
    state: dict[int, object] = {}
    for event in found:
        before, after = event["before"], event["after"]
        if before is not None:
            known = state.pop(before["id"], before)
            assert isinstance(database, Database) or known == before
        if after is not None:
            if isinstance(database, MysqlDatabase) or event["op"] != "u":
                assert state.get(after["id"], after) == after
                assert event["op"] == "r" or after["id"] not in state
            state[after["id"]] = after


@pytest.mark.parametrize(("kind", "make"), [("int", str), ("varchar(20)", "k{:09}".format)], ids=["numbers", "texts"])
def test_a_snapshot_ends_while_rows_are_inserted_behind_it(
    database: AnyDatabase, broker: EmbeddedBroker, kind: str, make: object
) -> None:
    assert callable(make)
    database.run(f"CREATE TABLE users (id {kind} PRIMARY KEY, name varchar(100))")

    def insert(first: int, count: int) -> None:
        database.run("INSERT INTO users VALUES " + ", ".join(f"('{make(first + n)}', 'x')" for n in range(count)))

    insert(0, 60)
    ended = threading.Event()

    def follow() -> None:
        """Insert more rows than are read, until the snapshot has ended."""
        first = 60
        while not ended.wait(0.005):
            insert(first, 50)
            first += 50

    thread = threading.Thread(target=follow)
    with CaptureRunner(database.capture(chunk_rows=5), broker) as runner:
        wait_for(lambda: rows(broker, database.topic()) != {} if broker.has_topic(database.topic()) else False, runner)
        thread.start()
        try:
            snapshot_landed(runner)
            assert thread.is_alive()
        finally:
            ended.set()
            thread.join()
        equals_select(runner, broker, database)
    found = [event for event in events(broker, database.topic()) if event]
    read = [event["after"]["id"] for event in found if event["op"] == "r"]
    assert len(read) == len(set(read)) < len(found)


def test_a_snapshot_of_the_last_version_ends_at_the_largest_key_of_the_first_chunk_that_follows(
    database: AnyDatabase, broker: EmbeddedBroker
) -> None:
    """Its position does not say where it ends."""
    users(database, 20)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
    key = f"cdc/{database.name}"
    position = orjson.loads(broker.get_metadata(key) or b"")
    progress = next(iter(position["tables"].values()))
    assert progress.pop("until") == ["20"]
    progress.update(after=["7"], done=False)
    broker.set_metadata({key: orjson.dumps(position)})
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
    read = [event["after"]["id"] for event in events(broker, database.topic()) if event]
    assert read == [*range(1, 21), *range(8, 21)]


def test_a_table_that_is_added_gets_its_snapshot(database: AnyDatabase, broker: EmbeddedBroker) -> None:
    captured_once(database, broker)
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.run("INSERT INTO orders VALUES (1, 'first')")
    with CaptureRunner(database.capture("users", "orders"), broker) as runner:
        equals_select(runner, broker, database, "orders")
        database.run("INSERT INTO orders VALUES (2, 'second')")
        equals_select(runner, broker, database, "orders")


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_capture_follows_a_server_that_restarts_under_load(broker: EmbeddedBroker, kind: str) -> None:
    started = postgres_server("wal_level=logical") if kind == "postgres" else mariadb_server()
    with started as server, closing((Database if kind == "postgres" else MysqlDatabase)(server)) as database:
        users(database, 5)
        with CaptureRunner(database.capture(), broker) as runner:
            snapshot_landed(runner)
            for time in range(5):
                for number in range(20):
                    database.run("INSERT INTO users VALUES (%s, 'more', 0)", [100 * time + number + 10])
                server.stop()
                server.start()
                database.reconnect()
                database.run("UPDATE users SET balance = balance + 1")
            equals_select(runner, broker, database)
    found = [event["source"] for event in events(broker, database.topic()) if event and event["op"] != "r"]
    landed = [tuple(source.get(name) for name in ("lsn", "file", "pos", "row")) for source in found]
    assert len(landed) == len(set(landed))
