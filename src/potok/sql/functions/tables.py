"""Table functions: each element of the array that they return becomes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.sql.budget import PER_ITEM, PER_OBJECT, reserve
from potok.sql.functions.collections.lists import flat, list_column
from potok.sql.functions.function import Context, Overload, TableFunction
from potok.sql.functions.generics import arrays

MOST_CUBE_COLUMNS: Final = 20
"""As in ksqlDB: 20 columns give a million rows."""


def _explode(arguments: Sequence[Any], rows: int, _: pa.DataType, __: Context) -> pa.Array:
    items = flat(arguments[0])
    # NULL has no rows, like an empty array.
    return list_column(items.parts[0], items.lengths, np.ones(rows, np.bool_))


def _cube(arguments: Sequence[Any], _: int, result: pa.DataType, context: Context) -> pa.Array:
    found: list[list[list[Any]]] = []
    for row, columns in enumerate(arguments[0].to_pylist()):
        if columns is not None and len(columns) > MOST_CUBE_COLUMNS:
            context.failures[row] = f"CUBE_EXPLODE of {len(columns)} columns; {MOST_CUBE_COLUMNS} at most"
            columns = None
        if columns is not None:
            chosen = sum(value is not None for value in columns)
            reserve((1 << chosen) * (PER_OBJECT + PER_ITEM * len(columns)))
        found.append([] if columns is None else _combinations(columns))
    return pa.array(found, result)


def _combinations(columns: list[Any]) -> list[list[Any]]:
    """Return all subsets of the columns, from none to all, the last column changing fastest."""
    retained: list[list[Any]] = [[]]
    for value in columns:
        # A column that is NULL is the same in both cases.
        retained = [[*row, choice] for row in retained for choice in ([None] if value is None else [None, value])]
    return retained


FUNCTIONS: Final = (
    TableFunction(
        "CUBE_EXPLODE",
        "table",
        "For an array of columns, a row for each choice of them: those that are not chosen are NULL. Two to the power"
        f" of the number of columns that are not NULL; {MOST_CUBE_COLUMNS} columns at most.",
        (Overload("CUBE_EXPLODE(columns ARRAY<T>)", arrays(1, lambda item: pa.list_(pa.list_(item))), _cube),),
        example="CUBE_EXPLODE(ARRAY[a, b])  -- [NULL, NULL], [NULL, b], [a, NULL], [a, b]",
    ),
    TableFunction(
        "EXPLODE",
        "table",
        "A row for each item of an array. No row if the array is empty or NULL.",
        (Overload("EXPLODE(array ARRAY<T>)", arrays(1, pa.list_), _explode),),
        example="EXPLODE(ARRAY[1, 2])  -- 1, 2",
    ),
)
