"""Functions of the user's, as tests look at them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.sql.functions import registry
from potok.sql.functions.function import AggregateFunction, Context, SqlFunction


def known(name: str) -> SqlFunction:
    return registry.users_functions()[name]


def computed(name: str, columns: list[tuple[pa.DataType, list[Any]]], context: Context | None = None) -> pa.Array:
    """A call with columns of types that need no cast."""
    found = known(name)
    assert not isinstance(found, AggregateFunction)
    (overload,) = found.overloads
    accepted = overload.accept([type_ for type_, _ in columns])
    assert accepted is not None
    arrays = [pa.array(values, type_).cast(to) for (type_, values), to in zip(columns, accepted.arguments, strict=True)]
    made = overload.compute(arrays, len(columns[0][1]), accepted.result, context or Context())
    assert made.type == accepted.result
    return made
