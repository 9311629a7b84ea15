"""EXPLAIN: the steps of a query, or how a pull query would be answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from potok.sql.errors import Refused, UnknownName
from potok.statements.errors import UnknownQuery
from potok.statements.results import Rows
from sql.in_process_sql import InProcessSql

SCRIPT = """
CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE counts AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;
CREATE TABLE pairs WITH (KEY_FORMAT = 'JSON') AS
  SELECT user_id, amount, COUNT(*) AS n FROM orders GROUP BY user_id, amount;
CREATE TABLE hourly AS SELECT user_id, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user_id;
"""


@pytest.fixture(scope="module")
def driver() -> Iterator[InProcessSql]:
    with InProcessSql(SCRIPT) as driver:
        driver.send("orders", {"user_id": "u1", "amount": 2.0}, "o1", timestamp=1_000)
        driver.run()
        driver.send("orders", {"user_id": "u1", "amount": 2.0}, "o2", timestamp=1_000)
        yield driver


def explained(driver: InProcessSql, sql: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    result = driver.session.execute(f"EXPLAIN {sql};")[0].result
    assert isinstance(result, Rows)
    return result.as_dicts(), dict(result.details)


def test_a_query_is_explained_by_its_steps_and_where_it_is(driver: InProcessSql) -> None:
    steps, details = explained(driver, "CTAS_COUNTS_1")
    assert [(step["Kind"], step["Runs"]) for step in steps] == [
        ("stream_source", "native"),
        ("select_key", "native"),
        ("aggregate", "native"),
        ("to_stream", "native"),
        ("sink", "native"),
    ]
    assert details["Status"] == "RUNNING"
    assert details["Lag"] == "1 record"
    assert details["Offsets"].rows == (("orders", "0", 1, 2),)
    assert details["Execution plan"].startswith("topology CTAS_COUNTS_1")


def test_a_statement_is_explained_before_it_is_carried_out(driver: InProcessSql) -> None:
    steps, details = explained(driver, "CREATE STREAM s AS SELECT * FROM orders WHERE amount > 1")
    assert [step["Kind"] for step in steps] == ["stream_source", "filter", "map_values", "sink"]
    assert details["Writes topics"] == "S"
    assert "S" not in driver.database.catalog.sources


def test_a_push_query_has_steps_too(driver: InProcessSql) -> None:
    steps, details = explained(driver, "SELECT user_id FROM orders EMIT CHANGES")
    assert [step["Kind"] for step in steps] == ["stream_source", "map_values"]
    assert details["Type"] == "PUSH"


@pytest.mark.parametrize(
    ("sql", "kind", "detail"),
    [
        ("SELECT * FROM counts WHERE user_id = 'u1'", "key lookup", "USER_ID: 'u1'"),
        ("SELECT * FROM counts WHERE user_id IN ('a', 'b') AND n > 1", "key lookup", "USER_ID: 'a', 'b'"),
        ("SELECT * FROM counts WHERE user_id = 'a' OR user_id = 'b'", "key lookup", "USER_ID: 'a', 'b'"),
        ("SELECT * FROM counts WHERE user_id >= 'u' AND user_id < 'v'", "key range", "USER_ID: from 'u' to 'v'"),
        ("SELECT * FROM counts WHERE user_id LIKE 'u%'", "key range", "USER_ID: starting with 'u'"),
        ("SELECT * FROM counts WHERE n = 1", "table scan", "all rows of COUNTS"),
        ("SELECT * FROM counts", "table scan", "all rows of COUNTS"),
        ("SELECT * FROM pairs WHERE user_id = 'a' AND amount = 1.5", "key lookup", "USER_ID: 'a'; AMOUNT: 1.5"),
        ("SELECT * FROM pairs WHERE user_id = 'a'", "table scan", "all rows of PAIRS"),
        (
            "SELECT * FROM hourly WHERE user_id = 'a' AND WINDOWSTART >= 5",
            "key lookup",
            "USER_ID: 'a'; WINDOWSTART: from 5",
        ),
        ("SELECT * FROM orders", "topic scan", "the records of topic orders"),
    ],
)
def test_explain_shows_how_a_pull_query_is_answered(driver: InProcessSql, sql: str, kind: str, detail: str) -> None:
    first = explained(driver, sql)[0][0]
    assert (first["Kind"], first["Detail"]) == (kind, detail)


def test_explain_shows_all_parts_of_a_pull_query_in_order(driver: InProcessSql) -> None:
    steps, details = explained(
        driver,
        "SELECT c.n, COUNT(*) AS k FROM counts c JOIN counts d ON c.user_id = d.user_id"
        " WHERE c.n > 0 GROUP BY c.n HAVING COUNT(*) > 1 ORDER BY k LIMIT 3",
    )
    assert [step["Kind"] for step in steps] == [
        "table scan",
        "key lookup",
        "inner join",
        "filter",
        "aggregate",
        "filter",
        "sort",
        "limit",
    ]
    assert details["Type"] == "PULL"


def test_a_query_that_is_not_there_is_not_explained(driver: InProcessSql) -> None:
    with pytest.raises(UnknownQuery) as caught:
        explained(driver, "CTAS_COUNTS_7")
    assert caught.value.hint == "did you mean CTAS_COUNTS_1?"


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SHOW STREAMS", Refused),
        ("CREATE STREAM s (id INT KEY, v INT) WITH (KAFKA_TOPIC = 's')", Refused),
        ("SELECT * FROM nothing", UnknownName),
    ],
)
def test_what_has_no_query_is_not_explained(driver: InProcessSql, sql: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        explained(driver, sql)
