from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.sinks.rows import deliver, opening, rows_of, typed

from potok.errors import TopologyError
from potok.sinks import errors
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.postgres.postgres import PostgresTarget
from potok.sinks.sink_spec import Batch, Failures, SinkWriter, Types

TYPES = Types(typed("string"), typed("name string, amount bigint"))
COUNTS = Types(typed("string"), typed("bigint"))


class Database:
    """A connection besides that of the sink, and names that no other test uses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.table = f"t_{uuid.uuid4().hex[:12]}"
        self.query = f"q-{uuid.uuid4().hex[:12]}"
        self._connection = psycopg.connect(url, autocommit=True)
        self._sink_writers: list[SinkWriter] = []

    def run(self, text: Any, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def rows(self, order: str = "1") -> list[tuple[Any, ...]]:
        query = sql.SQL("SELECT * FROM {} ORDER BY ").format(sql.Identifier(*self.table.split(".")))
        return self.run(query + sql.SQL(order))  # type: ignore[arg-type]

    def target(self, **options: Any) -> PostgresTarget:
        renamed = tuple(options.get("columns", {}).items())
        return PostgresTarget(self.url, self.table, options.get("key", ()), renamed, options.get("timeout_ms", 5_000))

    def open(self, target: PostgresTarget, types: Types, **options: Any) -> SinkWriter:
        sink_writer = target.open(opening(types, query=self.query, **options))
        self._sink_writers.append(sink_writer)
        return sink_writer

    def close(self) -> None:
        for sink_writer in self._sink_writers:
            sink_writer.close()
        self._connection.close()


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    found = Database(postgres_url)
    yield found
    found.close()


def put(
    database: Database, records: list[tuple[Any, Any]], types: Types = TYPES, batch: Batch = Batch(1, 1), **options: Any
) -> Failures:
    """One batch by an outlet of its own."""
    target = database.target(**options)
    sink_writer = database.open(target, types, epoch=batch.epoch, committed=batch.number - 1)
    return deliver(target, sink_writer, rows_of(records, types), types, batch)


def test_the_table_is_made_of_the_type_and_rows_are_replaced_and_deleted_by_key(database: Database) -> None:
    put(database, [("a", {"name": "ann", "amount": 1}), ("b", {"name": "bob", "amount": None})])
    assert database.rows() == [("a", "ann", 1), ("b", "bob", None)]
    put(database, [("b", None), ("a", {"name": "ann", "amount": 2}), ("nobody", None)], batch=Batch(1, 2))
    assert database.rows() == [("a", "ann", 2)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.run(f"INSERT INTO {database.table} VALUES ('a')")


def test_of_the_records_of_a_key_in_one_batch_the_last_one_counts(database: Database) -> None:
    put(database, [("a", 1), ("a", 2), ("b", 1), ("b", None), ("c", None), ("c", 3)], COUNTS)
    assert database.rows() == [("a", 2), ("c", 3)]


def test_every_type_comes_back_as_it_was(database: Database) -> None:
    declared = (
        "s string, b boolean, i int, f float, d double, raw binary, day date, at timestamp, local timestamp_ntz, "
        "price decimal(10,2), tags array<string>, home struct<city: string>, more map<string, int>"
    )
    types = Types(typed("bigint"), typed(declared))
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.UTC)
    value = {
        "s": 'quoted "text", with comma\nand a line \\ \\N',
        "b": True,
        "i": -5,
        "f": 0.5,
        "d": 1e300,
        "raw": b"\x00\xff",
        "day": dt.date(2026, 1, 2),
        "at": at,
        "local": at.replace(tzinfo=None),
        "price": Decimal("12.30"),
        "tags": ["x", "y"],
        "home": {"city": "Riga"},
        "more": [("a", 1)],
    }
    empty = dict.fromkeys(value)
    assert put(database, [(1, value), (2, empty), (3, {**empty, "s": "", "tags": []})], types) == {}
    found = database.rows()
    assert found[0] == (1, *(value | {"more": {"a": 1}}).values())
    assert found[1] == (2, *empty.values())
    assert found[2][1] == "" and found[2][11] == []


def test_dynamic_values_are_json_and_dynamic_keys_text(database: Database) -> None:
    records = [("text", {"n": [1, None]}), (5, "x"), ({"a": 1}, 2), (None, 3)]
    refused = put(database, records, Types(None, None))
    assert list(refused) == [3]
    assert database.rows() == [("5", "x"), ("text", {"n": [1, None]}), ('{"a":1}', 2)]


def test_the_key_may_be_fields_of_the_value(database: Database) -> None:
    records = [(None, {"name": "ann", "amount": 1}), ("x", {"name": "ann", "amount": 2}), ("x", None)]
    records.append(("y", {"name": None, "amount": 3}))
    refused = put(database, records, key=("name",))
    assert database.rows() == [("ann", 2)]
    assert "select_key" in refused[2]
    assert refused[3] == 'the key column "name" is null'


def test_the_key_of_a_windowed_table_is_three_columns_and_columns_can_be_renamed(database: Database) -> None:
    types = Types(typed("key string, start bigint, end bigint"), typed("bigint"))
    key = {"key": "ann", "start": 0, "end": 60_000}
    put(database, [(key, 3)], types, columns={"key": "user", "end": "until", "value": "orders"})
    assert database.rows() == [("ann", 0, 60_000, 3)]
    names = database.run("SELECT column_name FROM information_schema.columns WHERE table_name = %s", database.table)
    assert {name for (name,) in names} == {"user", "start", "until", "orders"}


def test_a_table_name_may_have_a_schema(database: Database) -> None:
    schema = f"s_{uuid.uuid4().hex[:8]}"
    database.run(f"CREATE SCHEMA {schema}")
    database.table = f"{schema}.Orders"
    put(database, [("a", 1)], COUNTS)
    assert database.rows() == [("a", 1)]


def test_a_table_of_columns_that_are_all_key_is_fine(database: Database) -> None:
    types = Types(typed("string"), typed("name string"))
    put(database, [("a", {"name": "x"}), ("a", {"name": "x"})], types, key=("name",))
    assert database.rows() == [("x",)]


def test_a_batch_that_comes_again_is_known_and_nothing_is_written_twice(database: Database) -> None:
    put(database, [("a", 1)], COUNTS)
    database.run(f"UPDATE {database.table} SET value = 100")
    put(database, [("a", 1)], COUNTS, Batch(2, 1))
    assert database.rows() == [("a", 100)], "the second attempt did nothing"
    put(database, [("a", 2)], COUNTS, Batch(3, 1))
    assert database.rows() == [("a", 2)], "a batch with other records under its number counts"


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_without_exactly_once_there_is_no_fence(database: Database, guarantee: Guarantee) -> None:
    target = database.target()
    sink_writer = database.open(target, COUNTS, guarantee=guarantee)
    for value in (1, 2):
        deliver(target, sink_writer, rows_of([("a", value)], COUNTS), COUNTS, Batch(1, 1))
    assert database.rows() == [("a", 2)]
    if database.run("SELECT to_regclass('potok_fences')") != [(None,)]:
        assert database.run("SELECT * FROM potok_fences WHERE query = %s", database.query) == []


def test_records_that_the_server_refuses_are_found_and_the_others_are_written(database: Database) -> None:
    database.run(f"CREATE TABLE {database.table} (key text PRIMARY KEY, value smallint CHECK (value <> 13))")
    records: list[tuple[Any, Any]] = [(f"k{n:03}", n) for n in range(100)]
    records[70] = ("zero\x00byte", 1)
    records[40] = ("large", 1_000_000)
    refused = put(database, records, COUNTS)
    assert list(refused) == [13, 40, 70]
    assert "violates check constraint" in refused[13]
    assert "out of range" in refused[40]
    assert len(database.rows()) == 97
    assert put(database, records, COUNTS, Batch(2, 1)) == refused, "they are reported again when the batch is repeated"


def test_a_batch_of_which_nearly_all_is_refused_stops_the_query(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "MOST_REFUSED", 5)
    database.run(f"CREATE TABLE {database.table} (key text PRIMARY KEY, value bigint CHECK (value < 0))")
    with pytest.raises(DeliveryFailed, match="rejected more than 5 records"):
        put(database, [(f"k{n}", n) for n in range(50)], COUNTS)
    assert database.rows() == []


def test_an_earlier_start_of_the_query_is_kept_out(database: Database) -> None:
    target = database.target()
    zombie = database.open(target, COUNTS, epoch=1)
    database.open(target, COUNTS, epoch=2)
    with pytest.raises(SinkTaken, match="a later start"):
        deliver(target, zombie, rows_of([("a", 1)], COUNTS), COUNTS, Batch(1, 1))
    assert database.rows() == []


def test_an_older_start_that_is_slow_does_not_take_the_table_back(database: Database) -> None:
    target = database.target()
    current = database.open(target, COUNTS, epoch=2)
    with pytest.raises(SinkTaken, match="a later start"):
        database.open(target, COUNTS, epoch=1)
    deliver(target, current, rows_of([("a", 1)], COUNTS), COUNTS, Batch(2, 1))
    assert database.run("SELECT epoch FROM potok_fences WHERE query = %s", database.query) == [(2,)]


def test_a_query_that_was_started_over_is_not_skipped_in_silence(database: Database) -> None:
    put(database, [("a", 1)], COUNTS, Batch(3, 9))
    with pytest.raises(SinkAhead, match="has seen batch 9, but the query has committed 0") as caught:
        database.open(database.target(), COUNTS)
    assert "DELETE FROM potok_fences" in caught.value.hint


def test_a_table_that_lacks_a_column_or_a_key_says_what_to_type(database: Database) -> None:
    database.run(f"CREATE TABLE {database.table} (key text, name text)")
    with pytest.raises(SinkMisfit) as caught:
        database.open(database.target(), TYPES)
    assert f'ALTER TABLE "{database.table}" ADD COLUMN "amount" bigint' in caught.value.hint
    database.run(f"ALTER TABLE {database.table} ADD COLUMN amount bigint")
    with pytest.raises(SinkMisfit) as caught:
        database.open(database.target(), TYPES)
    assert f'CREATE UNIQUE INDEX ON "{database.table}" ("key")' in caught.value.hint
    database.run(f"CREATE UNIQUE INDEX ON {database.table} (key)")
    put(database, [("a", {"name": "ann", "amount": 1})])
    assert database.rows() == [("a", "ann", 1)]


def test_a_user_who_may_only_write_can_use_tables_that_are_there(database: Database) -> None:
    put(database, [("a", 1)], COUNTS)
    user = f"u_{uuid.uuid4().hex[:8]}"
    database.run(f"CREATE ROLE {user} LOGIN")
    database.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database.table}, potok_fences TO {user}")
    database.url = database.url.replace("tester@", f"{user}@")
    put(database, [("a", 2)], COUNTS, Batch(2, 2))
    assert database.rows() == [("a", 2)]


def test_a_connection_that_was_lost_is_opened_again(database: Database) -> None:
    target = database.target()
    sink_writer = database.open(target, COUNTS)
    ended = database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", f"potok {database.query}"
    )
    assert ended == [(True,)]
    deliver(target, sink_writer, rows_of([("a", 1)], COUNTS), COUNTS, Batch(1, 1))
    assert database.rows() == [("a", 1)]


def test_a_server_that_is_not_there_stops_the_query_with_its_name(database: Database) -> None:
    target = PostgresTarget("postgresql://potok:secret@127.0.0.1:9/shop", "orders", (), (), 60)
    with pytest.raises(DeliveryFailed) as caught:
        target.open(opening(COUNTS))
    assert 'table "orders" at postgresql://127.0.0.1:9/shop' in caught.value.message
    assert "secret" not in str(caught.value) + repr(target)


@pytest.mark.parametrize(
    ("url", "table", "key", "columns", "types", "hint"),
    [
        ("mysql://x", "t", (), {}, TYPES, "postgresql://"),
        ("postgresql://x", "a.b.c", (), {}, TYPES, "shop.orders"),
        ("postgresql://x", "t", ("nam",), {}, TYPES, '"name"'),
        ("postgresql://x", "t", ("n",), {}, COUNTS, "leave key= out"),
        ("postgresql://x", "t", (), {"nam": "n"}, TYPES, '"name"'),
        ("postgresql://x", "t", (), {"key": "amount"}, TYPES, "columns="),
    ],
)
def test_what_can_never_be_written_is_refused_before_anything_runs(
    url: str, table: str, key: tuple[str, ...], columns: dict[str, str], types: Types, hint: str
) -> None:
    with pytest.raises(TopologyError) as caught:
        PostgresTarget(url, table, key, tuple(columns.items()), 0).check(types, Guarantee.EXACTLY_ONCE)
    assert hint in caught.value.hint


def test_a_key_that_takes_the_name_of_a_field_is_that_column(database: Database) -> None:
    put(database, [("ann", {"name": "other", "amount": 1})], columns={"key": "name"})
    assert database.rows() == [("ann", 1)]
