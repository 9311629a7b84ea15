"""Checking against a type that is asked for, and what no case file can say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from potok.sql.errors import Refused, SourceLocation, SqlTypeError
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.expressions.nodes import Constant
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.types import BIGINT, INT
from sql.columns import Columns, type_of

AT = SourceLocation(3, 7, 2)


def value_as(sql: str, to: str) -> Any:
    expression = check(parse_expression(sql), Columns({}), to=type_of(to))
    assert expression.type == type_of(to)
    return compute(expression, {}, 1, Context())[0].as_py()


@pytest.mark.parametrize(
    ("sql", "to", "value"),
    [
        ("5", "BIGINT", 5),
        ("5", "DOUBLE", 5.0),
        ("5", "DECIMAL(3, 2)", Decimal("5.00")),
        ("1.5", "DOUBLE", 1.5),
        ("1.50", "DECIMAL(2, 1)", Decimal("1.5")),
        ("'2020-01-02'", "DATE", date(2020, 1, 2)),
        ("'2020-01-02'", "TIMESTAMP", datetime(2020, 1, 2, tzinfo=UTC)),
        ("'aGk='", "BYTES", b"hi"),
        ("NULL", "ARRAY<INT>", None),
        ("ARRAY[]", "ARRAY<INT>", []),
        ("ARRAY[NULL, 1]", "ARRAY<BIGINT>", [None, 1]),
        ("ARRAY['2020-01-02']", "ARRAY<DATE>", [date(2020, 1, 2)]),
        ("ARRAY[NULL]", "ARRAY<VARCHAR>", [None]),
        ("MAP()", "MAP<VARCHAR, INT>", []),
        ("MAP('a' := NULL)", "MAP<VARCHAR, INT>", [("a", None)]),
        ("MAP('a' := 1)", "MAP<VARCHAR, DOUBLE>", [("a", 1.0)]),
        ("STRUCT(a := 1, b := NULL)", "STRUCT<A BIGINT, B VARCHAR>", {"A": 1, "B": None}),
        ("STRUCT(b := 'x')", "STRUCT<A INT, B VARCHAR>", {"A": None, "B": "x"}),
        ("CASE WHEN TRUE THEN NULL END", "INT", None),
    ],
)
def test_a_value_is_taken_as_the_type_that_is_asked_for(sql: str, to: str, value: Any) -> None:
    assert value_as(sql, to) == value


@pytest.mark.parametrize(
    ("sql", "to", "message"),
    [
        ("3000000000", "INT", "3000000000 is BIGINT, but INTEGER is expected"),
        ("1.5", "INT", "1.5 is DECIMAL(2, 1), but INTEGER is expected"),
        ("1.555", "DECIMAL(4, 2)", "1.555 is DECIMAL(4, 3), but DECIMAL(4, 2) is expected"),
        ("100", "DECIMAL(4, 2)", "100 is INTEGER, but DECIMAL(4, 2) is expected"),
        ("1e0", "DECIMAL(4, 2)", "is DOUBLE, but DECIMAL(4, 2) is expected"),
        ("'5'", "INT", "'5' is VARCHAR, but INTEGER is expected"),
        ("5", "VARCHAR", "5 is INTEGER, but VARCHAR is expected"),
        ("'soon'", "DATE", "'soon' is not a valid DATE"),
        ("TRUE", "INT", "TRUE is BOOLEAN, but INTEGER is expected"),
        ("ARRAY['x']", "ARRAY<INT>", "ARRAY['x'] is ARRAY<VARCHAR>, but ARRAY<INTEGER> is expected"),
        ("STRUCT(c := 1)", "STRUCT<A INT>", "is STRUCT<C INTEGER>, but STRUCT<A INTEGER> is expected"),
    ],
)
def test_a_value_of_another_type_is_refused(sql: str, to: str, message: str) -> None:
    with pytest.raises(SqlTypeError) as caught:
        check(parse_expression(sql), Columns({}), to=type_of(to))
    assert message in str(caught.value)
    assert caught.value.location is not None


def test_a_column_is_cast_where_a_wider_one_is_asked_for() -> None:
    found = check(parse_expression("a"), Columns({"A": INT}), to=BIGINT)
    assert str(found) == "CAST(A AS BIGINT)"


@pytest.mark.parametrize(("sql", "value"), [("1 + 2 * 3", 7), ("-(5)", -5), ("CAST('5' AS INT)", 5)])
def test_what_is_known_is_computed_once(sql: str, value: int) -> None:
    assert check(parse_expression(sql), Columns({})) == Constant(INT, value)


def test_an_expression_says_which_columns_it_looks_at() -> None:
    scope = Columns({"A": INT, "B": INT, "C": INT})
    assert columns_of(check(parse_expression("CASE WHEN a > 1 THEN b ELSE a END"), scope)) == {"A", "B"}


def test_the_scope_is_asked_first_what_a_call_means() -> None:
    class Aggregated(Columns):
        def call(self, call: ast.Call) -> Typed | None:
            return ColumnRef(BIGINT, "0", display=call.name)

    found = check(parse_expression("SUM(whatever) + 1"), Aggregated({}))
    assert columns_of(found) == {"0"}
    assert found.type == BIGINT


@pytest.mark.parametrize(
    ("node", "kind", "message"),
    [
        (ast.Lambda(("X",), ast.Name("X", at=AT), at=AT), Refused, "a lambda is not allowed here"),
        (ast.AnyRow(at=AT), Refused, r"\* is not allowed here"),
        (ast.ArrayOf((), at=AT), SqlTypeError, "an array without elements has no type"),
        (ast.MapOf((), at=AT), SqlTypeError, "a map without elements has no type"),
        (
            ast.StructOf((("A", ast.Literal(1, at=AT)), ("A", ast.Literal(2, at=AT))), at=AT),
            SqlTypeError,
            "the field A is given twice",
        ),
        (ast.Literal(Decimal("1." + "1" * 38), at=AT), SqlTypeError, "has too many digits"),
        (
            ast.Like(ast.Literal("x", at=AT), ast.Literal("x", at=AT), escape="ab", at=AT),
            SqlTypeError,
            "ESCAPE takes one character",
        ),
    ],
)
def test_what_the_parser_does_not_let_through_is_refused_all_the_same(
    node: ast.Expression, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        check(node, Columns({}))
    assert caught.value.location == AT  # type: ignore[attr-defined]
