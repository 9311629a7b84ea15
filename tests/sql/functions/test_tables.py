"""Table functions: the rows that they make of arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from potok.sql.functions.function import Context
from potok.sql.functions.tables import FUNCTIONS, MOST_CUBE_COLUMNS
from potok.sql.types import INT, NULL, VARCHAR

BY_NAME = {function.name: function for function in FUNCTIONS}


def rows_for(name: str, values: list[Any], item: pa.DataType, context: Context | None = None) -> pa.Array:
    (overload,) = BY_NAME[name].overloads
    accepted = overload.accept([pa.list_(item)])
    assert accepted is not None
    column = pa.array(values, pa.list_(item))
    found = overload.compute([column], len(values), accepted.result, context or Context())
    assert found.type == accepted.result
    return found


def test_an_array_becomes_a_row_for_each_item() -> None:
    found = rows_for("EXPLODE", [[1, None, 2], [], None, [3]], INT)
    assert found.to_pylist() == [[1, None, 2], [], [], [3]]


def test_a_cube_has_a_row_for_each_choice_of_columns() -> None:
    found = rows_for("CUBE_EXPLODE", [["a", "b"]], VARCHAR)
    assert found.to_pylist() == [[[None, None], [None, "b"], ["a", None], ["a", "b"]]]


def test_a_column_that_is_null_is_not_chosen_twice() -> None:
    found = rows_for("CUBE_EXPLODE", [["a", None], [None], [], None], VARCHAR)
    assert found.to_pylist() == [[[None, None], ["a", None]], [[None]], [[]], []]


def test_a_cube_of_too_many_columns_has_no_rows_and_is_noted() -> None:
    context = Context()
    found = rows_for("CUBE_EXPLODE", [[1], [1] * (MOST_CUBE_COLUMNS + 1)], INT, context)
    assert found.to_pylist() == [[[None], [1]], []]
    assert list(context.failures) == [1]


@pytest.mark.parametrize("name", ["EXPLODE", "CUBE_EXPLODE"])
@pytest.mark.parametrize("types", [[INT], [NULL], [], [pa.list_(INT), pa.list_(INT)]])
def test_only_one_array_is_taken(name: str, types: list[pa.DataType]) -> None:
    assert all(overload.accept(types) is None for overload in BY_NAME[name].overloads)
