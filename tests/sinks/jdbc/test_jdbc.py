"""JDBC sinks, on a real PostgreSQL, through Spark's JVM."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.jdbc.jdbc import JdbcTarget
from potok.sinks.jdbc.url_secrets import secrets_of
from potok.sinks.sink_spec import Batch, Failures, SinkWriter, Types
from potok.sinks.spark_access import SparkNeeded
from potok.sinks.typed_rows import Mode, RowShape
from potok.spark.driver_spark import DriverSpark
from potok.spark.jdbc import DriverNotFound
from tests.sinks.rows import deliver, opening, rows_of, typed

TYPES = Types(typed("string"), typed("name string, amount bigint"))
ANN, BOB = ("a", {"name": "ann", "amount": 1}), ("b", {"name": "bob", "amount": 2})
EVE = ("e", {"name": "eve", "amount": 3})

Records = list[tuple[Any, Any]]


class Database:
    """A table that no other test uses, and a connection beside that of the sink."""

    def __init__(self, url: str) -> None:
        self.table, self.query = f"t_{uuid.uuid4().hex[:12]}", f"q-{uuid.uuid4().hex[:12]}"
        self.mode: Mode = "append"
        self.options: dict[str, Any] = {}
        self.types = TYPES
        self._connection = psycopg.connect(url, autocommit=True)
        info = self._connection.info
        self.url = f"jdbc:postgresql://{info.host}:{info.port}/{info.dbname}"
        self.properties = {"user": info.user}
        self._open: list[SinkWriter] = []

    def target(self) -> JdbcTarget:
        shape = RowShape(self.mode, **self.options)
        return JdbcTarget(self.url, self.table, shape, "", "", tuple(self.properties.items()), 3_000)

    def open(self, epoch: int = 1, committed: int = 0, guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> SinkWriter:
        target = self.target()
        target.check(self.types, guarantee)
        given = opening(self.types, guarantee, query=self.query, epoch=epoch, committed=committed, spark=DriverSpark())
        self._open.append(target.open(given))
        return self._open[-1]

    def put(self, records: Records, batch: Batch = Batch(1, 1), sink_writer: SinkWriter | None = None) -> Failures:
        chosen = sink_writer or self.open(batch.epoch, batch.number - 1)
        return deliver(self.target(), chosen, rows_of(records, self.types), self.types, batch)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement)  # type: ignore[call-overload]
        return list(cursor.fetchall()) if cursor.description else []

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.run(f"SELECT * FROM {self.table}"))

    def close(self) -> None:
        for sink_writer in self._open:
            sink_writer.close()
        self._connection.close()


@pytest.fixture
def database(postgres_url: str, spark: Any) -> Iterator[Database]:
    found = Database(postgres_url)
    yield found
    found.close()


def test_the_table_is_created_and_batches_are_appended(database: Database) -> None:
    database.put([ANN, BOB])
    database.put([EVE, ANN], Batch(1, 2))
    assert database.rows() == [("ann", 1), ("ann", 1), ("bob", 2), ("eve", 3)]
    assert database.run(f"SELECT batch FROM potok_jdbc_fences WHERE query_name = '{database.query}'") == [(2,)]


def test_a_batch_that_comes_again_is_recognised_with_its_rejected_rows(database: Database) -> None:
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


def test_rows_are_replaced_and_deleted_by_key(database: Database) -> None:
    database.mode = "upsert"
    database.put([ANN, BOB])
    database.put([("a", {"name": "ann", "amount": 5}), ("b", None), ("nobody", None), EVE, ("a", ANN[1])], Batch(1, 2))
    assert database.rows() == [("a", "ann", 1), ("e", "eve", 3)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.run(f"INSERT INTO {database.table} VALUES ('a')")


def test_the_last_row_of_a_key_that_fits_wins(database: Database) -> None:
    database.mode = "upsert"
    database.run(f"CREATE TABLE {database.table} (key text PRIMARY KEY, name text, amount integer, note text)")
    failures = database.put([ANN, ("a", {"name": "ann", "amount": 1 << 40})])
    assert list(failures) == [1]
    database.run(f"UPDATE {database.table} SET note = 'mine'")
    database.put([("a", {"name": "ann", "amount": 7})], Batch(1, 2))
    assert database.rows() == [("a", "ann", 7, "mine")]


def test_fields_of_the_value_may_be_the_key(database: Database) -> None:
    database.mode, database.options = "upsert", {"key": ("name",), "renamed": (("name", "Full Name"),)}
    database.put([ANN, BOB])
    database.put([("?", {"name": "ann", "amount": 9})], Batch(1, 2))
    assert database.rows() == [("ann", 9), ("bob", 2)]


def test_what_a_replaced_process_still_writes_is_rejected(database: Database) -> None:
    before, after = database.open(1), database.open(2)
    database.put([ANN], Batch(2, 1), after)
    with pytest.raises(SinkTaken, match="a later start of query"):
        database.put([BOB], Batch(1, 1), before)
    assert database.rows() == [("ann", 1)]


def test_an_older_start_that_is_slow_does_not_take_the_table_back(database: Database) -> None:
    current = database.open(2)
    with pytest.raises(SinkTaken, match="a later start of query"):
        database.open(1)
    database.put([ANN], Batch(2, 1), current)
    assert database.run(f"SELECT epoch FROM potok_jdbc_fences WHERE query_name = '{database.query}'") == [(2,)]


def test_appended_rows_of_an_attempt_that_died_are_not_mixed_with_other_rows(database: Database) -> None:
    database.put([ANN])
    with pytest.raises(DeliveryFailed, match="that died has left other rows") as caught:
        database.put([BOB], Batch(2, 1))
    assert "delete the rows of that batch and the fence" in str(caught.value)
    assert database.rows() == [("ann", 1)]


def test_upserted_rows_of_an_attempt_that_died_are_replaced(database: Database) -> None:
    database.mode = "upsert"
    database.put([ANN])
    database.put([("a", {"name": "ann", "amount": 2})], Batch(2, 1))
    assert database.rows() == [("a", "ann", 2)]


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


def test_a_sink_that_is_ahead_of_the_query_is_refused(database: Database) -> None:
    for number in (1, 2, 3):
        database.put([ANN], Batch(1, number))
    with pytest.raises(SinkAhead, match="DELETE FROM potok_jdbc_fences"):
        database.open(epoch=2)


def test_staged_rows_are_removed_by_the_next_start(database: Database) -> None:
    staged = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'potok_rows_%'"
    before = set(database.run(staged))
    database.put([ANN])
    assert len(set(database.run(staged)) - before) == 1
    database.open(epoch=2, committed=1)
    assert set(database.run(staged)) == before


def test_every_type_is_stored(database: Database) -> None:
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


def test_a_table_that_does_not_fit_is_refused_when_the_sink_is_opened(database: Database) -> None:
    database.run(f"CREATE TABLE {database.table} (name text)")
    with pytest.raises(SinkMisfit, match="amount"):
        database.open()


def test_a_server_that_does_not_answer_is_named(database: Database) -> None:
    database.url = "jdbc:postgresql://127.0.0.1:9/shop?password=hidden-word"
    with pytest.raises(DeliveryFailed, match=r"Connection to 127\.0\.0\.1:9 refused") as caught:
        database.open()
    assert "hidden-word" not in str(caught.value)


def test_a_connection_that_is_lost_is_opened_again(database: Database) -> None:
    sink_writer = database.open()
    database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%JDBC%'")
    database.put([ANN], Batch(1, 1), sink_writer)
    assert database.rows() == [("ann", 1)]


def test_a_driver_that_is_not_there_is_named(database: Database) -> None:
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
