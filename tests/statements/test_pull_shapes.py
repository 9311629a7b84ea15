"""Pull queries over tables of many shapes: each gives rows or a refusal, and never an internal error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest

from potok.errors import PotokError
from potok.sql.catalog import Source, SourceColumn
from potok.sql.types import quoted
from sql.in_process_sql import InProcessSql

SOURCES = """
    CREATE STREAM s (k VARCHAR KEY, a INT, b VARCHAR, d DOUBLE, st STRUCT<x INT, y VARCHAR>, l ARRAY<INT>)
      WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
    CREATE TABLE declared (k1 VARCHAR PRIMARY KEY, k2 INT PRIMARY KEY, v INT)
      WITH (KAFKA_TOPIC = 'd', FORMAT = 'JSON', PARTITIONS = 1);
"""
SHAPES = {
    "generated": "SELECT a, b, COUNT(*) FROM s GROUP BY a, b",
    "aliased": "SELECT a AS x, b AS y, COUNT(*) AS n, SUM(d) FROM s GROUP BY a, b",
    "computed": "SELECT a + 1, b + 'x', COUNT(*) AS n FROM s GROUP BY a + 1, b + 'x'",
    "spaced": "SELECT a + 1 AS `a 1`, st->x, MAX(d) FROM s GROUP BY a + 1, st->x",
    "tumbling": "SELECT a AS x, b AS y, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY a, b",
    "hopping": "SELECT a, COUNT(*), AS_VALUE(a) AS c FROM s WINDOW HOPPING (SIZE 9 SECONDS, ADVANCE BY 3 SECONDS)"
    " GROUP BY a",
    "session": "SELECT a, COUNT(*), WINDOWSTART AS ws FROM s WINDOW SESSION (10 SECONDS) GROUP BY a",
    "copied": "SELECT * FROM declared",
    "renamed": "SELECT k1 AS p, k2 AS q, v + 1, v FROM declared",
    "regrouped": "SELECT v, COUNT(*), COLLECT_LIST(k2) FROM declared GROUP BY v",
    "nested": "SELECT STRUCT(p := a, q := b) AS st, COUNT(*) AS n FROM s GROUP BY STRUCT(p := a, q := b)",
    "latest": "SELECT k, LATEST_BY_OFFSET(st) AS st, LATEST_BY_OFFSET(l) AS l FROM s GROUP BY k",
}


@pytest.fixture(scope="module")
def driver() -> Iterator[InProcessSql]:
    tables = (f"CREATE TABLE {name} WITH (FORMAT = 'JSON') AS {query};" for name, query in SHAPES.items())
    with InProcessSql(SOURCES + "".join(tables)) as driver:
        for i in range(12):
            value = {"a": i % 3, "b": None if i == 7 else f"u{i % 2}", "d": i / 2, "st": {"x": i}, "l": [i, None]}
            driver.send("s", value, f"k{i % 4}", timestamp=i * 3000)
            driver.send("d", {"v": i % 2}, {"K1": f"k{i % 3}", "K2": i % 2}, timestamp=i)
        driver.run()
        yield driver


@pytest.mark.parametrize("seed", range(4))
def test_a_pull_query_returns_rows_or_a_refusal(driver: InProcessSql, seed: int) -> None:
    chosen, answered = Random(seed), 0
    for _ in range(60):
        name = chosen.choice(list(SHAPES))
        query = any_query(chosen, driver.database.catalog.sources[name.upper()])
        with suppress(PotokError):
            driver.query(query)
            answered += 1
    assert answered > 20


def any_query(chosen: Random, source: Source) -> str:
    alias = chosen.choice(["", "x", "`T 1`"])
    prefix = chosen.choice(["", f"{alias or quoted(source.name)}."])
    columns = [quoted(column.name) for column in source.columns] + ["ROWTIME"]
    columns += ["WINDOWSTART", "WINDOWEND"] if source.window else []
    some = ", ".join(prefix + column for column in chosen.sample(columns, chosen.randint(1, 3)))
    items = chosen.choice(["*", f"{prefix}*", some, f"{some}, *", "COUNT(*)", f"{prefix}{columns[0]}, COUNT(*) AS n"])
    query = f"SELECT {items} FROM {quoted(source.name)} {alias} WHERE {condition(chosen, source, prefix)}"
    if items.endswith("AS n"):
        query += f" GROUP BY {prefix}{columns[0]}"
    elif chosen.random() < 0.2:
        query += f" ORDER BY {prefix}{chosen.choice(columns)} DESC"
    return f"{query} LIMIT {chosen.randint(0, 3)};" if chosen.random() < 0.3 else f"{query};"


def condition(chosen: Random, source: Source, prefix: str) -> str:
    column = chosen.choice(source.columns)
    name = prefix + quoted(column.name)
    kind = chosen.randrange(7)
    if kind < 2:
        compared = (f"{prefix}{quoted(key.name)} {chosen.choice('=<>')} {literal(chosen, key)}" for key in source.keys)
        return " AND ".join(compared)
    if kind == 2:
        return f"{name} IN ({literal(chosen, column)}, {literal(chosen, column)})"
    if kind == 3:
        return f"{name} IS NOT NULL"
    if kind == 4 and source.window:
        return f"WINDOWSTART >= {chosen.choice(['0', '10000'])} AND {condition(chosen, source, prefix)}"
    if kind == 5:
        return f"NOT ({condition(chosen, source, prefix)} OR {condition(chosen, source, prefix)})"
    return f"{literal(chosen, column)} = {name}"


def literal(chosen: Random, column: SourceColumn) -> str:
    if pa.types.is_string(column.type):
        return chosen.choice(["'u0'", "'k1'", "'u0x'", "'other'"])
    if pa.types.is_struct(column.type):
        first, second = (quoted(field.name) for field in column.type)
        return f"STRUCT({first} := {chosen.randint(0, 2)}, {second} := 'u1')"
    return str(chosen.choice([0, 1, -5])) if pa.types.is_integer(column.type) else "1.5"
