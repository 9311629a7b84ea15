"""Scripts, single statements and expressions; places, texts and limits."""

from __future__ import annotations

import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from potok.sql.errors import SourceLocation, SqlError, SqlSyntaxError
from potok.sql.syntax import ast
from potok.sql.syntax.parse import is_complete, parse_expression, parse_script
from sql.syntax.one_statement import parse_statement

AT = SourceLocation(1, 1)


def test_a_script_of_orders_parses_from_first_to_last_statement() -> None:
    script = (Path(__file__).parent / "cases" / "orders.sql").read_text()
    kinds = [type(parsed.statement) for parsed in parse_script(script)]
    assert kinds == [ast.CreateSource, *[ast.CreateAs] * 4, ast.Query, ast.Query]


def test_statements_know_their_lines_in_the_script() -> None:
    script = "-- first\nSHOW TABLES;\n\n  SHOW STREAMS; ;\n/* last */ DROP STREAM\n s;"
    assert [parsed.at for parsed in parse_script(script)] == [
        SourceLocation(2, 1, 11),
        SourceLocation(4, 3, 12),
        SourceLocation(5, 12, 11),
    ]


def test_the_text_of_a_statement_ends_with_a_semicolon_and_keeps_its_comments() -> None:
    script = "SHOW TABLES ; -- between\nDROP /* really */ STREAM s\n;"
    assert [parsed.text for parsed in parse_script(script)] == ["SHOW TABLES;", "DROP /* really */ STREAM s;"]


def test_an_empty_script_has_no_statements() -> None:
    assert parse_script(" -- nothing\n ;; ") == []


def test_numbers_are_whole_exact_or_floating() -> None:
    values = [parse_expression(text).value for text in ("5", "1.50", "1e3", "-7", "-.5", "-2e0")]  # type: ignore[union-attr]
    assert values == [5, Decimal("1.50"), 1000.0, -7, Decimal("-0.5"), -2.0]
    assert [type(value) for value in values] == [int, Decimal, float, int, Decimal, float]


def test_a_sign_before_a_name_is_an_operation() -> None:
    assert parse_expression("-a") == ast.Unary("-", ast.Name("A", at=AT), at=AT)


def test_and_binds_tighter_than_or() -> None:
    a, b, c = (ast.Name(name, at=AT) for name in "ABC")
    assert parse_expression("a OR b AND c") == ast.Binary("OR", a, ast.Binary("AND", b, c, at=AT), at=AT)


def test_each_part_of_an_expression_has_its_location() -> None:
    found = parse_expression("a +\n  f(b, 'x') * 2")
    assert isinstance(found, ast.Binary)
    assert found.at == SourceLocation(1, 1, 3)
    product = found.right
    assert isinstance(product, ast.Binary)
    assert product.at == SourceLocation(2, 3, 13)
    call = product.left
    assert isinstance(call, ast.Call)
    assert [part.at for part in call.arguments] == [SourceLocation(2, 5, 1), SourceLocation(2, 8, 3)]


def test_equal_statements_are_equal_wherever_they_stand() -> None:
    assert parse_statement("select a from t") == parse_statement("\n\n  SELECT   a\nFROM t;")


def test_headers_keep_the_case_of_their_names() -> None:
    statement = parse_statement("CREATE STREAM s (a BYTES HEADER('Trace-Id'), b ARRAY<INT> HEADERS)")
    assert isinstance(statement, ast.CreateSource)
    assert [(column.role, column.header) for column in statement.columns] == [("HEADER", "Trace-Id"), ("HEADERS", "")]


def test_durations_are_milliseconds() -> None:
    statement = parse_statement("SELECT a FROM t WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 500 MILLISECONDS) GROUP BY a")
    assert isinstance(statement, ast.Query)
    assert statement.query.window == ast.WindowClause("HOPPING", 3_600_000, 500, at=AT)


def test_an_error_shows_the_line_and_underlines_the_part() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_script("SHOW TABLES;\nSELECT a FORM t;")
    lines = str(caught.value).splitlines()
    assert lines[1:3] == ["  SELECT a FORM t;", "                ^"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 500 + "a" + ")" * 500,
        "a" + "[a" * 500,
        "f(" * 500,
        "NOT " * 500 + "a",
        "-" + " -" * 500 + "a",
        " + ".join(["a"] * 500),
        " OR ".join(["a = 1"] * 500),
        "CAST(a AS " + "ARRAY<" * 500,
        "CAST(a AS INT" + " ARRAY" * 500 + ")",
        "a" + "->b" * 500,
        "CASE WHEN " * 500,
    ],
    ids=lambda text: text[:10],
)
def test_what_is_too_deep_to_compute_is_refused_and_not_a_crash(text: str) -> None:
    with pytest.raises(SqlError):
        parse_expression(text)


def test_what_is_deep_but_not_too_deep_parses() -> None:
    assert parse_expression("(" * 30 + "a" + ")" * 30) == ast.Name("A", at=AT)
    assert isinstance(parse_expression(" AND ".join(["a = 1"] * 190)), ast.Binary)
    assert isinstance(parse_expression(f"a IN ({', '.join(['1'] * 5000)})"), ast.In)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SHOW TABLES;", True),
        ("SHOW TABLES;  -- done", True),
        ("SHOW TABLES; SHOW", False),
        ("SHOW TABLES", False),
        ("", False),
        ("-- only;", False),
        ("/* open;", False),
        ("SELECT 'a;", False),
        ("SELECT 'a;';", True),
        ("SELECT `a;", False),
        ("SELECT ? FROM t;", True),
        ("SELECT 1abc;", True),
    ],
)
def test_a_text_is_complete_when_it_ends_with_a_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_the_package_loads_no_parser_until_it_is_asked_to_parse() -> None:
    code = "import sys, potok; sys.exit(any(name.startswith('potok.sql.syntax') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
