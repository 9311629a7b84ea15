"""Tables of a program that follow those of MariaDB."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.sources.cdc.runner import captured
from tests.sources.cdc.changed import MysqlDatabase, snapshot_landed, wait_for

COLUMNS = "name string, balance decimal(10,2), born date, made timestamp, seen timestamp, picture binary, active int"


def test_a_table_has_the_values_of_the_database(database: MysqlDatabase, tmp_path: Path) -> None:
    database.run("SET SESSION time_zone = '+00:00'")
    database.run(
        "CREATE TABLE users (id int PRIMARY KEY, name varchar(50), balance decimal(10,2), born date, made datetime, "
        "seen datetime(6), picture blob, active bool)"
    )
    row = "'Änn', -1.50, '1999-12-31', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789012', x'00ff', true"
    database.run(f"INSERT INTO users VALUES (1, {row}), (2, {row}), (3, {row})")
    builder = StreamsBuilder("q")
    shop = builder.cdc(database.url, tables=["users"])
    shop.table("users", key=int, value=COLUMNS)
    with InProcess(builder, directory=tmp_path) as driver:
        with captured(builder, driver.broker) as (runner,):
            snapshot_landed(runner)
            database.run(f"INSERT INTO users VALUES (4, {row})")
            database.run("UPDATE users SET balance = 99.99 WHERE id = 2")
            database.run("UPDATE users SET id = 30 WHERE id = 3")
            database.run("DELETE FROM users WHERE id = 1")
            wait_for(lambda: runner.status().changes == 4, runner)
        driver.run()
        found = driver.table("users").all()
        assert driver.reasons() == []
    assert sorted(found) == [2, 4, 30]
    assert found[4] == {
        "name": "Änn",
        "balance": Decimal("-1.50"),
        "born": dt.date(1999, 12, 31),
        "made": dt.datetime(2024, 2, 29, 12, 34, 56, tzinfo=dt.UTC),
        "seen": dt.datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=dt.UTC),
        "picture": b"\x00\xff",
        "active": 1,
    }
    assert found[2]["balance"] == Decimal("99.99")
    assert found[30]["made"] == found[4]["made"]
