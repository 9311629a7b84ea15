"""The forms of MATCH_RECOGNIZE over bounded data, and what is refused with its position and a hint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import potok
from potok.sql.errors import SqlError
from potok.testing import SqlDriver

TICKS = """
CREATE STREAM ticks (symbol VARCHAR KEY, price BIGINT)
  WITH (KAFKA_TOPIC = 'ticks', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""
PRICES = [5, 3, 2, 4, 6, 6, 1]
DOWN, UP = "down AS price < PREV(price)", "up AS price > PREV(price)"
BOTH = f"{DOWN}, {UP}"
MEASURES = "MATCH_NUMBER() AS m, CLASSIFIER() AS c, COUNT(*) AS n"


@pytest.fixture(scope="module")
def ticks() -> Iterator[SqlDriver]:
    with SqlDriver(TICKS) as driver:
        for second, price in enumerate(PRICES):
            driver.send("ticks", {"price": price}, key="x", timestamp=second * 1_000)
        yield driver


def query(
    pattern: str,
    define: str = "",
    measures: str = MEASURES,
    rows: str = "ONE ROW PER MATCH",
    skip: str = "PAST LAST ROW",
    then: str = "",
) -> str:
    defined = f"DEFINE {define}" if define else ""
    return (
        f"SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ROWTIME MEASURES {measures} {rows} "
        f"AFTER MATCH SKIP {skip} PATTERN ({pattern}) {then} {defined})"
    )


def found(driver: SqlDriver, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:] for row in driver.query(f"{sql};")]


ALL, OMIT = "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
SHOW, UNMATCHED = "ALL ROWS PER MATCH SHOW EMPTY MATCHES", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
FORMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "one row": (
        query("start down+ up+", BOTH, "start.price AS a, LAST(down.price) AS b, LAST(up.price) AS c"),
        [(5, 2, 6)],
    ),
    "all rows": (
        query("start down+ up+", BOTH, rows=ALL),
        [(1, "START", 1, 5), (1, "DOWN", 2, 3), (1, "DOWN", 3, 2), (1, "UP", 4, 4), (1, "UP", 5, 6)],
    ),
    "show empty": (
        query("down*", DOWN, rows=SHOW),
        [
            (1, None, 0, 5),
            (2, "DOWN", 1, 3),
            (2, "DOWN", 2, 2),
            (3, None, 0, 4),
            (4, None, 0, 6),
            (5, None, 0, 6),
            (6, "DOWN", 1, 1),
        ],
    ),
    "omit empty": (query("down*", DOWN, rows=OMIT), [(2, "DOWN", 1, 3), (2, "DOWN", 2, 2), (6, "DOWN", 1, 1)]),
    "unmatched rows": (
        query("down+", DOWN, "CLASSIFIER() AS c", rows=UNMATCHED),
        [(None, 5), ("DOWN", 3), ("DOWN", 2), (None, 4), (None, 6), (None, 6), ("DOWN", 1)],
    ),
    "exclusion": (query("start {- down+ -} up", BOTH, rows=ALL), [(1, "START", 1, 5), (1, "UP", 4, 4)]),
    "start of the partition": (query("^ start down", DOWN), [(1, "DOWN", 2)]),
    "end of the partition": (query("start down $", DOWN, "start.price AS a"), [(6,)]),
    "permutation": (query("PERMUTE(up, down)", BOTH), [(1, "UP", 2)]),
    "alternatives": (query("(up | down){2}", BOTH), [(1, "DOWN", 2), (2, "UP", 2)]),
    "reluctant": (query("any+? up", UP, "COUNT(any.*) AS n"), [(3,)]),
    "an empty repetition is none": (query("(down*? (up up)*)? any", BOTH, "COUNT(*) AS n"), [(1,), (2,), (3,), (1,)]),
    "bounds": (query("a{,2} b{2} c{1,}", "a AS price > 100"), [(1, "C", 7)]),
    "subset": (
        query("start down+ up+", BOTH, "SUM(s.price) AS a, LAST(s.price) AS l", then="SUBSET s = (start, down)"),
        [(10, 2)],
    ),
    "running and final": (
        query("start down+ up", BOTH, "SUM(price) AS r, FINAL SUM(price) AS f, FIRST(price, 1) AS s", rows=ALL),
        [(5, 14, None, 5), (8, 14, 3, 3), (10, 14, 3, 2), (14, 14, 3, 4)],
    ),
    "previous and next": (
        query("start down+ up", BOTH, "PREV(LAST(down.price), 1) AS p, NEXT(FIRST(down.price)) AS n"),
        [(3, 2)],
    ),
    "aggregates in conditions": (
        query("a+ b", "a AS SUM(a.price) < 9, b AS b.price > MIN(a.price)", "COUNT(a.*) AS n, b.price AS b"),
        [(2, 4)],
    ),
    "skip to the next row": (query("start down", DOWN, "start.price AS a", skip="TO NEXT ROW"), [(5,), (3,), (6,)]),
    "skip to the first": (
        query("a b+ c", "b AS price < 5", skip="TO FIRST b"),
        [(1, "C", 5), (2, "C", 4), (3, "C", 3)],
    ),
    "skip to the last": (query("a b c", "b AS price < 5", "a.price AS a", skip="TO LAST c"), [(5,), (2,)]),
    "skip to a variable": (query("a b c", "b AS price < 5", "a.price AS a", skip="TO b"), [(5,), (3,), (2,)]),
    "within": (
        query("start down+", DOWN, "COUNT(*) AS n", then="WITHIN INTERVAL '2' SECOND"),
        [(2,), (2,)],
    ),
}


@pytest.mark.parametrize(("sql", "expected"), FORMS.values(), ids=FORMS)
def test_a_form_returns_the_rows_of_the_standard(ticks: SqlDriver, sql: str, expected: list[Any]) -> None:
    assert found(ticks, sql) == expected


REFUSED: list[tuple[str, str]] = [
    (query("a b", "c AS price > 1"), "DEFINE names C, which the pattern does not have"),
    (query("a", "a AS price > 1, a AS price > 2"), "A is defined twice"),
    (query("a", "a AS prise > 1"), "there is no column PRISE"),
    (query("a", "a AS price"), "PRICE is BIGINT, but BOOLEAN is expected"),
    (query("a", "a AS PREV(PREV(price)) > 1"), "PREV is not allowed here"),
    (query("a", "a AS FINAL LAST(a.price) > 1"), "FINAL is not allowed in DEFINE"),
    (query("a", "a AS FALSE"), "the pattern cannot match"),
    (query("a b", "b AS 2 < 1 OR NULL"), "the pattern cannot match"),
    (query("a{3,2}"), "this number of times cannot match"),
    (query("a++"), "a quantifier cannot follow another"),
    (query("(a b"), "DEFINE|expected|a variable"),
    (query("a b", skip="TO FIRST a"), "A is the first row of a match"),
    (query("a b", skip="TO c"), "C"),
    (query("{- a -} b", rows=UNMATCHED), "an exclusion cannot be combined with WITH UNMATCHED ROWS"),
    (query("a", "a AS UNIX_TIMESTAMP() > 1"), "is not allowed in MATCH_RECOGNIZE"),
    (query("a").replace(" ORDER BY ROWTIME", ""), "MATCH_RECOGNIZE needs an order"),
    (query("a").replace("ORDER BY ROWTIME", "ORDER BY price"), "must begin with its event time, ascending"),
    (query("a").replace("PARTITION BY symbol", "PARTITION BY UCASE(symbol)"), "is not a column"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_what_is_refused_says_why_where_and_what_to_write(ticks: SqlDriver, sql: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        ticks.query(f"{sql};")
    assert "line 1, column" in str(caught.value) and "hint: " in str(caught.value)


def test_the_end_of_a_stream_is_not_a_position(ticks: SqlDriver) -> None:
    with pytest.raises(SqlError, match=r"\$ is only for queries that end"):
        ticks.execute(f"CREATE STREAM ends AS {query('start down $', DOWN)} EMIT CHANGES;")


def test_a_stream_shows_what_had_matched_when_its_time_was_over() -> None:
    rows = "ONE ROW PER MATCH SHOW TIMEOUT MATCHES"
    sql = query("a b", "b AS price > 5", "a.price AS a, b.price AS b", rows, then="WITHIN INTERVAL '2' SECOND")
    with SqlDriver(TICKS) as driver:
        driver.execute(f"CREATE STREAM pairs AS {sql} EMIT CHANGES;")
        for second, price in ((0, 1), (1, 9), (5, 2), (60, 3)):
            driver.send("ticks", {"price": price}, key="x", timestamp=second * 1_000)
        driver.run()
        assert [(row.columns["A"], row.columns["B"]) for row in driver.rows("pairs")] == [(1, 9), (2, None)]


@potok.function(name="match_recognize_half")
def half(x: int) -> int:
    return x // 2


def test_functions_of_the_user_are_conditions_and_measures(ticks: SqlDriver) -> None:
    define = "b AS match_recognize_half(b.price) = match_recognize_half(a.price)"
    assert found(ticks, query("a b", define, "match_recognize_half(b.price) AS h")) == [(1,), (3,)]
