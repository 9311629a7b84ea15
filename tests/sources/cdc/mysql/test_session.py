"""Captures of a real MariaDB: what lands, and in which form."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.errors import ChangesLost, NotReady
from potok.sources.cdc.runner import CaptureRunner, check_database
from potok.topology.capture import Capture
from servers import mariadb_server
from tests.sources.cdc.changed import (
    MysqlDatabase,
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


def test_changes_land_in_the_envelope_of_debezium(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database)
    topic = database.topic()
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann', 10)")
        database.run("UPDATE users SET balance = 20 WHERE id = 1")
        database.run("DELETE FROM users WHERE id = 1")
        wait_for(lambda: len(records(broker, topic)) == 4, runner)
    created, updated, deleted, tombstone = events(broker, topic)
    assert created is not None and updated is not None and deleted is not None
    assert list(created) == ["before", "after", "source", "op", "ts_ms", "transaction"]
    names = "version connector name ts_ms snapshot db sequence table server_id gtid file pos row thread query"
    assert " ".join(created["source"]) == names
    row = {"id": 1, "name": "Ann", "balance": 10}
    assert (created["op"], created["before"], created["after"]) == ("c", None, row)
    assert (updated["op"], updated["before"], updated["after"]) == ("u", row, {**row, "balance": 20})
    assert (deleted["op"], deleted["before"], deleted["after"]) == ("d", {**row, "balance": 20}, None)
    assert tombstone is None
    source = created["source"]
    assert (source["connector"], source["name"], source["db"]) == ("mariadb", database.name, database.name)
    assert (source["table"], source["server_id"], source["row"]) == ("users", 7, 0)
    assert source["gtid"].startswith("0-7-") and source["file"].startswith("changes.")
    assert [record["key"] for record in records(broker, topic)] == [b'{"id":1}'] * 4


def test_tables_with_keys_of_several_columns_and_of_text_are_read_in_chunks(
    database: MysqlDatabase, broker: EmbeddedBroker
) -> None:
    database.run("CREATE TABLE parts (a varchar(10), b enum('z', 'y', 'x'), c binary(2), n int, PRIMARY KEY (a, b, c))")
    database.run(
        "INSERT INTO parts SELECT CONCAT('k''', seq DIV 9, '\\\\'), 1 + seq % 3, UNHEX(LPAD(HEX(seq % 9), 4, '0')), "
        "seq FROM seq_1_to_200"
    )
    with CaptureRunner(database.capture("parts", chunk_rows=7), broker) as runner:
        snapshot_landed(runner)
    found = rows(broker, database.topic("parts"))
    assert sorted(row["n"] for row in found.values()) == list(range(1, 201))


def test_rows_larger_than_an_answer_of_the_server_are_read_one_by_one(broker: EmbeddedBroker) -> None:
    with mariadb_server("max_allowed_packet=1M") as server:
        database = MysqlDatabase(server)
        database.run("CREATE TABLE users (id int PRIMARY KEY, a longtext, b longtext, c time(3))")
        database.run(
            "INSERT INTO users SELECT seq, REPEAT('a', IF(seq = 3, 500000, 9)), REPEAT('\"', IF(seq = 3, 400000, 9)), "
            "'-25:00:00.5' FROM seq_1_to_9"
        )
        with CaptureRunner(database.capture(), broker) as runner:
            snapshot_landed(runner)
        found = rows(broker, database.topic())
        assert {row["id"]: (row["a"], row["b"]) for row in found.values()} == {
            each: ("a" * (500_000 if each == 3 else 9), '"' * (400_000 if each == 3 else 9)) for each in range(1, 10)
        }
        assert {row["c"] for row in found.values()} == {-90_000_500_000}
        database.close()


def test_a_row_that_the_server_cannot_send_stops_the_capture(broker: EmbeddedBroker) -> None:
    with mariadb_server("max_allowed_packet=1M") as server:
        database = MysqlDatabase(server)
        database.run("CREATE TABLE users (id int PRIMARY KEY, a longblob)")
        database.run("INSERT INTO users VALUES (1, NULL), (2, REPEAT('a', 900000))")
        error = stopped(CaptureRunner(database.capture(), broker))
        assert 'a row of table "' in str(error)
        assert "is larger than the server can send" in str(error)
        assert error.hint == "increase max_allowed_packet"
        database.close()


def test_a_capture_resumes_behind_what_has_landed(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database, 10)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
    database.run("UPDATE users SET balance = 1")
    database.run("FLUSH BINARY LOGS")
    with CaptureRunner(database.capture(), broker) as runner:
        equals_select(runner, broker, database)
        database.run("FLUSH BINARY LOGS")
        database.run("UPDATE users SET balance = 2")
        equals_select(runner, broker, database)
    assert len(records(broker, database.topic())) == 30


def test_the_position_advances_while_the_tables_are_quiet(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database, 1)
    database.run("CREATE TABLE noise (id int PRIMARY KEY)")
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("INSERT INTO noise SELECT seq FROM seq_1_to_100")
        database.run("FLUSH BINARY LOGS")
        [(file, *_)] = database.run("SHOW MASTER STATUS")
        stored = f'"file":"{file}"'.encode()
        wait_for(lambda: stored in (broker.get_metadata(f"cdc/{database.name}") or b""), runner)


def test_columns_that_come_and_go_are_followed_and_recorded(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database, 1)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("ALTER TABLE users ADD COLUMN city varchar(20) AFTER id")
        database.run("INSERT INTO users VALUES (2, 'Paris', 'b', 0)")
        database.run("ALTER TABLE users DROP COLUMN name, MODIFY balance bigint unsigned")
        database.run("UPDATE users SET balance = 3000000000 WHERE id = 2")
        wait_for(lambda: len(records(broker, database.name)) == 3, runner)
        wait_for(lambda: runner.status().changes == 2, runner)
    found = rows(broker, database.topic())
    assert found[b'{"id":2}'] == {"id": 2, "balance": 3_000_000_000, "city": "Paris"}
    recorded = [event for event in events(broker, database.name) if event]
    assert [event["changes"] for event in recorded] == [
        [],
        ["column city varchar(20) added"],
        ["column balance changed from int to bigint unsigned", "column name dropped"],
    ]
    assert recorded[1]["ddl"] == "ALTER TABLE users ADD COLUMN city varchar(20) AFTER id"
    assert recorded[1]["databaseName"] == database.name


def test_a_log_that_was_purged_stops_at_once_and_names_the_repair(broker: EmbeddedBroker) -> None:
    with mariadb_server() as server:
        database = MysqlDatabase(server)
        captured_once(database, broker)
        database.run("FLUSH BINARY LOGS")
        [(file, *_)] = database.run("SHOW MASTER STATUS")
        server.stop()
        server.start()
        database.reconnect()
        database.run(f"PURGE BINARY LOGS TO '{file}'")
        error = stopped(CaptureRunner(database.capture(), broker))
        database.close()
    assert isinstance(error, ChangesLost) and "has removed the log file" in str(error)
    assert f"--reset {database.name}" in error.hint


def test_a_log_that_was_reset_stops_at_once_even_if_it_is_longer(broker: EmbeddedBroker) -> None:
    with mariadb_server() as server:
        database = MysqlDatabase(server)
        captured_once(database, broker)
        database.run("RESET MASTER")
        assert "was reset" in str(stopped(CaptureRunner(database.capture(), broker)))
        for number in range(100, 150):
            database.run("INSERT INTO users VALUES (%s, 'after the reset', 0)", [number])
        assert "was reset" in str(stopped(CaptureRunner(database.capture(), broker)))
        database.close()


def test_another_server_id_stops_at_once(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    captured_once(database, broker)
    database.run("SET GLOBAL server_id = 8")
    try:
        error = stopped(CaptureRunner(database.capture(), broker))
    finally:
        database.run("SET GLOBAL server_id = 7")
    assert isinstance(error, ChangesLost) and "8, not 7" in str(error)


def test_the_id_of_the_server_itself_is_refused(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database)
    assert "server_id of the server itself" in str(stopped(CaptureRunner(database.capture(server_id=7), broker)))


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["SET SESSION binlog_row_image = MINIMAL", "UPDATE users SET balance = 5"], "does not have whole rows"),
        (["SET SESSION binlog_format = STATEMENT", "UPDATE users SET balance = 5"], "changed by a statement"),
        (["RENAME TABLE users TO gone"], "gone without a trace"),
        (["DROP TABLE users"], "gone without a trace"),
        (["XA START 'x'", "UPDATE users SET balance = 5", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"], "XA"),
    ],
)
def test_what_the_log_does_not_say_stops_the_capture(
    database: MysqlDatabase, broker: EmbeddedBroker, statements: list[str], why: str
) -> None:
    users(database, 2)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        for statement in statements:
            database.run(statement)
        assert runner.wait(20)
    assert isinstance(runner.error, ChangesLost) and why in str(runner.error)
    assert all(row["balance"] == 0 for row in rows(broker, database.topic()).values())


def test_transactions_that_leave_no_doubt_are_followed(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database, 2)
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run("BEGIN")
        database.run("UPDATE users SET balance = 1")
        database.run("SAVEPOINT a")
        database.run("UPDATE users SET balance = 2")
        database.run("ROLLBACK TO a")
        database.run("COMMIT")
        database.run("BEGIN")
        database.run("UPDATE users SET balance = 3")
        database.run("ROLLBACK")
        for statement in ("XA START 'y'", "INSERT INTO users VALUES (9, 'xa', 9)", "XA END 'y'"):
            database.run(statement)
        database.run("XA COMMIT 'y' ONE PHASE")
        equals_select(runner, broker, database)


def test_partitions_are_captured_as_their_table(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    database.run("CREATE TABLE users (id int PRIMARY KEY, name text) PARTITION BY HASH (id) PARTITIONS 3")
    database.run("INSERT INTO users SELECT seq, 'before' FROM seq_1_to_20")
    with CaptureRunner(database.capture(chunk_rows=6), broker) as runner:
        snapshot_landed(runner)
        database.run("UPDATE users SET name = 'changed' WHERE id > 15")
        database.run("UPDATE users SET id = id + 100 WHERE id < 5")
        equals_select(runner, broker, database)


def test_what_a_server_lacks_is_said_with_the_statements(database: MysqlDatabase) -> None:
    users(database)
    database.run("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    try:
        with pytest.raises(NotReady, match="binlog_row_metadata is MINIMAL") as found:
            check_database(database.capture())
    finally:
        database.run("SET GLOBAL binlog_row_metadata = 'FULL'")
    assert "SET GLOBAL binlog_row_metadata = 'FULL';" in found.value.hint


@pytest.mark.parametrize(
    ("definition", "statement"),
    [("(name text)", "ADD PRIMARY KEY"), ("(id int PRIMARY KEY) ENGINE = MyISAM", "ENGINE = InnoDB")],
)
def test_a_table_that_cannot_be_captured_is_refused_with_the_statement(
    database: MysqlDatabase, definition: str, statement: str
) -> None:
    database.run(f"CREATE TABLE users {definition}")
    with pytest.raises(NotReady) as found:
        check_database(database.capture())
    assert statement in found.value.hint


def test_a_user_without_rights_is_notified_which(database: MysqlDatabase, broker: EmbeddedBroker) -> None:
    users(database)
    database.run(f"CREATE USER reader_{database.name}@'%'")
    database.run(f"GRANT SELECT ON {database.name}.* TO reader_{database.name}@'%'")
    url = database.url.replace("root@", f"reader_{database.name}@")
    error = stopped(CaptureRunner(Capture(url=url, tables=("users",)), broker))
    assert isinstance(error, NotReady)
    assert f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'reader_{database.name}'@'%'" in error.hint
