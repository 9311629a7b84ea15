"""Pull queries on tables and streams."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from potok.sql.errors import Refused, SqlError, SqlTypeError, UnknownName
from potok.statements.records.inserts import insert_rows
from potok.statements.results import Rows
from statements.playing import Play

ORDERS = """
CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE, qty INT, price DECIMAL(6, 2), tags ARRAY<VARCHAR>)
  WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 2);
CREATE TABLE totals AS SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user_id;
CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR, city VARCHAR) WITH (KAFKA_TOPIC = 'users');
CREATE SOURCE TABLE people (id VARCHAR PRIMARY KEY, name VARCHAR, city VARCHAR) WITH (KAFKA_TOPIC = 'users');
"""


@pytest.fixture
def orders(play: Play) -> Play:
    play.do(ORDERS)
    catalog = play.database.catalog
    rows = [
        {
            "ROWTIME": 1_000 * number,
            "id": f"o{number:02d}",
            "user_id": f"u{number % 4}",
            "amount": number + 0.5,
            "qty": number,
            "price": f"{number}.25",
            "tags": ["a", f"b{number}"],
        }
        for number in range(12)
    ]
    assert insert_rows(play.database, catalog.source("ORDERS"), rows) == {}
    users = [("u0", "Ann", "Oslo"), ("u1", "Bob", "Rome"), ("u7", "Eve", "Oslo")]
    people = [{"id": user, "name": name, "city": city} for user, name, city in users]
    assert insert_rows(play.database, catalog.source("USERS"), people) == {}
    play.run()
    return play


def test_only_tables_have_key_columns_and_windows_are_among_them(orders: Play) -> None:
    window = "WINDOW TUMBLING (SIZE 5 SECONDS)"
    orders.do(f"CREATE TABLE windowed AS SELECT user_id, COUNT(*) AS n FROM orders {window} GROUP BY user_id;")

    def keys(text: str) -> list[str]:
        result = orders.do(text)
        assert isinstance(result, Rows)
        return [column.name for column in result.columns if column.is_key]

    assert keys("SELECT * FROM windowed;") == ["USER_ID", "WINDOWSTART", "WINDOWEND"]
    assert keys("SELECT n, WINDOWEND FROM windowed;") == ["WINDOWEND"]
    assert keys("SELECT * FROM orders;") == []


def test_a_row_is_found_by_its_key(orders: Play) -> None:
    result = orders.do("SELECT * FROM totals WHERE user_id = 'u1';")
    assert isinstance(result, Rows)
    assert [(column.name, column.is_key) for column in result.columns] == [
        ("USER_ID", True),
        ("N", False),
        ("TOTAL", False),
    ]
    assert result.rows == (("u1", 3, 16.5),)


@pytest.mark.parametrize(
    ("where", "users"),
    [
        ("user_id = 'u9'", []),
        ("user_id = CAST(NULL AS VARCHAR)", []),
        ("'u2' = user_id", ["u2"]),
        ("user_id IN ('u3', 'u1', 'u9')", ["u3", "u1"]),
        ("user_id = 'u0' OR user_id = 'u3'", ["u0", "u3"]),
        ("user_id = 'u0' OR total > 20", ["u0", "u3"]),
        ("user_id IN ('u0', 'u1') AND total > 16", ["u1"]),
        ("user_id > 'u1'", ["u2", "u3"]),
        ("user_id >= 'u1' AND user_id < 'u3'", ["u1", "u2"]),
        ("user_id BETWEEN 'u1' AND 'u2'", ["u1", "u2"]),
        ("user_id <= 'u1'", ["u0", "u1"]),
        ("user_id LIKE 'u%'", ["u0", "u1", "u2", "u3"]),
        ("user_id LIKE 'u2'", ["u2"]),
        ("user_id LIKE '_3'", ["u3"]),
        ("NOT user_id = 'u1'", ["u0", "u2", "u3"]),
        ("LCASE(user_id) = 'u1'", ["u1"]),
        ("n = 3 AND total < 14", ["u0"]),
    ],
)
def test_any_condition_finds_its_rows(orders: Play, where: str, users: list[str]) -> None:
    assert [row[0] for row in orders.rows(f"SELECT user_id FROM totals WHERE {where};")] == users


def test_expressions_are_computed_and_rows_limited_and_ordered(orders: Play) -> None:
    rows = orders.rows("SELECT UCASE(user_id) AS who, total / n FROM totals ORDER BY total DESC LIMIT 2;")
    assert rows == [("U3", 22.5 / 3), ("U2", 19.5 / 3)]
    assert orders.rows("SELECT user_id FROM totals LIMIT 2;") == [("u0",), ("u1",)]
    assert orders.rows("SELECT user_id FROM totals LIMIT 0;") == []


def test_null_is_sorted_as_the_order_declares(orders: Play) -> None:
    text = "SELECT t.user_id, p.city FROM totals t LEFT JOIN people p ON t.user_id = p.id ORDER BY p.city"
    assert [row[1] for row in orders.rows(f"{text};")] == ["Oslo", "Rome", None, None]
    assert [row[1] for row in orders.rows(f"{text} NULLS FIRST, 1 DESC;")] == [None, None, "Oslo", "Rome"]
    assert [row[0] for row in orders.rows(f"{text} DESC NULLS LAST, 1 DESC;")] == ["u1", "u0", "u3", "u2"]


def test_rowtime_of_a_row_is_that_of_its_last_record(orders: Play) -> None:
    assert orders.rows("SELECT user_id, ROWTIME FROM totals WHERE user_id = 'u1';") == [("u1", 9_000)]
    hint = "is not available for the rows of a table"
    with pytest.raises(SqlError, match=hint):
        orders.rows("SELECT totals.ROWOFFSET FROM totals;")


def test_tables_are_joined(orders: Play) -> None:
    rows = orders.rows("SELECT * FROM totals t JOIN people p ON t.user_id = p.id WHERE p.city = 'Oslo';")
    assert rows == [("u0", 3, 13.5, "u0", "Ann", "Oslo")]
    text = "SELECT t.user_id, p.id FROM totals t {} JOIN people p ON t.user_id = p.id;"
    inner = [("u0", "u0"), ("u1", "u1")]
    assert orders.rows(text.format("INNER")) == inner
    assert orders.rows(text.format("LEFT")) == [*inner, ("u2", None), ("u3", None)]
    assert orders.rows(text.format("RIGHT")) == [*inner, (None, "u7")]
    assert orders.rows(text.format("FULL OUTER")) == [*inner, ("u2", None), ("u3", None), (None, "u7")]


def test_several_sources_are_joined_by_several_columns(orders: Play) -> None:
    rows = orders.rows(
        "SELECT o.id, p.name, t.n FROM orders o JOIN people p ON o.user_id = p.id"
        " JOIN totals t ON t.user_id = p.id AND o.user_id = t.user_id WHERE o.qty > 7 ORDER BY o.id;"
    )
    assert rows == [("o08", "Ann", 3), ("o09", "Bob", 3)]


def test_rows_are_grouped_with_every_aggregate(orders: Play) -> None:
    rows = orders.rows(
        "SELECT user_id, COUNT(*), SUM(qty), AVG(amount), MAX(price), COLLECT_LIST(id), LATEST_BY_OFFSET(qty)"
        " FROM orders GROUP BY user_id HAVING SUM(qty) > 15 ORDER BY SUM(qty) DESC;"
    )
    assert rows[0] == ("u3", 3, 21, 7.5, Decimal("11.25"), ["o03", "o07", "o11"], 11)
    assert [row[0] for row in rows] == ["u3", "u2"]


def test_everything_is_one_group_without_group_by(orders: Play) -> None:
    assert orders.rows("SELECT COUNT(*) AS n, SUM(n) AS orders FROM totals;") == [(4, 12)]
    assert orders.rows("SELECT COUNT(*) AS n, MAX(total) FROM totals WHERE n > 100;") == [(0, None)]
    assert orders.rows("SELECT city, COUNT(*) AS n FROM people WHERE id = 'nobody' GROUP BY city;") == []


def test_a_stream_returns_the_records_that_are_there(orders: Play) -> None:
    rows = orders.rows("SELECT id, ROWTIME, ROWOFFSET >= 0 AS placed FROM orders WHERE qty < 2 ORDER BY id;")
    assert rows == [("o00", 0, True), ("o01", 1_000, True)]
    assert len(orders.rows("SELECT * FROM orders LIMIT 5;")) == 5
    exploded = orders.rows("SELECT id, EXPLODE(tags) AS tag FROM orders WHERE qty = 3;")
    assert exploded == [("o03", "a"), ("o03", "b3")]


def test_lists_of_ordered_and_of_joined_rows_become_rows(orders: Play) -> None:
    text = "SELECT id, EXPLODE(tags) AS tag FROM orders WHERE qty < 2 ORDER BY tag DESC, id LIMIT 3;"
    assert orders.rows(text) == [("o01", "b1"), ("o00", "b0"), ("o00", "a")]
    text = "SELECT name, EXPLODE(tags) AS tag FROM orders o JOIN people p ON o.user_id = p.id WHERE qty < 2;"
    assert sorted(orders.rows(text)) == [("Ann", "a"), ("Ann", "b0"), ("Bob", "a"), ("Bob", "b1")]


def test_a_record_that_cannot_be_read_is_left_out_with_a_warning(orders: Play) -> None:
    from potok.records.log_record import LogRecord

    orders.broker.append("orders", [LogRecord(b"o99", b"{no json")])
    result = orders.do("SELECT id FROM orders WHERE qty = 3;")
    assert isinstance(result, Rows)
    assert result.rows == (("o03",),)
    assert result.warnings == ("1 records of orders could not be decoded and are left out",)


def test_windows_are_found_by_key_and_bounds(orders: Play) -> None:
    orders.do(
        "CREATE TABLE windowed AS SELECT user_id, COUNT(*) AS n FROM orders"
        " WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY user_id;"
    )
    orders.run()
    every = orders.rows("SELECT * FROM windowed WHERE user_id = 'u1' ORDER BY WINDOWSTART;")
    assert every == [("u1", 0, 5_000, 1), ("u1", 5_000, 10_000, 2)]
    for where in (
        "WINDOWSTART = 5000",
        "WINDOWEND = 10000",
        "WINDOWSTART > 0",
        "WINDOWSTART BETWEEN 1 AND 9999",
        "WINDOWSTART >= 5000 AND WINDOWEND <= 10000",
    ):
        assert orders.rows(f"SELECT * FROM windowed WHERE user_id = 'u1' AND {where};") == every[1:]
    for where in ("WINDOWSTART >= -9223372036854775807", "WINDOWEND <= 9223372036854775807"):
        assert orders.rows(f"SELECT * FROM windowed WHERE user_id = 'u1' AND {where};") == every
    assert orders.rows("SELECT * FROM windowed WHERE user_id = 'u1' AND WINDOWEND <= -9223372036854775807;") == []
    counts = orders.rows("SELECT WINDOWSTART, SUM(n) FROM windowed GROUP BY WINDOWSTART ORDER BY 1;")
    assert counts == [(0, 5), (5_000, 5), (10_000, 2)]


def test_several_key_columns_are_looked_up_together(orders: Play) -> None:
    select = "SELECT user_id, qty, COUNT(*) AS n FROM orders GROUP BY user_id, qty"
    orders.do(f"CREATE TABLE pairs WITH (KEY_FORMAT = 'JSON') AS {select};")
    orders.run()
    assert orders.rows("SELECT * FROM pairs WHERE user_id = 'u1' AND qty = 5;") == [("u1", 5, 1)]
    assert orders.rows("SELECT qty FROM pairs WHERE user_id = 'u1' ORDER BY qty;") == [(1,), (5,), (9,)]
    assert orders.rows("SELECT * FROM pairs WHERE user_id = 'u1' AND qty IN (5, 6, 9) ORDER BY qty;") == [
        ("u1", 5, 1),
        ("u1", 9, 1),
    ]


def test_a_deleted_row_is_gone(orders: Play) -> None:
    orders.do("INSERT INTO users (id) VALUES ('u1');")
    orders.run()
    assert orders.rows("SELECT id FROM people;") == [("u0",), ("u7",)]
    assert orders.rows("SELECT id FROM people WHERE id = 'u1';") == []


def test_a_table_whose_query_has_not_started_is_empty_with_a_warning(play: Play) -> None:
    play.do(ORDERS)
    result = play.do("SELECT * FROM totals;")
    assert isinstance(result, Rows)
    assert result.rows == ()
    assert "has not started" in result.warnings[0]


def test_reading_a_table_without_a_running_query_prints_a_note(orders: Play) -> None:
    current = orders.do("SELECT * FROM totals;")
    assert isinstance(current, Rows) and not current.warnings
    orders.do("INSERT INTO orders (id, user_id, amount) VALUES ('late', 'u1', 1.0);")
    orders.leave("CTAS_TOTALS")
    behind = orders.do("SELECT * FROM totals;")
    assert isinstance(behind, Rows)
    (reported,) = behind.warnings
    assert reported.endswith("is not running and is 1 record behind; run it with potok serve")


def test_the_same_statement_means_something_else_once_the_catalog_has_changed(orders: Play) -> None:
    text = "SELECT * FROM totals WHERE user_id = 'u1';"
    assert orders.rows(text) == [("u1", 3, 16.5)]
    orders.do("CREATE OR REPLACE TABLE remote AS SELECT user_id, MAX(qty) AS most FROM orders GROUP BY user_id;")
    orders.run()
    assert orders.rows(text) == [("u1", 3, 16.5)]
    assert orders.rows(text.replace("totals", "remote")) == [("u1", 9)]


def test_equal_numbers_of_different_types_are_different_statements(orders: Play) -> None:
    found = [orders.do(f"SELECT {number} AS x FROM totals LIMIT 1;") for number in ("1", "1.0", "1e0", "true")]
    assert [str(result.columns[0].type) for result in found if isinstance(result, Rows)] == [
        "int32",
        "decimal128(2, 1)",
        "double",
        "bool",
    ]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT * FROM users;", Refused, "cannot be read by a pull query"),
        ("SELECT * FROM nowhere;", UnknownName, "there is no stream or table"),
        ("SELECT nothing FROM totals;", UnknownName, "there is no column"),
        ("SELECT * FROM totals PARTITION BY n;", Refused, "PARTITION BY is not for queries that end"),
        ("SELECT COUNT(*) FROM orders WINDOW TUMBLING (SIZE 1 HOUR);", Refused, "keep running"),
        ("SELECT * FROM totals t JOIN people p ON t.user_id > p.id;", Refused, "must be an equality"),
        ("SELECT * FROM totals t JOIN people p ON t.n = p.id;", SqlTypeError, "cannot join BIGINT with VARCHAR"),
        ("SELECT * FROM totals t JOIN people t ON t.user_id = t.id;", Refused, "two sources"),
        ("SELECT user_id, total FROM totals GROUP BY user_id;", Refused, "neither grouped by nor aggregated"),
        ("SELECT * FROM totals HAVING n > 1;", Refused, "HAVING needs GROUP BY"),
        ("SELECT * FROM totals WHERE COUNT(*) > 1;", Refused, "is not allowed in WHERE"),
        ("SELECT * FROM orders ORDER BY tags;", SqlTypeError, "has no order"),
        ("SELECT * FROM totals ORDER BY 9;", Refused, "there is no column 9"),
        ("SELECT * FROM totals AS OF 5;", Refused, "is not versioned"),
        ("SELECT * FROM totals WHERE user_id IN (NULL);", SqlTypeError, "a comparison with NULL is never true"),
        ("SELECT * FROM totals t WHERE n > 1 OR t.user_id IN ('u1', NULL);", SqlTypeError, "with NULL is never true"),
        ("SELECT * FROM totals WHERE user_id IN (1, 2);", SqlTypeError, "cannot compare USER_ID"),
        ("SELECT * FROM orders AS OF 5;", Refused, "is a stream"),
    ],
)
def test_unsupported_pull_queries_are_refused_with_a_message(
    orders: Play, text: str, error: type[SqlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        orders.do(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT n FROM totals WHERE user_id = 'u' + '1';", [(3,)]),
        ("SELECT n FROM totals WHERE n = 3 AND 'u1' = user_id;", [(3,)]),
        ("SELECT user_id FROM totals WHERE user_id IN ('u1', 'u0') AND user_id <> 'u0';", [("u1",)]),
        ("SELECT user_id FROM totals WHERE user_id = 'u1' OR (user_id = 'u9' AND n = 3);", [("u1",)]),
        ("SELECT p.name FROM totals t JOIN people p ON t.user_id = p.id WHERE t.user_id = 'u1';", [("Bob",)]),
        ("SELECT p.name FROM totals t LEFT JOIN people p ON t.user_id = p.id WHERE t.user_id = 'u3';", [(None,)]),
    ],
)
def test_where_keys_are_named_no_other_rows_are_read(orders: Play, text: str, rows: list[tuple[object, ...]]) -> None:
    orders.do("SET 'ksql.query.pull.table.scan.enabled' = 'false';")
    assert orders.rows(text) == rows


@pytest.mark.parametrize("where", ["", " WHERE n = 3", " WHERE user_id = 'u1' OR n = 3"])
def test_a_session_may_forbid_to_read_whole_tables(orders: Play, where: str) -> None:
    orders.do("SET 'ksql.query.pull.table.scan.enabled' = 'false';")
    with pytest.raises(Refused, match="would read all of table TOTALS"):
        orders.rows(f"SELECT n FROM totals{where};")


@pytest.mark.parametrize(
    ("where", "users"),
    [
        ("user_id IN ('u3', 'u1', 'u3')", ["u3", "u1"]),
        ("user_id = 'u2' OR user_id = 'u1'", ["u2", "u1"]),
        ("user_id IN ('u3', 'u2', 'u1') AND user_id <> 'u2'", ["u3", "u1"]),
    ],
)
def test_rows_come_in_the_order_in_which_their_keys_are_named(orders: Play, where: str, users: list[str]) -> None:
    assert orders.rows(f"SELECT user_id FROM totals WHERE {where};") == [(user,) for user in users]


def test_a_range_of_keys_of_a_table_with_windows_may_be_read_where_ranges_may(orders: Play) -> None:
    orders.do(
        """CREATE TABLE hourly AS
             SELECT user_id, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user_id;"""
    )
    orders.run()
    pull = "SELECT user_id FROM hourly WHERE user_id <= 'u2';"
    orders.do("SET 'ksql.query.pull.table.scan.enabled' = 'false';")
    assert {user for (user,) in orders.rows(pull)} == {"u0", "u1", "u2"}
    with pytest.raises(Refused, match="would read all of table HOURLY"):
        orders.rows("SELECT n FROM hourly WHERE n = 1;")
    orders.do("SET 'ksql.query.pull.range.scan.enabled' = 'false';")
    with pytest.raises(Refused, match="would read a range of table HOURLY"):
        orders.rows(pull)


def test_a_session_may_forbid_to_read_ranges_of_keys_as_well(orders: Play) -> None:
    pull = "SELECT user_id FROM totals WHERE user_id > 'u2';"
    orders.do("SET 'ksql.query.pull.table.scan.enabled' = 'false';")
    assert orders.rows(pull) == [("u3",)]
    orders.do("SET 'ksql.query.pull.range.scan.enabled' = 'false';")
    with pytest.raises(Refused, match="would read a range of table TOTALS"):
        orders.rows(pull)
    orders.do("SET 'ksql.query.pull.table.scan.enabled' = 'true';")
    assert orders.rows(pull) == [("u3",)]


def test_a_table_with_versions_is_read_as_of_an_instant(play: Play) -> None:
    play.do("CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC = 'users');")
    kept = "WITH (KAFKA_TOPIC = 'users', HISTORY = '1 HOUR')"
    play.do(f"CREATE SOURCE TABLE people (id VARCHAR PRIMARY KEY, name VARCHAR) {kept};")
    rows = [{"ROWTIME": 1_000, "id": "u", "name": "Ann"}, {"ROWTIME": 5_000, "id": "u", "name": "Anna"}]
    assert insert_rows(play.database, play.database.catalog.source("USERS"), rows) == {}
    play.run()
    assert play.rows("SELECT name FROM people;") == [("Anna",)]
    for instant in ("1000", "'1970-01-01T00:00:04'"):
        assert play.rows(f"SELECT name, ROWTIME FROM people AS OF {instant};") == [("Ann", 1_000)]
        assert play.rows(f"SELECT name FROM people AS OF {instant} WHERE id = 'u';") == [("Ann",)]
    assert play.rows("SELECT name FROM people AS OF 999;") == []
    with pytest.raises(Refused, match="line 1, column 18: AS OF needs a timestamp, not NULL"):
        play.rows("SELECT name FROM people AS OF CAST(NULL AS BIGINT);")


def test_instants_are_compared_with_text(orders: Play) -> None:
    orders.do(
        "CREATE TABLE latest AS SELECT user_id, FROM_UNIXTIME(MAX(CAST(qty AS BIGINT)) * 1000) AS at"
        " FROM orders GROUP BY user_id;"
    )
    orders.run()
    rows = orders.rows("SELECT user_id, at FROM latest WHERE at > '1970-01-01T00:00:10';")
    assert rows == [("u3", datetime(1970, 1, 1, 0, 0, 11, tzinfo=UTC))]
