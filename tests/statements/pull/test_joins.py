"""Joins of pull queries, computed on columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.sql.analysis.joins import How, JoinAnalysis
from potok.sql.analysis.scope import Rows
from potok.sql.expressions.typed import ColumnRef
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.sql.types import BIGINT
from potok.statements.frames import Frame
from potok.statements.pull.joins import NOTHING, codes_of, join_frames

KEYS = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=12)


def joined(kind: ast.JoinKind, left: list[Any], right: list[Any]) -> list[tuple[int | None, int | None]]:
    """The rows of both sides that meet, by their numbers."""
    one = Frame({"L": pa.array(left, BIGINT), "I": pa.array(range(len(left)), BIGINT)}, len(left))
    other = Frame({"R": pa.array(right, BIGINT), "J": pa.array(range(len(right)), BIGINT)}, len(right))
    plan = JoinAnalysis(kind, How.SNAPSHOT, (ColumnRef(BIGINT, "L"),), (ColumnRef(BIGINT, "R"),), Rows(False, ()))
    found = join_frames(one, other, plan, Context())
    return list(zip(found.columns["I"].to_pylist(), found.columns["J"].to_pylist(), strict=True))


def nested_loops(kind: ast.JoinKind, left: list[Any], right: list[Any]) -> list[tuple[int | None, int | None]]:
    pairs: list[tuple[int | None, int | None]] = []
    for i, key in enumerate(left):
        partners = [j for j, other in enumerate(right) if key is not None and key == other]
        pairs += [(i, j) for j in partners]
        if not partners and kind in (ast.JoinKind.LEFT, ast.JoinKind.FULL):
            pairs.append((i, None))
    if kind in (ast.JoinKind.RIGHT, ast.JoinKind.FULL):
        met = {j for _, j in pairs}
        pairs += [(None, j) for j in range(len(right)) if j not in met]
    return pairs


@pytest.mark.parametrize("kind", list(ast.JoinKind))
@given(left=KEYS, right=KEYS)
def test_a_join_returns_the_rows_of_nested_loops_in_their_order(
    kind: ast.JoinKind, left: list[Any], right: list[Any]
) -> None:
    assert joined(kind, left, right) == nested_loops(kind, left, right)


def test_rows_have_one_code_where_all_columns_are_equal_and_none_where_one_is_null() -> None:
    codes = codes_of([pa.array(["a", "a", None, "a", "b"]), pa.array([1.0, -0.0, 1.0, 0.0, None])]).tolist()
    assert codes[1] == codes[3] != codes[0]
    assert (codes[2], codes[4]) == (NOTHING, NOTHING)
    assert set(codes) == {NOTHING, 0, 1}
