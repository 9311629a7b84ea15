"""Changes of tables as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import items
from potok.operators.aggregates.aggregates import change
from potok.operators.tables.changes import pick, same, scatter, settle


def changes(*rows: tuple[str, Any, Any]) -> Any:
    keys, before, after = (list(column) for column in zip(*rows, strict=True))
    times = np.arange(len(rows), dtype=np.int64)
    return change(pa.array(keys), after, before, times, times)


def test_the_changes_of_one_key_become_one_from_the_first_before_to_the_last_after() -> None:
    keys, chunk = settle([changes(("a", None, 1), ("b", 5, 6)), changes(("a", 1, 2), ("c", 1, None), ("a", 2, None))])
    assert keys == [b"a", b"b", b"c"]
    assert (items(chunk.before), items(chunk.value)) == ([None, 5, 1], [None, 6, None])
    assert chunk.timestamp.tolist() == [2, 1, 1]


def test_changes_of_different_keys_stay_as_they_are() -> None:
    one = changes(("b", None, 1), ("a", 1, 2))
    keys, chunk = settle([one])
    assert (keys, chunk) == ([b"b", b"a"], one)


@pytest.mark.parametrize("column", [[1, 2, 3], pa.array([1, 2, 3])], ids=["dynamic", "typed"])
def test_columns_are_picked_and_placed(column: Any) -> None:
    assert items(pick(column, np.array([2, 0]))) == [3, 1]
    assert items(scatter(column, np.array([0, 3, 4]), 5)) == [1, None, None, 2, 3]
    assert scatter(column, np.arange(3), 3) is column


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (None, None, True),
        (None, 0, False),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
        ([1], (1,), False),
    ],
)
def test_values_are_the_same_if_they_are_equal_and_of_one_type(left: Any, right: Any, expected: bool) -> None:
    assert same(left, right) is expected
