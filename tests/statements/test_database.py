"""The catalog: what statements make of it, what they refuse, and that it survives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.sql.errors import SqlError
from potok.sql.syntax.parse import parse_script
from potok.statements.database import Database
from potok.statements.results import Done

ORDERS = """CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
    WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 3);"""
COUNTS = "CREATE TABLE counts AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;"


def opened(directory: Path) -> Database:
    return Database(EmbeddedBroker.shared(directory), Settings(broker=f"file:{directory}"), runs=False)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(tmp_path) as found:
        yield found


def apply(database: Database, text: str) -> list[Done]:
    return [database.apply(parsed, {}) for parsed in parse_script(text)]


def ids(database: Database) -> list[str]:
    return [query.query_id for query in database.queries()]


def test_a_source_makes_its_topic_and_a_query_inherits_its_partitions(database: Database) -> None:
    created, counted = apply(database, ORDERS + COUNTS)
    assert (created.message, created.command_id) == ("Stream created", "stream/ORDERS/create")
    assert (counted.message, counted.query_id) == ("Created query with ID CTAS_COUNTS_1", "CTAS_COUNTS_1")
    assert database.broker.partitions("orders") == 3
    assert database.catalog.source("COUNTS").partitions == 3
    [query] = database.queries()
    assert (query.state, query.reads, query.writes) == ("STOPPED", ("orders",), ("COUNTS",))


def test_another_process_finds_the_same_catalog_and_hears_of_changes(database: Database, tmp_path: Path) -> None:
    apply(database, ORDERS + COUNTS)
    with opened(tmp_path) as other:
        assert other.catalog == database.catalog
        apply(other, "CREATE TYPE money AS DECIMAL(10, 2);")
        assert "MONEY" not in database.catalog.types
        before = database.generation
        database.refresh()
        assert database.catalog == other.catalog
        assert database.generation > before


def test_a_statement_that_fails_leaves_nothing(database: Database, tmp_path: Path) -> None:
    apply(database, ORDERS)
    with pytest.raises(SqlError, match="there is no column AMOUNTS"):
        apply(database, "CREATE TABLE t AS SELECT user_id, SUM(amounts) AS s FROM orders GROUP BY user_id;")
    with opened(tmp_path) as other:
        assert list(other.catalog.sources) == ["ORDERS"]
        assert ids(other) == []


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (ORDERS, "there is a stream ORDERS already"),
        ("DROP TABLE orders;", "ORDERS is a stream"),
        ("DROP STREAM orders;", "queries use ORDERS: CTAS_COUNTS_1"),
        ("DROP STREAM nothing;", "there is no stream or table NOTHING"),
        ("TERMINATE ctas_count_1;", "there is no query CTAS_COUNT_1"),
        ("ALTER STREAM orders ADD COLUMN amount DOUBLE;", "there is a column AMOUNT already"),
        ("ALTER TABLE counts ADD COLUMN m INT;", "COUNTS gets its columns from its query"),
        ("DROP TYPE money;", "there is no type MONEY"),
        ("CREATE OR REPLACE STREAM counts AS SELECT id, amount FROM orders;", "COUNTS is a table"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(database: Database, text: str, refusal: str) -> None:
    apply(database, ORDERS + COUNTS)
    with pytest.raises(SqlError, match=refusal) as caught:
        apply(database, text)
    assert caught.value.hint
    assert caught.value.location is not None


def test_if_exists_and_if_not_exists_say_so_and_change_nothing(database: Database) -> None:
    apply(database, ORDERS)
    once, gone = apply(
        database, ORDERS.replace("STREAM orders", "STREAM IF NOT EXISTS orders") + "DROP TABLE IF EXISTS nothing;"
    )
    assert (once.message, once.sequence) == ("Stream ORDERS already exists", -1)
    assert (gone.message, gone.sequence) == ("Table NOTHING does not exist", -1)


def test_a_dropped_table_takes_its_query_along_and_its_topic_if_asked(database: Database) -> None:
    apply(database, ORDERS + COUNTS)
    database.broker.create_topic("COUNTS")
    apply(database, "DROP TABLE counts DELETE TOPIC; DROP STREAM orders;")
    assert (ids(database), list(database.catalog.sources)) == ([], [])
    assert database.broker.topics() == ["orders"]


def test_a_replaced_query_keeps_its_id_and_a_terminated_one_leaves_its_table(database: Database) -> None:
    apply(database, ORDERS + COUNTS)
    [replaced] = apply(
        database, COUNTS.replace("CREATE", "CREATE OR REPLACE").replace(" GROUP", " WHERE user_id <> 'x' GROUP")
    )
    assert replaced.query_id == "CTAS_COUNTS_1"
    assert ids(database) == ["CTAS_COUNTS_1"]
    apply(database, "PAUSE CTAS_COUNTS_1;")
    assert [query.state for query in database.queries()] == ["PAUSED"]
    apply(database, "RESUME ALL; TERMINATE CTAS_COUNTS_1;")
    assert ids(database) == []
    assert "COUNTS" in database.catalog.sources


def test_a_column_can_be_added_and_is_known_to_later_queries(database: Database) -> None:
    apply(database, ORDERS + "ALTER STREAM orders ADD COLUMN region VARCHAR, ADD COLUMN n INT;")
    apply(database, "CREATE STREAM regions AS SELECT id, region FROM orders WHERE n > 1;")
    assert [column.name for column in database.catalog.source("REGIONS").columns] == ["ID", "REGION"]


def test_queries_that_form_a_cycle_are_allowed_and_reported(database: Database) -> None:
    made = "(id VARCHAR KEY, n INT) WITH (VALUE_FORMAT = 'JSON', PARTITIONS = 1, KAFKA_TOPIC ="
    apply(database, f"CREATE STREAM a {made} 'a'); CREATE STREAM b {made} 'b'); CREATE STREAM c {made} 'c');")
    first, second, third, aside = apply(
        database,
        "INSERT INTO b SELECT * FROM a; INSERT INTO c SELECT * FROM b WHERE n > 1;"
        "INSERT INTO a SELECT id, n - 1 AS n FROM c; CREATE STREAM d AS SELECT * FROM c;",
    )
    assert (first.warnings, second.warnings, aside.warnings) == ((), (), ())
    [warning] = third.warnings
    assert warning.startswith("query INSERTQUERY_5 creates a cycle, a -> b -> c -> a: records loop forever")
