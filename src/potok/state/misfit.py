"""Cells that are whole, and hold something else than their step writes: somebody else wrote them, or a copy of another
query was put in their place. What reads them trips over that in many ways; it is told in one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from potok.errors import StateError
from potok.state.cell import REPAIR

MISFIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, struct.error, pa.ArrowException)
"""What Python, NumPy and Arrow raise at data of another shape."""


class CellDoesNotFit(StateError):
    """A cell of another shape than that of its table."""

    def __init__(self, table: str, error: BaseException) -> None:
        super().__init__(
            f'the state of table "{table}" holds a cell of another shape than the table has: '
            f"{type(error).__name__}: {error}"[:500],
            hint=f"look who else writes to the store; {REPAIR}",
        )


@contextmanager
def reading_cells(table: str) -> Iterator[None]:
    """Raise `CellDoesNotFit` where cells of a table cannot be what they should be."""
    try:
        yield
    except MISFIT as error:
        raise CellDoesNotFit(table, error) from error
