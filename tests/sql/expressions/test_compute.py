"""What holds for every expression, however its columns are cut."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.functions.function import Context
from potok.sql.syntax.parse import parse_expression
from sql.columns import Columns, type_of

TYPES = {
    name: type_of(text)
    for name, text in {
        "I": "INT",
        "J": "INT",
        "B": "BIGINT",
        "D": "DOUBLE",
        "M": "DECIMAL(6, 2)",
        "T": "VARCHAR",
        "C": "BOOLEAN",
        "A": "ARRAY<INT>",
        "P": "MAP<VARCHAR, INT>",
        "S": "STRUCT<X INT, Y ARRAY<VARCHAR>>",
    }.items()
}

EXPRESSIONS = (
    "I + J * 2 - B",
    "I / J",
    "B % I",
    "M * M + I",
    "M / 3",
    "D / I > 1",
    "I > 0 AND T = 'a' OR NOT C",
    "CASE WHEN I > 0 THEN B / J WHEN C THEN -1 ELSE I END",
    "CASE WHEN I > 0 THEN T ELSE 'none' END",
    "A[I]",
    "P['a'] + A[-1]",
    "P[T]",
    "S->Y[1]",
    "S->X IS DISTINCT FROM I",
    "ARRAY[I, J, NULL]",
    "MAP('x' := I, 'y' := J)",
    "MAP(T := I)",
    "STRUCT(F := A, G := T)",
    "CAST(A AS ARRAY<VARCHAR>)",
    "CAST(T AS INT)",
    "CAST(P AS VARCHAR)",
    "CAST(S AS STRUCT<Y ARRAY<VARCHAR>, X VARCHAR>)",
    "A = ARRAY[1, 2]",
    "T LIKE 'a%' OR T IN ('b', 'c')",
    "I BETWEEN J AND B",
    "CAST(M AS DECIMAL(3, 1))",
)

small = st.integers(-3, 3)
ROW = st.fixed_dictionaries(
    {
        "I": st.none() | small,
        "J": st.none() | small,
        "B": st.none() | st.integers(-(2**63), 2**63 - 1),
        "D": st.none() | st.floats(allow_nan=False),
        "M": st.none() | st.decimals(-9999, 9999, places=2),
        "T": st.none() | st.sampled_from(["a", "b", "12", "", "äb"]),
        "C": st.none() | st.booleans(),
        "A": st.none() | st.lists(st.none() | small, max_size=3),
        "P": st.none()
        | st.lists(st.tuples(st.sampled_from("abc"), st.none() | small), max_size=3, unique_by=lambda p: p[0]),
        "S": st.none()
        | st.fixed_dictionaries({"X": st.none() | small, "Y": st.none() | st.lists(st.sampled_from("xy"), max_size=2)}),
    }
)


def columns_of(rows: list[dict[str, Any]]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in rows], type_) for name, type_ in TYPES.items()}


@pytest.mark.parametrize("sql", EXPRESSIONS)
@settings(max_examples=25)
@given(rows=st.lists(ROW, max_size=8), data=st.data())
def test_an_expression_is_the_same_computed_at_once_or_in_pieces(
    sql: str, rows: list[Any], data: st.DataObject
) -> None:
    expression = check(parse_expression(sql), Columns(TYPES))
    columns = columns_of(rows)
    at_once = Context()
    whole = compute(expression, columns, len(rows), at_once)
    whole.validate(full=True)
    cut = data.draw(st.integers(0, len(rows)))
    values: list[Any] = []
    failures: dict[int, str] = {}
    for start, size in ((0, cut), (cut, len(rows) - cut)):
        context = Context()
        # Slices keep the buffers of the whole column, which a computation must not see past.
        piece = compute(expression, {n: c.slice(start, size) for n, c in columns.items()}, size, context)
        piece.validate(full=True)
        values += piece.to_pylist()
        failures |= {start + row: why for row, why in context.failures.items()}
    assert values == whole.to_pylist()
    assert failures == at_once.failures


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_an_expression_survives_pickling(sql: str) -> None:
    expression = check(parse_expression(sql), Columns(TYPES))
    data = pickle.dumps(expression)
    assert pickle.loads(data) == expression
    assert len(data) < 4000


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_an_expression_prints_as_sql_that_means_the_same(sql: str) -> None:
    expression = check(parse_expression(sql), Columns(TYPES))
    assert check(parse_expression(str(expression)), Columns(TYPES)) == expression


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_no_rows_return_no_values(sql: str) -> None:
    expression = check(parse_expression(sql), Columns(TYPES))
    found = compute(expression, columns_of([]), 0, Context())
    assert len(found) == 0
    assert found.type == expression.type


def test_a_literal_stays_a_scalar_until_the_end() -> None:
    expression = check(parse_expression("5"), Columns({}))
    assert compute(expression, {}, 3, Context()).to_pylist() == [5, 5, 5]
