"""Check that a function of columns treats records independently: other calls give the same results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from potok.errors import QueryError
from potok.operators.core.chunk import Chunk, Column, as_objects, position_of

if TYPE_CHECKING:
    from potok.operators.stateless.map_batches import Mapped, Rows

RELATIVE, ABSOLUTE = 1e-5, 1e-8
"""How far two floats may differ: libraries of linear algebra round differently for other numbers of rows."""

_SEED = 7


class NotRowIndependentError(QueryError):
    """A function of columns whose result for a record depends on the other records of the call."""

    def __init__(self, step: str, where: str, way: str, first: str, other: str) -> None:
        super().__init__(
            f'the function of step "{step}" does not treat records independently: for {where}, it gives {first} in the '
            f"whole chunk, and {other} {way}",
            hint="the records of one call differ from batch to batch, so a result may not depend on it: fit "
            "models and compute totals elsewhere, and pass fixed numbers in with setup=",
        )


def check_independent(step: str, rows: Rows, whole: Mapped, call: Callable[[Rows], Mapped], chunk: Chunk) -> None:
    """Call the function with the halves of the records, and with all in another order, and compare.

    The first call of one record is repeated, which finds functions that are random.
    """
    expected = _by_row(whole)
    middle = len(rows) // 2
    shuffled = np.random.default_rng(_SEED).permutation(rows)
    ways = [("in one half of it", part) for part in (rows[:middle], rows[middle:]) if len(part)]
    for way, part in [*ways, ("in another order", shuffled)]:
        found = _by_row(call(part))
        for row in part.tolist():
            if not _equal(expected.get(row), found.get(row)):
                rendered = _render(expected.get(row)), _render(found.get(row))
                raise NotRowIndependentError(step, _where(chunk, row), way, *rendered)


def _by_row(mapped: Mapped) -> dict[int, Any]:
    """Return the results of each record; an error is a text."""
    found: dict[int, Any] = {}
    for column, rows in zip(mapped.columns, mapped.rows, strict=True):
        for row, value in zip(rows.tolist(), _objects(column), strict=True):
            found.setdefault(row, []).append(value)
    return found | dict.fromkeys(mapped.errors, "an error")


def _objects(column: Column) -> list[Any]:
    return as_objects(column)


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        both_nan = math.isnan(one) and math.isnan(two)
        return both_nan or math.isclose(one, two, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_equal(item, two[name]) for name, item in one.items())
    if isinstance(one, Sequence) and isinstance(two, Sequence) and not isinstance(one, str | bytes):
        return len(one) == len(two) and all(map(_equal, one, two))
    return bool(one == two)


def _render(results: Any) -> str:
    if results is None:
        return "nothing"
    return results if isinstance(results, str) else ", ".join(repr(result)[:200] for result in results)


def _where(chunk: Chunk, row: int) -> str:
    _, offset = position_of(chunk, row)
    key = chunk.key[row] if isinstance(chunk.key, list) else chunk.key[row].as_py()
    value = chunk.value[row] if isinstance(chunk.value, list) else chunk.value[row].as_py()
    at = "" if offset < 0 else f" at offset {offset}"
    return f"the record{at} with key {key!r} and value {value!r}"[:400]
