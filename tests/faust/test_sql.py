"""Statements of an app: they read its topics and tables, and agents read what they write."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import potok.faust as faust
from faust.shop import HOUR, order, shop
from operators.core.in_process import InProcess
from potok.errors import PotokError
from potok.faust.catalog import column_type
from potok.sql.types import type_name
from potok.statements.catalog.stored_values import NotOfItsType


class Item(faust.Record):
    productId: str
    count: int


class Basket(faust.Record):
    user_id: str
    items: list[Item]
    at: dt.datetime
    discount: Decimal | None = None


@pytest.fixture
def app(tmp_path: Path) -> faust.App:
    found = shop()
    found.broker = f"file:{tmp_path}"
    return found


class Running:
    """An app, and its statements, run in this process when the test says so."""

    def __init__(self, app: faust.App, directory: Path) -> None:
        self.app, self._directory = app, directory

    def __enter__(self) -> Running:
        self.agents = InProcess(self.app, directory=self._directory)
        return self

    def __exit__(self, *_: object) -> None:
        self.app.statements.close()
        self.agents.close()

    def run(self) -> None:
        self.agents.run(more_to_come=True)


def test_tables_and_topics_are_read_by_select(app: faust.App, tmp_path: Path) -> None:
    with Running(app, tmp_path) as running:
        for number, (user, amount) in enumerate([("u1", 120.0), ("u2", 3.0), ("u1", 2.0)]):
            running.agents.send("orders", order(number, user, amount), timestamp=number * HOUR)
        running.run()
        assert app.sql("SELECT * FROM order_counts WHERE key = 'u1'") == [{"KEY": "u1", "VALUE": 2}]
        assert app.sql("SELECT SUM(value) AS total FROM user_totals;") == [{"TOTAL": 125.0}]
        hours = app.sql("SELECT windowstart, total FROM hourly_stats WHERE key = 'u1' ORDER BY windowstart;")
        assert hours == [{"WINDOWSTART": 0, "TOTAL": 120.0}, {"WINDOWSTART": 2 * HOUR, "TOTAL": 2.0}]
        assert app.sql("SELECT order_id, items FROM high_value_orders") == [{"ORDER_ID": "o0", "ITEMS": ["book"]}]
        joined = "SELECT c.value AS n, t.value AS spent FROM order_counts c JOIN user_totals t ON c.key = t.key"
        assert app.sql(f"{joined} WHERE c.key = 'u2'") == [{"N": 1, "SPENT": 3.0}]


def test_before_the_first_batch_there_are_no_rows(app: faust.App) -> None:
    assert app.sql("SELECT * FROM order_counts;") == []
    app.statements.close()


def test_statements_and_agents_read_what_the_others_write(app: faust.App, tmp_path: Path) -> None:
    large = app.topic("large", value_type=app.topics[0].value_type)
    seen = app.Table("seen", default=list)

    @app.agent(large)
    async def look(stream: Any) -> None:
        async for item in stream:
            seen[item.user_id] += [item.items[0]]

    app.sql("""
        CREATE STREAM large_orders WITH (KAFKA_TOPIC = 'large') AS SELECT * FROM orders WHERE amount > 100;
        CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM high_value_orders GROUP BY user_id;
    """)
    with Running(app, tmp_path) as running:
        running.agents.send("orders", order(1, "u1", 120.0))
        running.agents.send("orders", order(2, "u1", 20.0))
        running.run()
        assert running.agents.table("seen").all() == {"u1": ["book"]}
        assert app.sql("SELECT * FROM by_user WHERE user_id = 'u1'") == [{"USER_ID": "u1", "N": 1}]
        assert running.agents.dead_letters() == []
        assert list(app.statements.database.catalog_state().queries) == [
            "order-processor.large_orders",
            "order-processor.by_user",
        ]


def test_the_changes_of_a_table_feed_a_statement(tmp_path: Path) -> None:
    app = faust.App("words", broker=f"file:{tmp_path}")
    words, counts = app.topic("words", value_type=str), app.Table("counts", default=int, changelog_topic=True)

    @app.agent(words)
    async def count(stream: Any) -> None:
        async for word in stream:
            counts[word] += 1

    app.sql("CREATE TABLE by_count AS SELECT value AS n, COUNT(*) AS words FROM counts GROUP BY value;")
    with Running(app, tmp_path) as running:
        for word in ("a", "b", "a"):
            running.agents.send("words", word.encode())
        running.run()
        assert app.sql("SELECT * FROM by_count WHERE n = 2") == [{"N": 2, "WORDS": 1}]
        assert app.sql("SELECT * FROM by_count WHERE n = 1") == [{"N": 1, "WORDS": 1}]


def test_a_table_without_a_changelog_cannot_be_read_by_queries(app: faust.App) -> None:
    app.sql("CREATE TABLE t AS SELECT value, COUNT(*) AS n FROM order_counts GROUP BY value;")
    with pytest.raises(PotokError, match=r"(?s)has no changelog topic.*changelog_topic=True"):
        app.sql("SELECT * FROM order_counts;")
    app.statements.close()


def test_rows_are_inserted_as_records_that_agents_can_read(app: faust.App, tmp_path: Path) -> None:
    with Running(app, tmp_path) as running:
        app.sql("INSERT INTO orders (order_id, user_id, amount, items) VALUES ('o1', 'u1', 2.5, ARRAY['book']);")
        running.run()
        assert running.agents.table("user_totals").all() == {"u1": 2.5}


def test_nested_records_are_read_and_written_as_they_are_spelled(tmp_path: Path) -> None:
    app = faust.App("baskets", broker=f"file:{tmp_path}")
    baskets = app.topic("baskets", value_type=Basket)
    last = app.Table("last", value_type=Basket, default=lambda: Basket("", [], dt.datetime(2026, 1, 1)))

    @app.agent(baskets)
    async def keep(stream: Any) -> None:
        async for basket in stream:
            last[basket.user_id] = basket

    app.sql("CREATE STREAM copies WITH (KAFKA_TOPIC = 'copies') AS SELECT * FROM baskets;")
    with Running(app, tmp_path) as running:
        value = {"user_id": "u1", "items": [{"productId": "p", "count": 2}], "at": "2026-01-02T03:04:05+00:00"}
        running.agents.send("baskets", {**value, "discount": "1.5"})
        running.run()
        rows = app.sql("SELECT items[1]->productid AS product, at, discount FROM last WHERE key = 'u1'")
        assert rows == [{"PRODUCT": "p", "AT": "2026-01-02T03:04:05+00:00", "DISCOUNT": Decimal("1.5")}]
        (copy,) = running.agents.read("copies")
        assert Basket.from_data(copy.value) == Basket.from_data({**value, "discount": "1.5"})


@pytest.mark.parametrize(
    ("annotation", "sql"),
    [
        (int, "BIGINT"),
        (float | None, "DOUBLE"),
        (list, "ARRAY<VARCHAR>"),
        (dict[str, int], "MAP<VARCHAR, BIGINT>"),
        (int | str, "VARCHAR"),
        (dt.date, "VARCHAR"),
        (Item, "STRUCT<PRODUCTID VARCHAR, COUNT BIGINT>"),
    ],
)
def test_annotations_are_types_of_sql(annotation: Any, sql: str) -> None:
    assert type_name(column_type(annotation)).replace("`", "") == sql
    assert isinstance(column_type(annotation), pa.DataType)


def test_a_row_of_the_wrong_type_is_reported(tmp_path: Path) -> None:
    app = faust.App("halves", broker=f"file:{tmp_path}")
    numbers, sums = app.topic("numbers", value_type=float), app.Table("sums", default=int)

    @app.agent(numbers)
    async def add(stream: Any) -> None:
        async for number in stream:
            sums["all"] += number

    with Running(app, tmp_path) as running:
        app.topics[0].send_soon(value=0.5)
        running.run()
        with pytest.raises(NotOfItsType, match=r'table "sums" holds 0.5, but statements expect BIGINT'):
            app.sql("SELECT * FROM sums;")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DROP TABLE order_counts;", "not drop them"),
        ("SELECT * FROM orders EMIT CHANGES;", "never ends"),
        ("SELECT * FROM nowhere;", "there is no stream or table NOWHERE"),
        ("INSERT INTO order_counts (key, value) VALUES ('u1', 7);", "is written by query"),
    ],
)
def test_what_a_program_cannot_say_is_refused(app: faust.App, text: str, why: str) -> None:
    app.log().create_topic("orders", 1, exist_ok=True)
    with pytest.raises(PotokError, match=why):
        app.sql(text)
    app.statements.close()


def test_an_agent_sends_no_statements(tmp_path: Path) -> None:
    app = faust.App("asking", broker=f"file:{tmp_path}")

    @app.agent(app.topic("words", value_type=str))
    async def ask(stream: Any) -> None:
        async for _ in stream:
            app.sql("SELECT 1")

    with InProcess(app, directory=tmp_path) as driver:
        driver.send("words", b"a")
        driver.run()
        (letter,) = driver.dead_letters()
    assert "an agent sends no statements" in str(letter)
