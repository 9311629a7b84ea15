"""A program in SQL and the same program in the DSL are the same topology."""

from __future__ import annotations

from typing import Any

import pytest

from potok import StreamsBuilder, days, hours, session, tumbling
from potok.sql.catalog import Catalog
from potok.sql.definitions import defined
from potok.sql.planner.persist import lower_create
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.topology.describe import description_of
from potok.topology.graph import Topology

ORDERS = """CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE, n BIGINT)
    WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');"""
FORMATS = {"key_format": "kafka", "value_format": "sql_json"}


def by_sql(text: str) -> Topology:
    stream, query = parse_script(ORDERS + text)
    assert isinstance(stream.statement, ast.CreateSource)
    assert isinstance(query.statement, ast.CreateAs)
    catalog = Catalog().with_source(defined(stream.statement, Catalog(), stream.text))
    return lower_create(query.statement, catalog, "q", query.text).topology


def orders(builder: StreamsBuilder) -> Any:
    return builder.stream("orders", value="USER_ID string, AMOUNT double, N bigint", **FORMATS)


def filtered(builder: StreamsBuilder) -> None:
    large = orders(builder).filter(lambda k, v: v["AMOUNT"] > 100)
    large.map_values(lambda v: {"USER_ID": v["USER_ID"], "TWICE": v["AMOUNT"] * 2.0}).to("LARGE", **FORMATS)


def counted(builder: StreamsBuilder) -> None:
    table = (
        orders(builder)
        .filter(lambda k, v: v["AMOUNT"] > 100)
        .group_by("USER_ID")
        .aggregate(
            initializer={"C": 0, "TOTAL": 0.0},
            aggregator=lambda k, v, agg: {"C": agg["C"] + 1, "TOTAL": agg["TOTAL"] + v["AMOUNT"]},
            name="COUNTS",
        )
    )
    table.to_stream().to("COUNTS", **FORMATS, cleanup_policy="compact")


def in_windows(window: Any, key_format: str) -> Any:
    def build(builder: StreamsBuilder) -> None:
        table = (
            orders(builder)
            .group_by("USER_ID")
            .windowed_by(window)
            .aggregate(initializer={"C": 0}, aggregator=lambda k, v, agg: {"C": agg["C"] + 1}, name="HOURLY")
        )
        table.to_stream().to("HOURLY", key_format=key_format, value_format="sql_json")

    return build


CASES = {
    "filter": (
        "CREATE STREAM large AS SELECT order_id, user_id, amount * 2.0 AS twice FROM orders WHERE amount > 100;",
        filtered,
    ),
    "group": (
        "CREATE TABLE counts AS SELECT user_id, COUNT(*) AS c, SUM(amount) AS total FROM orders WHERE amount > 100"
        " GROUP BY user_id EMIT CHANGES;",
        counted,
    ),
    "tumbling": (
        "CREATE TABLE hourly AS SELECT user_id, COUNT(*) AS c FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY"
        " user_id;",
        in_windows(tumbling(hours(1), grace=days(1)), "windowed;size_ms=3600000;inner=kafka"),
    ),
    "session": (
        "CREATE TABLE hourly AS SELECT user_id, COUNT(*) AS c FROM orders WINDOW SESSION (1 HOUR, GRACE PERIOD 2 DAYS)"
        " GROUP BY user_id;",
        in_windows(session(hours(1), grace=days(2)), "session;inner=kafka"),
    ),
}


def data_of(topology: Topology) -> list[dict[str, Any]]:
    """The steps as data, without their places in a program and the text of their expressions."""
    steps = description_of(topology)["steps"]
    return [{key: value for key, value in step.items() if key not in ("at", "expressions")} for step in steps]


@pytest.mark.parametrize("case", CASES)
def test_both_return_the_same_steps(case: str) -> None:
    text, build = CASES[case]
    builder = StreamsBuilder("q")
    build(builder)
    assert data_of(by_sql(text)) == data_of(builder.build())
