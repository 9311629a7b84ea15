"""The output of a pattern, if it is not the values of each variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.failures import RowFailures

Ints = npt.NDArray[np.int64]

NO_VARIABLE = -1
"""Stands for a variable in a row that is not matched, or that begins an empty match."""


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The rows of matches, one match after the other. An empty match and an unmatched row have one row, with
    `NO_VARIABLE`."""

    values: pa.Array
    variables: Ints
    """The number of the variable of each row."""
    starts: Ints
    """Where the rows of each match start, and the number of all rows at the end."""
    numbers: Ints
    """The number of each match among those of its key; 0 for an unmatched row and for a partial match whose time limit
    has passed."""
    found: npt.NDArray[np.bool_]
    """Whether it is a match, or an unmatched row."""


class Emitted(NamedTuple):
    """Records to emit: their values, the match of each, and the row whose time it has, or -1 for that of the match."""

    values: pa.Array
    matches: Ints
    rows: Ints


class MatchOutput(Protocol):
    """Computes what is emitted; it can be pickled."""

    @property
    def type(self) -> pa.DataType: ...

    def __call__(self, rows: MatchedRows, failures: RowFailures) -> Emitted: ...


class Shift(NamedTuple):
    """A field of the record that is `by` places later in the order of the key; earlier if negative."""

    field: str
    by: int

    @property
    def name(self) -> str:
        return f"{self.field}@{self.by}"


class TieOrder(NamedTuple):
    """Orders records with equal times by a field."""

    field: str
    descending: bool = False
    nulls_first: bool = False
