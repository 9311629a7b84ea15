"""JDBC sinks, on a real PostgreSQL, through Spark's JVM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit
from potok.sinks.guarantee import Guarantee
from potok.sinks.jdbc.jdbc import JdbcTarget
from potok.sinks.jdbc.url_secrets import secrets_of
from potok.sinks.sink_spec import Batch, Types
from potok.sinks.spark_access import SparkNeeded
from potok.sinks.typed_rows import RowShape
from potok.spark.driver_spark import DriverSpark
from potok.spark.jdbc import DriverNotFound, SparkJdbcConnection
from tests.sinks.rows import opening, typed
from tests.sinks.table_contract import TableContract
from tests.sinks.tables import ANN, BOB, EVE, TYPES, JdbcTable


@pytest.fixture
def database(postgres_url: str, spark: Any) -> Iterator[JdbcTable]:
    found = JdbcTable(postgres_url)
    yield found
    found.close()


class TestJdbcTable(TableContract):
    @pytest.fixture
    def table(self, database: JdbcTable) -> JdbcTable:
        return database


def test_the_table_is_created_and_batches_are_appended(database: JdbcTable) -> None:
    database.put([ANN, BOB])
    database.put([EVE, ANN], Batch(1, 2))
    assert database.rows() == [("ann", 1), ("ann", 1), ("bob", 2), ("eve", 3)]
    assert database.run(f"SELECT batch FROM potok_jdbc_fences WHERE query_name = '{database.query}'") == [(2,)]


def test_a_batch_that_comes_again_is_recognised_with_its_rejected_rows(database: JdbcTable) -> None:
    database.run(f"CREATE TABLE {database.table} (name varchar(3) NOT NULL, amount integer CHECK (amount > 0))")
    records = [
        ANN,
        ("x", {"name": "long", "amount": 1}),
        ("y", {"name": None, "amount": 1}),
        ("z", {"name": "neg", "amount": -1}),
        ("b", {"name": "big", "amount": 1 << 40}),
        BOB,
    ]
    failures = database.put(records)
    assert sorted(failures) == [1, 2, 3, 4]
    assert "too long" in failures[1] and "not-null" in failures[2] and "check constraint" in failures[3]
    assert "out of range" in failures[4]
    assert database.put(records, Batch(2, 1)) == failures
    assert database.rows() == [("ann", 1), ("bob", 2)]


def test_the_last_row_of_a_key_that_fits_wins(database: JdbcTable) -> None:
    database.mode = "upsert"
    database.run(f"CREATE TABLE {database.table} (key text PRIMARY KEY, name text, amount integer, note text)")
    failures = database.put([ANN, ("a", {"name": "ann", "amount": 1 << 40})])
    assert list(failures) == [1]
    database.run(f"UPDATE {database.table} SET note = 'mine'")
    database.put([("a", {"name": "ann", "amount": 7})], Batch(1, 2))
    assert database.rows() == [("a", "ann", 7, "mine")]


def test_fields_of_the_value_may_be_the_key(database: JdbcTable) -> None:
    database.mode, database.options = "upsert", {"key": ("name",), "renamed": (("name", "Full Name"),)}
    database.put([ANN, BOB])
    database.put([("?", {"name": "ann", "amount": 9})], Batch(1, 2))
    assert database.rows() == [("ann", 9), ("bob", 2)]


def test_appended_rows_of_an_attempt_that_died_are_not_mixed_with_other_rows(database: JdbcTable) -> None:
    database.put([ANN])
    with pytest.raises(DeliveryFailed, match="that died has left other rows") as caught:
        database.put([BOB], Batch(2, 1))
    assert "delete the rows of that batch and the fence" in str(caught.value)
    assert database.rows() == [("ann", 1)]


def test_passwords_in_urls_of_other_forms_are_redacted() -> None:
    for url, secrets, shown in (
        ("jdbc:sqlserver://db:1433;user=app;password=hid@den-1;x=y", ["hid@den-1"], "sqlserver://db:1433"),
        ("jdbc:sqlserver://db;password={hid;den}}2};user=app", ["{hid;den}}2}", "hid;den}2"], "sqlserver://db"),
        ("jdbc:oracle:thin:app/hidden-3@//db:1521/shop", ["hidden-3"] * 2, "oracle://***"),
        ('jdbc:oracle:thin:app/"hid@den-4"@db:1521:shop', ['"hid@den-4"', "hid@den-4"], "oracle://***"),
        ("jdbc:postgresql://app:word@db/shop", [], "postgresql://db/shop"),
    ):
        assert secrets_of(url) == secrets
        target = JdbcTarget(url, "orders", RowShape("append"), "", "", (), None)
        assert target.label == f'table "orders" at {shown}'


def test_a_sink_that_is_ahead_names_the_repair(database: JdbcTable) -> None:
    for number in (1, 2, 3):
        database.put([ANN], Batch(1, number))
    with pytest.raises(SinkAhead, match="DELETE FROM potok_jdbc_fences WHERE query_name = ") as caught:
        database.open(epoch=2)
    database.run(str(caught.value.hint).partition("and then: ")[2])
    database.open(epoch=2)


def test_staged_rows_are_removed_at_the_end_or_by_the_next_start(database: JdbcTable) -> None:
    staged = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'potok_rows_%'"
    before = set(database.run(staged))
    died = database.open()
    database.put([ANN], Batch(1, 1), died)
    assert len(set(database.run(staged)) - before) == 1
    successor = database.open(epoch=2, committed=1)
    assert set(database.run(staged)) == before
    database.put([BOB], Batch(2, 2), successor)
    assert len(set(database.run(staged)) - before) == 1
    for sink_writer in (died, successor, successor):
        sink_writer.close()
    assert set(database.run(staged)) == before


def test_a_sink_ends_quietly_when_its_database_is_gone(database: JdbcTable) -> None:
    sink_writer = database.open()
    database.put([ANN], Batch(1, 1), sink_writer)
    database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%JDBC%'")
    sink_writer.close()


def test_a_fence_that_another_start_creates_at_the_same_time_is_taken_over(
    database: JdbcTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, seen = SparkJdbcConnection.rows, list[str]()

    def overtaken(connection: SparkJdbcConnection, query: str, *values: object) -> list[tuple[Any, ...]]:
        found = rows(connection, query, *values)
        if query.startswith("SELECT epoch FROM potok_jdbc_fences") and not seen:
            seen.append(query)
            key = f"'{database.query}', 'orders.sink'"
            database.run(f"INSERT INTO potok_jdbc_fences VALUES ({key}, 1, 0, '', '{{}}')")
        return found

    database.open()
    database.query += "-second"
    with monkeypatch.context() as patch:
        patch.setattr(SparkJdbcConnection, "rows", overtaken)
        sink_writer = database.open(epoch=2)
    assert seen
    database.put([ANN], Batch(2, 1), sink_writer)
    assert database.rows() == [("ann", 1)]


def test_every_type_is_stored(database: JdbcTable) -> None:
    declared = (
        "s string, b boolean, i int, l bigint, d double, n decimal(10, 2), day date, at timestamp, raw binary, "
        "list array<bigint>, o struct<x bigint>"
    )
    database.types = Types(typed("string"), typed(declared))
    at = dt.datetime(2026, 5, 4, 3, 2, 1, 5_000, dt.UTC)
    value = {
        "s": "x",
        "b": True,
        "i": 1,
        "l": 1 << 40,
        "d": 0.1,
        "n": Decimal("1.25"),
        "day": dt.date(2026, 5, 4),
        "at": at,
        "raw": b"\x00\xff",
        "list": [1],
        "o": {"x": 1},
    }
    database.put([("a", value), ("b", dict.fromkeys(value))])
    [row] = database.run(f"SELECT * FROM {database.table} WHERE s = 'x'")
    assert row[:7] == ("x", True, 1, 1 << 40, 0.1, Decimal("1.25"), dt.date(2026, 5, 4))
    assert (row[7].astimezone(dt.UTC), bytes(row[8]), *row[9:]) == (at, b"\x00\xff", "[1]", '{"x":1}')
    assert database.run(f"SELECT count(*) FROM {database.table} WHERE s IS NULL AND raw IS NULL") == [(1,)]


def test_a_table_that_does_not_fit_is_refused_when_the_sink_is_opened(database: JdbcTable) -> None:
    database.run(f"CREATE TABLE {database.table} (name text)")
    with pytest.raises(SinkMisfit, match="amount"):
        database.open()


def test_a_server_that_does_not_answer_is_named(database: JdbcTable) -> None:
    database.url = "jdbc:postgresql://127.0.0.1:9/shop?password=hidden-word"
    with pytest.raises(DeliveryFailed, match=r"Connection to 127\.0\.0\.1:9 refused") as caught:
        database.open()
    assert "hidden-word" not in str(caught.value)


def test_a_connection_that_is_lost_is_opened_again(database: JdbcTable) -> None:
    sink_writer = database.open()
    database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%JDBC%'")
    database.put([ANN], Batch(1, 1), sink_writer)
    assert database.rows() == [("ann", 1)]


def test_a_driver_that_is_not_there_is_named(database: JdbcTable) -> None:
    target = JdbcTarget(database.url, "orders", RowShape("append"), "org.example.Driver", "", (), 100)
    with pytest.raises(DriverNotFound, match=r"no JDBC driver org\.example\.Driver"):
        target.open(opening(TYPES, spark=DriverSpark()))


def test_impossible_addresses_are_refused_before_anything_runs() -> None:
    for url, table, cause in (
        ("postgresql://localhost/shop", "orders", "not a JDBC URL"),
        ("jdbc:something://localhost/shop", "orders", "no driver is known"),
        ("jdbc:postgresql://localhost/shop", "a..b", "is not a table"),
    ):
        target = JdbcTarget(url, table, RowShape("append"), "", "", (), None)
        with pytest.raises(TopologyError, match=cause):
            target.check(TYPES, Guarantee.EXACTLY_ONCE)
    good = JdbcTarget("jdbc:postgresql://localhost/shop", "orders", RowShape("append"), "", "", (), None)
    with pytest.raises(SparkNeeded, match="TestDriver"):
        good.open(opening(TYPES))
