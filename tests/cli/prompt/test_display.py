from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from potok.cli.prompt.display import Drawn, Objects
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, TIMESTAMP, VARCHAR, array, decimal, map_of, struct
from potok.statements.results import Done, Push, ResultColumn, Rows

EVERY = Rows(
    "query",
    (
        ResultColumn("K", VARCHAR, is_key=True),
        ResultColumn("N", BIGINT),
        ResultColumn("D", DOUBLE),
        ResultColumn("E", decimal(6, 2)),
        ResultColumn("B", BOOLEAN),
        ResultColumn("T", TIMESTAMP),
        ResultColumn("X", BYTES),
        ResultColumn("A", array(VARCHAR)),
        ResultColumn("M", map_of(VARCHAR, BIGINT)),
        ResultColumn("S", struct([("F", BIGINT)])),
    ),
    (
        (
            *("k", 1_000, 1.5, Decimal("2.50"), True, dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), b"hi"),
            *(["a", None], [("x", 1)], {"F": 2}),
        ),
        (None,) * 10,
    ),
)
INNER = Rows("queries", (ResultColumn("Query ID", VARCHAR),), (("Q_1",),))
DESCRIBED = Rows(
    "description",
    (ResultColumn("Field", VARCHAR),),
    (("ID",),),
    (("Name", "ORDERS"), ("Statement", "SELECT\n  1;"), ("Read by", INNER), ("Lag", "0")),
)


class Nothing(Push):
    columns = EVERY.columns[:2]
    query_id = "push_1"

    def next(self, timeout_s: float | None = None) -> None:
        return None

    def close(self) -> None: ...


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_values_of_every_type_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    Drawn().rows("", EVERY)
    reported = capsys.readouterr()
    lines = reported.out.splitlines()
    assert cells(lines[3]) == [
        *("k", "1000", "1.5", "2.50", "true", "2024-01-02T03:04:05.000", "aGk=", '["a",null]', '{"x":1}', '{"F":2}')
    ]
    assert cells(lines[4]) == ["NULL"] * 10
    assert reported.err == "2 rows\n"


def test_values_of_every_type_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    Objects().rows("SELECT 1;", EVERY)
    reported = json.loads(capsys.readouterr().out, parse_float=str)
    assert reported["statement"] == "SELECT 1;"
    assert reported["columns"][0] == {"name": "K", "type": "VARCHAR", "key": True}
    first, second = reported["rows"]
    assert (first["E"], first["A"], first["M"], first["S"]) == ("2.50", ["a", None], {"x": 1}, {"F": 2})
    assert set(second.values()) == {None}


def test_short_details_precede_the_table_and_long_ones_follow_it(capsys: pytest.CaptureFixture[str]) -> None:
    Drawn().rows("", DESCRIBED)
    lines = [line for line in capsys.readouterr().out.splitlines() if not set(line) <= set("┌┬┐├┼┤└┴┘─")]
    assert lines == [
        *("Name : ORDERS", "Lag  : 0", "│ Field │", "│ ID    │", "Statement", "  SELECT", "    1;"),
        *("Read by", "│ Query ID │", "│ Q_1      │"),
    ]


def test_details_are_part_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    Objects().rows("", DESCRIBED)
    details = json.loads(capsys.readouterr().out)["details"]
    assert details["Name"] == "ORDERS"
    assert details["Read by"]["rows"] == [{"Query ID": "Q_1"}]


def test_nothing_found_is_said_and_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    Drawn().rows("", Rows("query", EVERY.columns, ()))
    assert capsys.readouterr() == ("", "no rows\n")


def test_warnings_are_shown_in_both_formats(capsys: pytest.CaptureFixture[str]) -> None:
    done = Done("Done", warnings=("take care",))
    Drawn().done("", done)
    assert capsys.readouterr().err == "Done\nwarning: take care\n"
    Objects().done("", done)
    assert json.loads(capsys.readouterr().out)["warnings"] == ["take care"]


def test_a_push_query_sends_its_columns_first_and_then_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    rendered = Objects().push("SELECT", Nothing(), as_lines=False)
    rendered.add([("a", 1), ("b", 2)])
    rendered.end(interrupted=False)
    head, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert (head["query_id"], [column["name"] for column in head["columns"]]) == ("push_1", ["K", "N"])
    assert rows == [{"row": {"K": "a", "N": 1}}, {"row": {"K": "b", "N": 2}}]
