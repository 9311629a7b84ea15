"""INSERT INTO ... VALUES, and rows in bulk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from potok.sql.errors import Refused, SqlError, SqlTypeError, UnknownName
from potok.statements.records.inserts import insert_rows
from statements.playing import Play

SOURCES = """
CREATE STREAM s (k INT KEY, a VARCHAR, b DOUBLE, at TIMESTAMP, m MAP<VARCHAR, INT>) WITH (KAFKA_TOPIC = 's');
CREATE STREAM two (k INT KEY, l VARCHAR KEY, a VARCHAR) WITH (KAFKA_TOPIC = 'two', FORMAT = 'JSON');
CREATE STREAM keyless (a VARCHAR, h BYTES HEADER('h')) WITH (KAFKA_TOPIC = 'keyless');
CREATE TABLE t (id VARCHAR PRIMARY KEY, a VARCHAR, b INT) WITH (KAFKA_TOPIC = 't');
CREATE SOURCE STREAM readonly (a VARCHAR) WITH (KAFKA_TOPIC = 's');
CREATE STREAM windowed (k INT KEY, a VARCHAR)
  WITH (KAFKA_TOPIC = 'w', WINDOW_TYPE = 'TUMBLING', WINDOW_SIZE = '1 HOUR');
CREATE TABLE made AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;
"""


@pytest.fixture
def sources(play: Play) -> Play:
    play.do(SOURCES)
    return play


def records(play: Play, topic: str) -> list[tuple[Any, Any, int]]:
    found = []
    for partition, end in sorted(play.broker.end_offsets(topic).items()):
        for batch in play.broker.read(topic, partition, 0, end):
            rows = zip(*(batch.column(name).to_pylist() for name in ("key", "value", "timestamp")), strict=True)
            found += [(key, None if value is None else json.loads(value), at) for key, value, at in rows]
    return found


def test_a_row_is_durable_when_the_statement_returns(sources: Play) -> None:
    sources.do("INSERT INTO s (ROWTIME, k, a, b, m) VALUES (5, 1, 'x', 2, MAP('p' := 3));")
    value = {"A": "x", "B": 2.0, "AT": None, "M": {"p": 3}}
    assert records(sources, "s") == [(b"\0\0\0\1", value, 5)]


def test_columns_may_be_left_out_and_all_may_be_meant(sources: Play) -> None:
    sources.do("INSERT INTO s VALUES (1, 'x', 2.5, '2020-01-01T00:00:00', NULL);")
    sources.do("INSERT INTO s (a) VALUES (UCASE('y' + 'z'));")
    found = records(sources, "s")
    assert found[0][1] == {"A": "x", "B": 2.5, "AT": 1577836800000, "M": None}
    assert found[1][:2] == (None, {"A": "YZ", "B": None, "AT": None, "M": None})
    assert all(at > 1_600_000_000_000 for _, _, at in found)


def test_positional_values_start_with_the_key(play: Play) -> None:
    play.do("CREATE STREAM late (v INT, k VARCHAR KEY) WITH (KAFKA_TOPIC = 'late', VALUE_FORMAT = 'JSON');")
    play.do("INSERT INTO late (ROWTIME, v, k) VALUES (5, 1, 'a');")
    play.do("INSERT INTO late VALUES ('b', 2);")
    assert [record[:2] for record in records(play, "late")] == [(b"a", {"V": 1}), (b"b", {"V": 2})]


def test_several_key_columns_make_one_key(sources: Play) -> None:
    sources.do("INSERT INTO two VALUES (1, 'l', 'x');")
    sources.do("INSERT INTO two (a) VALUES ('y');")
    found = records(sources, "two")
    assert [json.loads(key) if key else None for key, _, _ in found] == [{"K": 1, "L": "l"}, None]


def test_headers_are_not_columns_to_insert(sources: Play) -> None:
    sources.do("INSERT INTO keyless VALUES ('x');")
    assert records(sources, "keyless")[0][:2] == (None, {"A": "x"})
    with pytest.raises(Refused, match="is a HEADERS column"):
        sources.do("INSERT INTO keyless (a, h) VALUES ('x', NULL);")


def test_a_key_alone_deletes_the_row_of_a_table(sources: Play) -> None:
    sources.do("INSERT INTO t (id) VALUES ('x'); INSERT INTO t (id, a) VALUES ('x', NULL);")
    assert [row[:2] for row in records(sources, "t")] == [(b"x", None), (b"x", {"A": None, "B": None})]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("INSERT INTO s (k, z) VALUES (1, 2);", UnknownName, "S has no column Z"),
        ("INSERT INTO s (k, a) VALUES (1);", SqlError, "2 columns, but 1 value"),
        ("INSERT INTO s VALUES (1, 'x');", Refused, "5 columns and 2 values"),
        ("INSERT INTO s (k, k) VALUES (1, 2);", Refused, "is listed twice"),
        ("INSERT INTO s (k) VALUES ('x');", SqlTypeError, "INTEGER"),
        ("INSERT INTO s (a) VALUES (b);", Refused, "VALUES cannot refer to a column"),
        ("INSERT INTO s (ROWPARTITION, a) VALUES (0, 'x');", UnknownName, "ROWPARTITION"),
        ("INSERT INTO nowhere VALUES (1);", UnknownName, "there is no stream or table"),
        ("INSERT INTO t (a) VALUES ('x');", Refused, "needs its primary key ID"),
        ("INSERT INTO t (id, a) VALUES (NULL, 'x');", Refused, "needs its primary key ID"),
        ("INSERT INTO readonly VALUES ('x');", Refused, "is read-only"),
        ("INSERT INTO windowed (k, a) VALUES (1, 'x');", Refused, "is windowed"),
        ("INSERT INTO made (a, n) VALUES ('x', 1);", Refused, "is written by query CTAS_MADE"),
    ],
)
def test_invalid_inserts_are_refused_with_a_message(
    sources: Play, text: str, error: type[SqlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        sources.do(text)
    assert records(sources, "s") == records(sources, "t") == []


def test_rows_in_bulk_report_which_were_invalid(sources: Play) -> None:
    source = sources.database.catalog.source("S")
    rows: list[dict[str, Any]] = [
        {"K": 1, "a": "x", "B": 1.5},
        {"k": "no number", "a": "y"},
        {"k": 2, "nothing": 1},
        {"`K`": 3, "ROWTIME": 7, "at": 1_000},
    ]
    errors = insert_rows(sources.database, source, rows)
    assert list(errors) == [1, 2]
    assert "there is no column" in errors[2]
    found = records(sources, "s")
    assert [(key, value["A"]) for key, value, _ in found] == [(b"\0\0\0\1", "x"), (b"\0\0\0\3", None)]
    assert found[1][2] == 7
    assert found[1][1]["AT"] == 1_000


def test_rows_in_bulk_delete_rows_of_a_table(sources: Play) -> None:
    source = sources.database.catalog.source("T")
    errors = insert_rows(sources.database, source, [{"id": "x", "a": "y"}, {"id": "x"}, {"a": "z"}])
    assert errors == {2: "a row of a table needs its primary key ID"}
    assert [row[1] for row in records(sources, "t")] == [{"A": "y", "B": None}, None]
