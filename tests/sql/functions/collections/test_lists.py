"""Functions of arrays and maps do not depend on how a column lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.sql.functions import tables
from potok.sql.functions.collections import array, lambdas, map
from potok.sql.functions.collections.lists import flat, spans
from potok.sql.functions.function import Context, LambdaShape, Overload
from potok.sql.types import BIGINT, BOOLEAN, INT, VARCHAR

ITEMS, ENTRIES = pa.list_(INT), pa.map_(VARCHAR, INT)
FUNCTIONS = {f.name: f for family in (array, map, lambdas, tables) for f in family.FUNCTIONS}


def hiding(values: list[Any], type_: pa.DataType) -> pa.Array:
    """A column whose NULLs have items behind them, as a filter or a cast may leave them."""
    whole = pa.array([[] if value is None else value for value in values], type_)
    full = pa.array([value if value is not None else [7, 8] for value in values], type_)
    missing = np.array([value is None for value in values], np.bool_)
    made = pa.Array.from_buffers(
        type_, len(values), [pa.array(~missing).buffers()[1], full.buffers()[1]], children=[full.values]
    )
    assert len(made) == len(whole)
    return made


def test_the_items_of_a_slice_are_its_own() -> None:
    column = pa.array([[1, 2], None, [3], [], [4, 5]], ITEMS).slice(1, 3)
    found = flat(column)
    assert found.parts[0].to_pylist() == [3]
    assert found.lengths.tolist() == [0, 1, 0]
    assert found.rows.tolist() == [1]
    assert found.valid.tolist() == [False, True, True]


def test_the_entries_of_a_slice_are_its_own() -> None:
    column = pa.array([[("a", 1)], None, [("b", 2), ("c", 3)]], ENTRIES).slice(1)
    found = flat(column)
    assert [part.to_pylist() for part in found.parts] == [["b", "c"], [2, 3]]
    assert found.starts.tolist() == [0, 0]


def test_what_lies_behind_a_null_is_not_seen() -> None:
    found = flat(hiding([[1], None, [2, 3]], ITEMS))
    assert found.parts[0].to_pylist() == [1, 2, 3]
    assert found.lengths.tolist() == [1, 0, 2]


def test_spans_are_stretches_of_indices() -> None:
    assert spans(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


CALLS: list[tuple[str, int, list[pa.DataType]]] = [
    ("ARRAY_CONCAT", 0, [ITEMS, ITEMS]),
    ("ARRAY_CONTAINS", 0, [ITEMS, INT]),
    ("ARRAY_DISTINCT", 0, [ITEMS]),
    ("ARRAY_EXCEPT", 0, [ITEMS, ITEMS]),
    ("ARRAY_INTERSECT", 0, [ITEMS, ITEMS]),
    ("ARRAY_JOIN", 0, [pa.list_(VARCHAR), VARCHAR]),
    ("ARRAY_LENGTH", 0, [ITEMS]),
    ("ARRAY_MAX", 0, [ITEMS]),
    ("ARRAY_MIN", 0, [ITEMS]),
    ("ARRAY_REMOVE", 0, [ITEMS, INT]),
    ("ARRAY_SORT", 0, [ITEMS]),
    ("ARRAY_UNION", 0, [ITEMS, ITEMS]),
    ("GENERATE_SERIES", 0, [INT, INT]),
    ("SLICE", 0, [ITEMS, INT, INT]),
    ("AS_MAP", 0, [pa.list_(VARCHAR), ITEMS]),
    ("ENTRIES", 0, [ENTRIES, BOOLEAN]),
    ("MAP_KEYS", 0, [ENTRIES]),
    ("MAP_UNION", 0, [ENTRIES, ENTRIES]),
    ("MAP_VALUES", 0, [ENTRIES]),
    ("EXPLODE", 0, [ITEMS]),
    ("CUBE_EXPLODE", 0, [ITEMS]),
]

SMALL = st.integers(-2, 4)
WORDS = st.sampled_from(["a", "b", "c"])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    INT: SMALL,
    VARCHAR: WORDS,
    BOOLEAN: st.booleans(),
    ITEMS: st.lists(st.none() | SMALL, max_size=4),
    pa.list_(VARCHAR): st.lists(st.none() | WORDS, max_size=4),
    ENTRIES: st.dictionaries(WORDS, st.none() | SMALL, max_size=3).map(lambda d: list(d.items())),
}


def rows_of_types(types: Sequence[pa.DataType]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(*[st.none() | VALUES[type_] for type_ in types]), max_size=8)


def run(
    overload: Overload, columns: list[pa.Array], rows: int, more: Sequence[Any] = ()
) -> tuple[list[Any], list[int]]:
    shapes = [LambdaShape(parameters, body) for parameters, body, _ in more]
    accepted = overload.accept([*[column.type for column in columns], *shapes])
    assert accepted is not None
    context = Context()
    found = overload.compute([*columns, *[call for _, _, call in more]], rows, accepted.result, context)
    assert found.type == accepted.result
    assert len(found) == rows
    found.validate(full=True)
    return found.to_pylist(), sorted(context.failures)


@settings(max_examples=25)
@given(st.data(), st.integers(0, 8))
@pytest.mark.parametrize(("name", "number", "types"), CALLS, ids=[call[0] for call in CALLS])
def test_a_column_in_two_pieces_returns_the_same(
    name: str, number: int, types: list[pa.DataType], data: Any, cut: int
) -> None:
    rows = data.draw(rows_of_types(types))
    overload = FUNCTIONS[name].overloads[number]
    columns = [pa.array([row[index] for row in rows], type_) for index, type_ in enumerate(types)]
    values, failures = run(overload, columns, len(rows))
    cut = min(cut, len(rows))
    left, left_failures = run(overload, [column.slice(0, cut) for column in columns], cut)
    right, right_failures = run(overload, [column.slice(cut) for column in columns], len(rows) - cut)
    assert left + right == values
    assert left_failures + [row + cut for row in right_failures] == failures


def reduced(parameters: Sequence[pa.Array], rows: pa.Array) -> pa.Array:
    """Each state, ten times as much and the item: distinguishes every order of the items."""
    assert len(rows) == len(parameters[0]) == len(parameters[1])
    state, item = (parameter.to_pylist() for parameter in parameters)
    return pa.array([s * 10 + (0 if x is None else x) for s, x in zip(state, item, strict=True)], BIGINT)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.none() | st.lists(st.none() | SMALL, max_size=5), st.none() | SMALL), max_size=8))
def test_reduce_processes_the_items_of_each_row_in_order(
    rows: list[tuple[list[int | None] | None, int | None]],
) -> None:
    columns = [pa.array([row[0] for row in rows], ITEMS), pa.array([row[1] for row in rows], BIGINT)]
    values, _ = run(FUNCTIONS["REDUCE"].overloads[0], columns, len(rows), [(2, BIGINT, reduced)])
    wanted = []
    for items, state in rows:
        for item in (items or []) if state is not None else []:
            state = state * 10 + (0 if item is None else item)  # type: ignore[operator]
        wanted.append(state)
    assert values == wanted
