"""Calls: which overload, which casts, what lambdas see, what is refused."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from potok.sql.errors import Refused, SqlError, SqlTypeError, UnknownName
from potok.sql.expressions.check import check, check_table_function
from potok.sql.expressions.compute import compute
from potok.sql.expressions.nodes import FunctionCall
from potok.sql.expressions.typed import walk
from potok.sql.functions import registry
from potok.sql.functions.function import Context, Overload, ScalarFunction, each_row, takes
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.types import BIGINT, DOUBLE, INT, VARCHAR, decimal
from sql.columns import Columns, answer, type_of

NULL = {"null": True}


def overload(*parameters: pa.DataType, label: str) -> Overload:
    return Overload(f"PICK({label})", takes(*parameters, result=VARCHAR), each_row(lambda *_: label, nulls=True))


@pytest.fixture
def pick(monkeypatch: pytest.MonkeyPatch) -> ScalarFunction:
    """A function that says which of its overloads was called."""
    overloads = (
        overload(DOUBLE, label="double"),
        overload(BIGINT, label="bigint"),
        overload(VARCHAR, label="text"),
        overload(decimal(20, 2), label="decimal"),
    )
    function = ScalarFunction("PICK", "test", "Says which.", overloads)
    monkeypatch.setitem(registry._users, "PICK", function)
    return function


@pytest.mark.usefixtures("pick")
@pytest.mark.parametrize(
    ("sql", "label"),
    [
        ("PICK(1e0)", "double"),
        ("PICK(3000000000)", "bigint"),
        ("PICK('x')", "text"),
        ("PICK(1)", "bigint"),
        ("PICK(1.5)", "decimal"),
        ("PICK(NULL)", "double"),
    ],
)
def test_the_overload_that_needs_the_least_casting_is_called(sql: str, label: str) -> None:
    assert answer(sql).values == [label]


@pytest.mark.usefixtures("pick")
def test_arguments_that_no_overload_takes_are_refused_with_all_signatures() -> None:
    with pytest.raises(SqlTypeError) as caught:
        answer("1 = 1 AND PICK(TRUE, 1) = 'x'")
    text = str(caught.value)
    assert "PICK does not take (BOOLEAN, INTEGER)" in text
    assert "it can be called as PICK(double); PICK(bigint); PICK(text); PICK(decimal)" in text
    assert caught.value.location is not None
    assert caught.value.location.column == 11


def test_an_argument_is_cast_to_what_the_overload_takes(pick: ScalarFunction) -> None:
    call = check(parse_expression("PICK(a)"), Columns({"A": INT}))
    assert str(call) == "PICK(CAST(A AS BIGINT))"
    assert isinstance(call, FunctionCall)
    assert call.overload is pick.overloads[1]


def test_a_function_that_comes_with_sql_is_found_again_by_name() -> None:
    call = check(parse_expression("ABS(a)"), Columns({"A": INT}))
    assert isinstance(call, FunctionCall)
    assert call.overload is None
    again = pickle.loads(pickle.dumps(call))
    assert compute(again, {"A": pa.array([-1, None], INT)}, 2, Context()).to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SUBSTRIN('x', 1)", UnknownName, "did you mean SUBSTRING?"),
        ("NO_SUCH_THING_AT_ALL(1)", UnknownName, "LIST FUNCTIONS shows all functions"),
        ("SUM(1)", Refused, "the aggregate SUM is not allowed here"),
        ("1 + COUNT(*)", Refused, "the aggregate COUNT is not allowed here"),
        ("EXPLODE(ARRAY[1])", Refused, "the table function EXPLODE is not allowed here"),
        ("ABS(*)", SqlError, ""),
        ("TRANSFORM(ARRAY[1], (x, y) => x)", SqlTypeError, "TRANSFORM does not take (ARRAY<INTEGER>, lambda)"),
        ("TRANSFORM(ARRAY[1], x => y)", UnknownName, "there is no column Y"),
        ("TRANSFORM(ARRAY[1], x => x + 'a')", SqlTypeError, "'+' does not take INTEGER and VARCHAR"),
        ("TRANSFORM(ARRAY[ARRAY[1]], x => TRANSFORM(x, x => x))", Refused, "the parameter X is declared twice"),
        ("FILTER(ARRAY[1], x => x + 1)", SqlTypeError, "FILTER does not take"),
        ("TIMESTAMPADD(HUORS, 1, CAST('2020' AS TIMESTAMP))", UnknownName, "did you mean HOURS?"),
        ("DATESUB(YEARS, 1, CAST('2020' AS DATE))", UnknownName, "there is no unit of time YEARS"),
        ("ABS(x => x)", SqlTypeError, "ABS does not take (lambda)"),
    ],
)
def test_a_call_that_cannot_be_is_refused(sql: str, kind: type[SqlError], message: str) -> None:
    with pytest.raises(kind) as caught:
        answer(sql)
    assert message in str(caught.value)
    assert caught.value.location is not None


def test_a_lambda_sees_the_columns_of_its_record() -> None:
    rows = [("A", "ARRAY<INT>", [[1, 2], [], NULL, [3]]), ("B", "INT", [10, 20, 30, 40])]
    assert answer("TRANSFORM(a, x => x + b)", rows).values == [[11, 12], [], None, [43]]


def test_a_lambda_inside_of_a_lambda_sees_the_parameters_and_columns_around() -> None:
    rows = [("A", "ARRAY<ARRAY<INT>>", [[[1, 2], [3]], [[4]]]), ("B", "INT", [10, 20])]
    found = answer("TRANSFORM(a, x => TRANSFORM(x, y => y * b + x[1]))", rows)
    assert found.values == [[[11, 21], [33]], [[84]]]


def test_a_case_inside_of_a_lambda_is_computed_for_the_elements_that_reach_it() -> None:
    rows = [("A", "ARRAY<INT>", [[0, 5], [2]]), ("B", "INT", [10, 20])]
    found = answer("TRANSFORM(a, x => CASE WHEN x = 0 THEN 0 ELSE b / x END)", rows)
    assert found.values == [[0, 2], [10]]
    assert found.failures == {}


def test_where_a_lambda_fails_for_an_element_the_result_of_its_record_is_null() -> None:
    rows = [("A", "ARRAY<INT>", [[1], [2, 0], [0]])]
    found = answer("TRANSFORM(a, x => 10 / x)", rows)
    assert found.values == [[10], None, None]
    assert sorted(found.failures) == [1, 2]


def test_a_parameter_hides_a_column_of_its_name() -> None:
    rows = [("X", "INT", [100]), ("A", "ARRAY<INT>", [[1]])]
    assert answer("TRANSFORM(a, x => x + 1)[1] + x", rows).values == [102]


def test_the_body_of_a_lambda_is_cast_to_what_is_asked_for() -> None:
    found = answer("REDUCE(a, CAST(0 AS BIGINT), (s, x) => x)", [("A", "ARRAY<INT>", [[1, 2], []])])
    assert found.type == BIGINT
    assert found.values == [2, 0]


def test_parameters_are_not_columns() -> None:
    call = check(parse_expression("TRANSFORM(a, x => x + b)"), Columns({"A": type_of("ARRAY<INT>"), "B": INT}))
    assert str(call) == "TRANSFORM(A, X => (X + B))"
    assert {str(part) for part in walk(call)} >= {"A", "B", "X"}


def test_a_unit_of_time_is_a_bare_word() -> None:
    rows = [("AT", "TIMESTAMP", ["2020-01-01T00:00:00", NULL])]
    found = answer("CAST(TIMESTAMPADD(HOURS, 2, at) AS VARCHAR)", rows)
    assert found.values == ["2020-01-01T02:00:00.000", None]


def test_a_unit_of_time_elsewhere_is_a_column() -> None:
    with pytest.raises(UnknownName, match="there is no column HOURS"):
        answer("ABS(HOURS)")


def test_a_table_function_computes_arrays_where_one_may_stand() -> None:
    call = parse_expression("EXPLODE(a)")
    assert isinstance(call, ast.Call)
    found = check_table_function(call, Columns({"A": type_of("ARRAY<INT>")}))
    columns = {"A": pa.array([[1, 2], None], type_of("ARRAY<INT>"))}
    assert compute(found, columns, 2, Context()).to_pylist() == [[1, 2], []]


def test_a_scalar_function_is_not_a_table_function() -> None:
    call = parse_expression("ABS(1)")
    assert isinstance(call, ast.Call)
    with pytest.raises(SqlTypeError, match="ABS is not a table function"):
        check_table_function(call, Columns({}))
