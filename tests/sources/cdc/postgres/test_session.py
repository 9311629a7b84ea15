"""Captures of a real PostgreSQL: what lands, and in which form."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.errors import ChangesLost, NotReady
from potok.sources.cdc.landing.landing import captures
from potok.sources.cdc.runner import CaptureRunner, check_database, remove
from servers import postgres_server
from tests.sources.cdc.changed import (
    Database,
    captured_once,
    equals_select,
    events,
    records,
    rows,
    snapshot_landed,
    stopped,
    users,
    wait_for,
)


@pytest.fixture
def broker(tmp_path: Path) -> EmbeddedBroker:
    return EmbeddedBroker(tmp_path)


def test_changes_land_in_the_envelope_of_debezium(database: Database, broker: EmbeddedBroker) -> None:
    users(database)
    topic = f"{database.name}.public.users"
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann', 10)")
        database.run("UPDATE users SET balance = 20 WHERE id = 1")
        database.run("DELETE FROM users WHERE id = 1")
        wait_for(lambda: len(records(broker, topic)) == 4, runner)
    created, updated, deleted, tombstone = events(broker, topic)
    assert created is not None and updated is not None and deleted is not None
    assert list(created) == ["before", "after", "source", "op", "ts_ms", "transaction"]
    names = "version connector name ts_ms snapshot db sequence schema table txId lsn xmin"
    assert " ".join(created["source"]) == names
    assert (created["op"], created["before"], created["after"]) == ("c", None, {"id": 1, "name": "Ann", "balance": 10})
    assert (updated["op"], updated["before"], updated["after"]["balance"]) == ("u", None, 20)
    assert (deleted["op"], deleted["before"], deleted["after"]) == ("d", {"id": 1}, None)
    assert tombstone is None
    source = created["source"]
    assert (source["connector"], source["name"], source["db"]) == ("postgresql", database.name, database.name)
    assert (source["schema"], source["table"], source["snapshot"]) == ("public", "users", "false")
    last, lsn = orjson.loads(source["sequence"])
    assert int(lsn) == source["lsn"] and int(last) < int(lsn)
    assert [record["key"] for record in records(broker, topic)] == [b'{"id":1}'] * 4


def test_a_whole_replica_identity_says_the_row_before(database: Database, broker: EmbeddedBroker) -> None:
    users(database)
    database.run("ALTER TABLE users REPLICA IDENTITY FULL")
    topic = f"{database.name}.public.users"
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann', 10)")
        database.run("UPDATE users SET balance = 20")
        wait_for(lambda: len(records(broker, topic)) == 2, runner)
    event = events(broker, topic)[1]
    assert event is not None and event["before"] == {"id": 1, "name": "Ann", "balance": 10}


def test_a_capture_resumes_behind_what_has_landed(database: Database, broker: EmbeddedBroker) -> None:
    users(database, 10)
    topic = f"{database.name}.public.users"
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
    database.run("UPDATE users SET balance = 1")
    with CaptureRunner(database.capture(), broker) as runner:
        equals_select(runner, broker, database)
    assert len(records(broker, topic)) == 20


def test_columns_that_come_and_go_are_followed_and_recorded(database: Database, broker: EmbeddedBroker) -> None:
    users(database, 1)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("ALTER TABLE users ADD COLUMN city text DEFAULT 'Berlin'")
        database.run("INSERT INTO users VALUES (2, 'b', 0, 'Paris')")
        database.run("ALTER TABLE users DROP COLUMN name")
        database.run("ALTER TABLE users ALTER COLUMN balance TYPE bigint")
        database.run("UPDATE users SET balance = 3000000000 WHERE id = 2")
        wait_for(lambda: len(records(broker, database.name)) == 3, runner)
    found = rows(broker, f"{database.name}.public.users")
    assert found[b'{"id":2}'] == {"id": 2, "balance": 3_000_000_000, "city": "Paris"}
    changes = [event["changes"] for event in events(broker, database.name) if event]
    assert changes == [
        [],
        ["column city text added"],
        ["column balance changed from int4 to int8", "column name dropped"],
    ]


def test_heartbeats_let_the_server_remove_its_log_while_the_tables_are_quiet(
    database: Database, broker: EmbeddedBroker
) -> None:
    users(database, 1)
    database.run("CREATE TABLE noise (id int PRIMARY KEY)")
    lsn = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO noise SELECT generate_series(1, 1000)")
        [(end,)] = database.run("SELECT pg_current_wal_lsn()::text")
        wait_for(lambda: database.run(f"SELECT ({lsn}) >= %s::pg_lsn", [end]) == [(True,)], runner)


def test_a_lost_slot_stops_at_once_and_names_the_repair(database: Database, broker: EmbeddedBroker) -> None:
    captured_once(database, broker)
    capture = database.capture()
    database.drop_slots()
    error = stopped(CaptureRunner(capture, broker))
    assert isinstance(error, ChangesLost)
    assert f"--reset {database.name}" in error.hint


def test_a_slot_that_was_created_again_stops_at_once(database: Database, broker: EmbeddedBroker) -> None:
    captured_once(database, broker)
    capture = database.capture()
    database.drop_slots()
    database.run("INSERT INTO users VALUES (3, 'missed')")
    database.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [capture.slot])
    assert "created again" in str(stopped(CaptureRunner(capture, broker)))


@pytest.mark.parametrize(("what", "value"), [("system", "1"), ("timeline", 7)])
def test_another_server_or_timeline_stops_at_once(
    database: Database, broker: EmbeddedBroker, what: str, value: object
) -> None:
    captured_once(database, broker)
    key = f"cdc/{database.name}"
    data = orjson.loads(broker.get_metadata(key) or b"")
    data["server"][what] = value
    broker.set_metadata({key: orjson.dumps(data)})
    assert isinstance(stopped(CaptureRunner(database.capture(), broker)), ChangesLost)


def test_after_a_reset_rows_that_were_deleted_meanwhile_are_gone(database: Database, broker: EmbeddedBroker) -> None:
    captured_once(database, broker)
    capture = database.capture()
    database.drop_slots()
    database.run("DELETE FROM users WHERE id = 1")
    remove(capture, broker, drop=False)
    assert captures(broker) == {}
    with CaptureRunner(capture, broker) as runner:
        equals_select(runner, broker, database)


def test_a_second_process_with_the_same_capture_stops_one_of_the_two(
    database: Database, broker: EmbeddedBroker
) -> None:
    captured_once(database, broker)
    with CaptureRunner(database.capture(), broker) as runner:
        wait_for(lambda: runner.status().state == "streaming", runner)
        other = CaptureRunner(database.capture(), broker)
        with other:
            wait_for(lambda: other.status().state == "waiting")
            assert "active" in (other.status().problem or "")
        database.run("INSERT INTO users VALUES (3, 'c')")
        equals_select(runner, broker, database)


def test_what_a_server_lacks_is_said_with_the_statements(tmp_path: Path) -> None:
    with postgres_server() as server:
        database = Database(server)
        with pytest.raises(NotReady) as found:
            check_database(database.capture())
        database.connection.close()
    assert "ALTER SYSTEM SET wal_level = 'logical'" in found.value.hint


def test_a_table_without_a_key_is_refused_with_the_statement(database: Database) -> None:
    database.run("CREATE TABLE users (name text)")
    with pytest.raises(NotReady, match="no primary key") as found:
        check_database(database.capture())
    assert "ADD PRIMARY KEY" in found.value.hint


def test_partitions_are_captured_as_their_table(database: Database, broker: EmbeddedBroker) -> None:
    database.run("CREATE TABLE users (id int PRIMARY KEY, name text) PARTITION BY RANGE (id)")
    for first in (0, 10, 100):
        database.run(f"CREATE TABLE users_{first} PARTITION OF users FOR VALUES FROM ({first}) TO ({first * 9 + 10})")
    database.run("INSERT INTO users SELECT i, 'before' FROM generate_series(1, 20) i")
    with CaptureRunner(database.capture(chunk_rows=6), broker) as runner:
        snapshot_landed(runner)
        database.run("UPDATE users SET name = 'changed' WHERE id > 15")
        database.run("UPDATE users SET id = id + 100 WHERE id < 5")
        equals_select(runner, broker, database)
    assert {event["source"]["table"] for event in events(broker, database.topic()) if event} == {"users"}
