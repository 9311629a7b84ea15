"""Push queries that group or join: their topology writes what they show. It runs in the process of the test here."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.sql.syntax import ast
from potok.statements.push.failures import PushFailures
from potok.statements.push.plan import plan_transient
from potok.statements.push.push import RecordPush
from potok.statements.push.tail import tail_of
from potok.statements.records.inserts import insert_rows
from potok.statements.results import Row
from sql.syntax.one_statement import parse_statement
from statements.playing import Play

ORDERS: list[dict[str, Any]] = [
    {"id": "a", "user_id": "u0", "amount": 1, "ROWTIME": 0},
    {"id": "b", "user_id": "u1", "amount": 2, "ROWTIME": 1_000},
    {"id": "c", "user_id": "u0", "amount": 3, "ROWTIME": 7_000},
]


@pytest.fixture
def orders(play: Play) -> Play:
    play.do(
        "CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount INT) WITH (KAFKA_TOPIC = 'orders');"
        "CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC = 'users');"
        "CREATE TABLE cities (id VARCHAR PRIMARY KEY, city VARCHAR) WITH (KAFKA_TOPIC = 'cities');"
    )
    catalog = play.database.catalog
    assert insert_rows(play.database, catalog.source("USERS"), [{"id": "u0", "name": "Ann", "ROWTIME": 0}]) == {}
    assert insert_rows(play.database, catalog.source("CITIES"), [{"id": "u1", "city": "Rome", "ROWTIME": 0}]) == {}
    assert insert_rows(play.database, catalog.source("ORDERS"), ORDERS) == {}
    return play


def rendered(play: Play, text: str, tmp_path: Any, batch: int | None = 1) -> tuple[list[tuple[str, bool]], list[Row]]:
    """Columns and rows of a query over all that is there."""
    statement = parse_statement(text)
    assert isinstance(statement, ast.Query)
    plan = plan_transient(play.database.catalog, statement.query, "_potok_push_test")
    driver = InProcess(plan.topology, directory=tmp_path)
    driver.run(batch, more_to_come=True)
    failures = PushFailures(play.broker, "test", "_potok_push_test")
    push = RecordPush("test", plan.reading, tail_of(play.database).subscribe("_potok_push_test", {}), failures)
    found: list[Row] = []
    while rows := push.next(0):
        found += rows
    push.close()
    driver.leave()
    return [(column.name, column.is_key) for column in push.columns], found


def test_groups_are_shown_as_they_change(orders: Play, tmp_path: Any) -> None:
    text = "SELECT COUNT(*) AS n, user_id, SUM(amount) + 1 AS s FROM orders GROUP BY user_id EMIT CHANGES"
    columns, rows = rendered(orders, text, tmp_path)
    assert columns == [("N", False), ("USER_ID", True), ("S", False)]
    assert rows == [(1, "u0", 2), (1, "u1", 3), (2, "u0", 5)]


def test_the_key_need_not_be_asked_for(orders: Play, tmp_path: Any) -> None:
    text = "SELECT COUNT(*) AS n FROM orders GROUP BY user_id, id HAVING SUM(amount) > 1 EMIT CHANGES"
    assert rendered(orders, text, tmp_path) == ([("N", False)], [(1,), (1,)])


def test_the_key_may_be_all_that_is_asked_for(orders: Play, tmp_path: Any) -> None:
    text = "SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 1 EMIT CHANGES"
    assert rendered(orders, text, tmp_path) == ([("USER_ID", True)], [("u0",)])


def test_the_key_of_a_join_may_be_all_that_is_asked_for(orders: Play, tmp_path: Any) -> None:
    text = "SELECT o.user_id FROM orders o JOIN users u ON o.user_id = u.id EMIT CHANGES"
    assert rendered(orders, text, tmp_path, None) == ([("USER_ID", True)], [("u0",), ("u0",)])


def test_a_part_of_the_key_is_shown_alone(orders: Play, tmp_path: Any) -> None:
    text = "SELECT id, COUNT(*) AS n FROM orders GROUP BY user_id, id EMIT CHANGES"
    assert rendered(orders, text, tmp_path)[1] == [("a", 1), ("b", 1), ("c", 1)]


def test_windows_are_shown_with_their_bounds(orders: Play, tmp_path: Any) -> None:
    text = (
        "SELECT user_id, WINDOWSTART AS ws, WINDOWEND AS we, COUNT(*) AS n FROM orders"
        " WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY user_id EMIT CHANGES"
    )
    rows = rendered(orders, text, tmp_path)[1]
    assert rows == [("u0", 0, 5_000, 1), ("u1", 0, 5_000, 1), ("u0", 5_000, 10_000, 1)]


def test_a_join_shows_both_sides(orders: Play, tmp_path: Any) -> None:
    text = "SELECT o.id, u.name FROM orders o LEFT JOIN users u ON o.user_id = u.id EMIT CHANGES"
    columns, rows = rendered(orders, text, tmp_path, None)
    assert columns == [("O_ID", False), ("NAME", False)]
    assert sorted(rows) == [("a", "Ann"), ("b", None), ("c", "Ann")]


def test_a_star_shows_all_columns_of_a_join(orders: Play, tmp_path: Any) -> None:
    text = "SELECT * FROM orders o JOIN users u ON o.user_id = u.id EMIT CHANGES"
    columns, rows = rendered(orders, text, tmp_path, None)
    assert [name for name, _ in columns] == ["O_ID", "O_USER_ID", "O_AMOUNT", "U_ID", "U_NAME"]
    assert sorted(rows) == [("a", "u0", 1, "u0", "Ann"), ("c", "u0", 3, "u0", "Ann")]


def test_tables_are_joined_and_the_key_of_a_full_join_is_shown(orders: Play, tmp_path: Any) -> None:
    text = "SELECT * FROM users u FULL OUTER JOIN cities c ON u.id = c.id EMIT CHANGES"
    columns, rows = rendered(orders, text, tmp_path)
    assert columns[0] == ("ROWKEY", True)
    assert sorted(rows, key=str) == [("u0", "u0", "Ann", None, None), ("u1", None, None, "u1", "Rome")]
