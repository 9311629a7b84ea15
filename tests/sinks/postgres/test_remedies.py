"""What the server rejects is an error of Potok that says what to type."""

from __future__ import annotations

import uuid

import pytest
from tests.sinks.postgres.test_postgres import COUNTS, Database, database
from tests.sinks.rows import deliver, rows_of

from potok.sinks.errors import DeliveryFailed, SinkMisfit
from potok.sinks.sink_spec import Batch

__all__ = ["database"]


def opened(database: Database, **options: object) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        database.open(database.target(timeout_ms=100, **options), COUNTS)
    return caught.value


def test_a_missing_right_names_the_grant_that_helps(database: Database) -> None:
    user = f"u_{uuid.uuid4().hex[:8]}"
    database.run(f"CREATE TABLE {database.table} (key text PRIMARY KEY, value bigint)")
    database.run(
        "CREATE TABLE IF NOT EXISTS potok_fences (query text, step text, epoch bigint, batch bigint, "
        "digest text, refused jsonb, PRIMARY KEY (query, step))"
    )
    database.run(f"CREATE ROLE {user} LOGIN")
    own, database.url = database.url, database.url.replace("tester@", f"{user}@")
    error = opened(database)
    assert "permission denied" in error.message
    grant = error.hint.partition("as the owner: ")[2].partition(";")[0]
    database.run(grant)
    sink_writer = database.open(database.target(), COUNTS)
    deliver(database.target(), sink_writer, rows_of([("a", 1)], COUNTS), COUNTS, Batch(1, 1))
    assert database.rows() == [("a", 1)]
    database.url = own


def test_a_missing_schema_names_the_statement_that_creates_it(database: Database) -> None:
    database.table = f"s_{uuid.uuid4().hex[:8]}.orders"
    error = opened(database)
    database.run(error.hint.partition("create it: ")[2].partition(";")[0])
    database.open(database.target(), COUNTS)
    assert database.rows() == []


def test_a_read_only_server_is_tried_again(database: Database) -> None:
    separator = "&" if "?" in database.url else "?"
    database.url += f"{separator}options=-c%20default_transaction_read_only%3Don"
    error = opened(database)
    assert "read-only" in error.message
    assert "primary" in error.hint


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tester@", "nobody_of_that_name@", "check user, password, database"),
        ("/postgres", "/no_such_database", "check user, password, database"),
        ("/postgres", "/postgres?bogus=1", "does not know this option"),
        ("/postgres", "/postgres?sslmode=bogus", "check user, password, database and options"),
    ],
)
def test_a_url_that_does_not_lead_to_a_database_is_named_as_the_cause(
    database: Database, old: str, new: str, said: str
) -> None:
    database.url = database.url.replace(old, new)
    assert said in opened(database).hint


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW {0} AS SELECT 'a' AS key, 1::bigint AS value GROUP BY 1",
        "CREATE TABLE {0} (key json, value bigint)",
        "CREATE TABLE {0} (key text PRIMARY KEY, value bigint GENERATED ALWAYS AS (1) STORED)",
        "CREATE SEQUENCE {0}",
    ],
)
def test_an_object_that_cannot_take_rows_is_refused_when_the_sink_opens(database: Database, made: str) -> None:
    database.run(made.format(database.table))
    with pytest.raises(SinkMisfit) as caught:
        database.open(database.target(), COUNTS)
    assert caught.value.hint


def test_a_table_that_is_dropped_while_the_query_runs_is_created_by_the_next_start(database: Database) -> None:
    target = database.target()
    sink_writer = database.open(target, COUNTS)
    database.run(f"DROP TABLE {database.table}")
    with pytest.raises(DeliveryFailed, match="does not exist") as caught:
        deliver(target, sink_writer, rows_of([("a", 1)], COUNTS), COUNTS, Batch(1, 1))
    assert "start the query again" in caught.value.hint
    again = database.open(target, COUNTS)
    deliver(target, again, rows_of([("a", 1)], COUNTS), COUNTS, Batch(1, 1))
    assert database.rows() == [("a", 1)]
