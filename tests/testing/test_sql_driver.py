"""The driver of scripts: topics fed raw, tables and topics read as columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.errors import TopologyError
from potok.sql.errors import Refused, UnknownName
from potok.testing import SqlDriver, TestDriver
from potok.testing.sql_rows import UnreadableRecord
from sql.in_process_sql import InProcessSql

ORDERS = """
CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""
COUNTS = "CREATE TABLE counts AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;"
HOURLY = """CREATE TABLE hourly AS
  SELECT user_id, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user_id;"""


def feed(driver: TestDriver) -> None:
    driver.send("orders", {"user_id": "u1", "amount": 1.0}, "o1", timestamp=1_000)
    driver.send("orders", {"user_id": "u1", "amount": 2.0}, "o2", timestamp=3_700_000)


def test_rows_are_columns_by_name_with_their_windows() -> None:
    with InProcessSql(ORDERS + COUNTS + HOURLY) as driver:
        feed(driver)
        driver.run()
        assert [row.columns for row in driver.rows("counts")] == [{"USER_ID": "u1", "N": 2}]
        assert [(row.columns["N"], row.window) for row in driver.rows("HOURLY")] == [
            (1, (0, 3_600_000)),
            (1, (3_600_000, 7_200_000)),
        ]
        assert driver.rows("counts")[0].window is None


def test_tables_and_pull_queries_see_what_was_run() -> None:
    with InProcessSql(ORDERS + COUNTS) as driver:
        feed(driver)
        assert driver.query("SELECT * FROM counts;") == []
        driver.run()
        assert driver.table("counts").get("u1") == {"N": 2}
        assert driver.query("SELECT n FROM counts WHERE user_id = 'u1'") == [{"N": 2}]


def test_a_query_that_reads_another_one_sees_its_output_in_the_same_run() -> None:
    late = "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 1; CREATE STREAM bigger AS SELECT * FROM big;"
    with InProcessSql(ORDERS + late) as driver:
        feed(driver)
        driver.run()
        assert [row.columns["ORDER_ID"] for row in driver.rows("bigger")] == ["o2"]


def test_statements_can_be_added_later_and_replaced_queries_continue() -> None:
    with InProcessSql(ORDERS) as driver:
        driver.execute("CREATE STREAM s AS SELECT order_id, amount FROM orders;")
        feed(driver)
        driver.run()
        driver.execute("CREATE OR REPLACE STREAM s AS SELECT order_id, amount, user_id FROM orders;")
        driver.send("orders", {"user_id": "u9", "amount": 3.0}, "o3", timestamp=5)
        driver.run()
        assert [row.columns.get("USER_ID") for row in driver.rows("s")] == [None, None, "u9"]


def test_a_deleted_row_has_only_its_key() -> None:
    users = "CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC = 'users', PARTITIONS = 1);"
    with InProcessSql(users + "CREATE TABLE copy AS SELECT * FROM users;") as driver:
        driver.send("users", {"name": "Ann"}, "a", timestamp=1)
        driver.run()
        driver.send("users", None, "a", timestamp=2)
        driver.run()
        assert [(row.columns, row.deleted) for row in driver.rows("copy")] == [
            ({"ID": "a", "NAME": "Ann"}, False),
            ({"ID": "a"}, True),
        ]


def test_a_paused_query_waits_and_a_resumed_one_catches_up() -> None:
    with InProcessSql(ORDERS + COUNTS + "PAUSE ALL;") as driver:
        feed(driver)
        assert driver.run() == 0
        driver.execute("RESUME ALL;")
        driver.run()
        assert driver.table("counts").all() == {"u1": {"N": 2}}


def test_after_a_restart_everything_follows_from_the_statements() -> None:
    with InProcessSql(ORDERS + COUNTS) as driver:
        feed(driver)
        driver.run()
        driver.restart()
        driver.send("orders", {"user_id": "u1"}, "o3", timestamp=5)
        driver.run()
        assert driver.query("SELECT n FROM counts;") == [{"N": 3}]


def test_dead_letters_of_all_queries_are_reported() -> None:
    with InProcessSql(ORDERS + COUNTS + "CREATE STREAM s AS SELECT * FROM orders;") as driver:
        driver.send("orders", b"nonsense", "o1", timestamp=1)
        driver.run()
        assert [letter.reason for letter in driver.dead_letters()] == ["decode", "decode"]


def test_undecodable_bytes_are_reported() -> None:
    with InProcessSql(ORDERS) as driver:
        driver.send("orders", b"nonsense", "o1", timestamp=1)
        with pytest.raises(UnreadableRecord, match="0:0 of ORDERS"):
            driver.rows("orders")


def test_a_script_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        InProcessSql(ORDERS + COUNTS + "CREATE STREAM s AS SELECT * FROM nothing;", directory=tmp_path)
    with InProcessSql("", directory=tmp_path) as driver:
        assert sorted(driver.database.catalog.sources) == ["COUNTS", "ORDERS"]
        feed(driver)
        driver.run()
        assert driver.query("SELECT n FROM counts;") == [{"N": 2}]


def test_a_statement_without_rows_is_not_a_query() -> None:
    with InProcessSql("") as driver, pytest.raises(Refused, match="does not return a finite result"):
        driver.query(ORDERS)


def test_a_driver_has_a_program_or_a_script() -> None:
    with pytest.raises(TopologyError, match="a program or a script"):
        TestDriver()


@pytest.mark.usefixtures("spark")
def test_a_script_runs_through_spark() -> None:
    with TestDriver(sql=ORDERS + COUNTS, spread=True, spark=True) as driver:
        assert isinstance(driver, SqlDriver)
        feed(driver)
        driver.run()
        assert driver.query("SELECT * FROM counts;") == [{"USER_ID": "u1", "N": 2}]
