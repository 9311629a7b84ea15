"""Whatever statement is sent: it is carried out, or refused by an error of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from tests import hostile

from potok.errors import PotokError
from potok.statements.results import Push
from potok.statements.session import SqlSession
from statements.playing import Play

SHOP = """
CREATE STREAM orders (id VARCHAR KEY, u VARCHAR, n BIGINT, x DOUBLE, d DECIMAL(5, 2), t TIMESTAMP, a ARRAY<INT>,
  m MAP<VARCHAR, INT>, s STRUCT<f INT>) WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 2);
CREATE STREAM numbered (k INT KEY, v INT) WITH (KAFKA_TOPIC = 'numbered', PARTITIONS = 1, FORMAT = 'KAFKA');
CREATE TABLE names (id DOUBLE PRIMARY KEY, v BYTES, w DATE) WITH (KAFKA_TOPIC = 'names', PARTITIONS = 1);
CREATE TABLE totals AS SELECT u, COUNT(*) AS n, SUM(x) AS total, COLLECT_LIST(n) AS l FROM orders GROUP BY u;
CREATE TABLE pairs WITH (KEY_FORMAT = 'JSON') AS SELECT u, n, MAX(d) AS d FROM orders GROUP BY u, n;
CREATE TABLE hourly AS SELECT u, COUNT(*) AS n, MIN(t) AS t FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY u;
CREATE TABLE visits AS SELECT u, COUNT(*) AS n FROM orders WINDOW SESSION (10 SECONDS) GROUP BY u;
CREATE TABLE kept AS SELECT * FROM names;
"""
VALUES = [
    *(
        "NULL",
        "0",
        "1",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "9" * 400,
        "1e308",
        "1e999999",
        "0.5",
        "TRUE",
    ),
    *(
        "''",
        "'u1'",
        "'\0'",
        "'é😀'",
        f"'{'a' * 5_000}'",
        "'2020-01-01'",
        "'2020-02-30T99:99'",
        "'[ ]'",
        "'%'",
        "X",
        "`u`",
    ),
    *(
        "ARRAY[1, NULL]",
        "ARRAY[]",
        "MAP('k' := 1)",
        "MAP()",
        "STRUCT(F := 1)",
        "CAST(NULL AS INT)",
        "1 / 0",
        "ROWTIME",
        "u",
        "n",
    ),
    *(
        "a[99999999999]",
        "m['x']",
        "s->f",
        "s->nothing",
        "'\ud800'",
        "CASE WHEN n THEN 1 END",
        "-(-(-1))",
        "X => X",
        "WINDOWSTART",
    ),
]
SOURCES = ["orders", "numbered", "names", "totals", "pairs", "hourly", "visits", "kept", "nothing", "`ORDERS`"]
COLUMNS = [
    *(
        "*",
        "u",
        "n",
        "total",
        "l",
        "id",
        "ROWTIME",
        "ROWPARTITION",
        "WINDOWSTART",
        "WINDOWEND",
        "COUNT(*)",
        "SUM(n)",
        "v",
    ),
    *(
        "AVG(x)",
        "TOPK(n, 3)",
        "EXPLODE(a)",
        "a[1]",
        "m['k']",
        "s->f",
        "CAST(u AS INT)",
        "CAST(x AS DECIMAL(38, 38))",
        "d * d",
        "t",
    ),
    *(
        "LATEST_BY_OFFSET(u)",
        "HISTOGRAM(u)",
        "COLLECT_SET(n)",
        "STDDEV_SAMP(x)",
        "PARSE_TIMESTAMP(u, 'q')",
        "REGEXP_EXTRACT('(', u)",
    ),
]
OPERATORS = ["=", "<>", "<", ">=", "+", "/", "%", "LIKE", "AND", "OR", "IS DISTINCT FROM", "->", "BETWEEN 1 AND"]
KEYS = ["u", "n", "id", "k", "ROWTIME", "WINDOWSTART", "WINDOWEND", "ROWPARTITION", "ROWOFFSET", "total", "a", "x"]
CLAUSES = [
    "WHERE {key} {op} {value}", "WHERE {key} = {value} AND {key} {op} {value}", "WHERE {key} IN ({value}, {value})",
    "WHERE {key} BETWEEN {value} AND {value}", "WHERE {value}", "GROUP BY {key}", "GROUP BY {key} HAVING {value}",
    "WHERE NOT ({key} {op} {value}) OR {key} = {value}", "LIMIT {value}", "", "WHERE {key} IS NULL LIMIT 1",
    "WHERE {key} LIKE {value} ESCAPE {value}", "PARTITION BY {key}", "WHERE {key}[{value}] = {value}",
    "JOIN {source} ON {key} = {key}", "LEFT JOIN {source} b ON orders.{key} = b.{key} WHERE b.{key} = {value}",
    "JOIN {source} b WITHIN {value} DAYS ON {key} = b.{key}", "WINDOW TUMBLING (SIZE {value} DAYS) GROUP BY {key}",
]  # fmt: skip
STATEMENTS = [
    *["SELECT {column}, {column} FROM {source} {clause};"] * 8,
    "SELECT {column} FROM {source} {clause} EMIT CHANGES LIMIT {value};",
    "INSERT INTO {source} ({key}, {key}) VALUES ({value}, {value});",
    "INSERT INTO orders (id, u, n, x, d, t, a, m, s) VALUES ({value}, {value}, {value}, {value}, "
    "{value}, {value}, {value}, {value}, {value});",
    "INSERT INTO orders (id, {key}, n, x, d, ROWTIME) VALUES ('u1', {value}, {value}, {value}, {value}, {value});",
    "INSERT INTO numbered VALUES ({value}, {value});",
    "INSERT INTO names (id, v, w) VALUES ({value}, {value}, {value});",
    "EXPLAIN SELECT {column} FROM {source} {clause};",
    "DESCRIBE {source} EXTENDED;",
    "DESCRIBE FUNCTION {key};",
    "SHOW {key};",
    "SET {value} = {value};",
    "SET 'auto.offset.reset' = {value};",
    "DEFINE x = {value};",
    "PRINT {value} FROM BEGINNING LIMIT 1;",
    "DROP STREAM {value};",
    "CREATE STREAM made{number} ({key} INT, {key} DECIMAL({value}, {value})) "
    "WITH (KAFKA_TOPIC = {value}, PARTITIONS = {value});",
    "CREATE TABLE made{number} (k INT PRIMARY KEY) "
    "WITH (KAFKA_TOPIC = 't', PARTITIONS = 1, TIMESTAMP = {value}, VALUE_FORMAT = {value});",
    "CREATE TYPE made{number} AS STRUCT<f DECIMAL({value}, 1)>;",
    "ASSERT TOPIC {value} TIMEOUT {value} SECONDS;",
    "TERMINATE {value};",
    "PAUSE {key};",
    "SHOW {key} EXTENDED;",
]  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    play = Play(Path(tmp_path_factory.mktemp("shop")))
    play.do(SHOP)
    for number in range(20):
        user, at = f"'u{number % 3}'", 1_000_000 * number
        more = "1.5, 2.25, '2020-01-01T00:00:00', ARRAY[1, NULL], MAP('k' := 1), STRUCT(f := 1)"
        play.do(
            f"INSERT INTO orders (ROWTIME, id, u, n, x, d, t, a, m, s) VALUES ({at}, 'o', {user}, {number}, {more});"
        )
    play.do("INSERT INTO names VALUES (1.5, 'aGk=', '2020-01-01');")
    play.run()
    yield play
    play.close()


def filled(random: Random, template: str) -> str:
    choices = {"column": COLUMNS, "source": SOURCES, "key": KEYS, "value": VALUES, "op": OPERATORS, "clause": CLAUSES}
    while "{" in template:
        begin = template.index("{")
        name, _, rest = template[begin + 1 :].partition("}")
        chosen = str(random.randrange(10**9)) if name == "number" else random.choice(choices[name])
        template = template[:begin] + chosen + rest
    return template


def damaged(random: Random, text: str) -> str:
    """The statement with a word of another, or cut, or with a character too many."""
    words = text.split(" ")
    place = random.randrange(len(words))
    change = random.choice(["swap", "cut", "put", "twice"])
    if change == "swap":
        words[place] = random.choice(
            ["(", ")", "SELECT", "'", '"', "`", ";", "/*", "--", "${x}", "WINDOW", "\0", "EMIT", "AS"]
        )
    elif change == "cut":
        words = words[:place]
    elif change == "put":
        words[place] += random.choice(["\ud800", "(" * 500, "'", "é", ".", "->", "[", "NOT " * 300])
    else:
        words[place:place] = words[place:]
    return " ".join(words)


@hostile.explored(60)
@given(random=st.randoms(use_true_random=False))
def test_no_statement_ends_in_an_error_that_is_not_ours(shop: Play, random: Random) -> None:
    session = SqlSession(shop.database)
    for _ in range(20):
        text = filled(random, random.choice(STATEMENTS))
        if random.random() < 0.2:
            text = damaged(random, text)
        note(ascii(text))
        with contextlib.suppress(PotokError):
            for one in session.execute(text):
                if isinstance(one.result, Push):
                    one.result.close()
                else:
                    list(getattr(one.result, "rows", ()))
