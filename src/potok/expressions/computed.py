"""Columns computed outside the expression tree: an expression with its own semantics, including its treatment of
nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from potok.expressions.expr import Column, Expr
from potok.expressions.failures import RowFailures


class Computation(Protocol):
    """Computes a column from columns. It never raises for the content of a row, but returns null for it and may
    add the row to `failures`; it can be pickled and compared.
    """

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Computed(Expr):
    """The column that `compute` returns for the columns that it reads. A traced lambda has Python's semantics;
    this has those of `compute`, for every row.
    """

    args: tuple[Column, ...]
    compute: Computation
    text: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def __str__(self) -> str:
        return self.text


def computed_row(expr: Computed, row: Mapping[str, Any]) -> Any:
    """Compute a single row, given as Python values by column name."""
    columns = []
    for arg in expr.args:
        value = row[arg.name]
        for name in arg.path:
            value = None if value is None else value[name]
        columns.append(pa.array([value], arg.type))
    return expr.compute(columns, 1, {})[0].as_py()
