"""Report intact cells with unexpected contents: another program wrote them, or a backup of another query was restored.
Reading them fails in many ways, which become one error."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from potok.errors import StateError
from potok.state.cell import REPAIR

MISFIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, struct.error, pa.ArrowException)
"""What Python, NumPy and Arrow raise for unexpected data."""


class CellDoesNotFit(StateError):
    """A cell that does not fit its table."""

    def __init__(self, table: str, error: BaseException) -> None:
        super().__init__(
            f'the state of table "{table}" holds a cell that does not fit the table: {type(error).__name__}: {error}'[
                :500
            ],
            hint=f"check who else writes to the store; {REPAIR}",
        )


@contextmanager
def reading_cells(table: str) -> Iterator[None]:
    """Raise `CellDoesNotFit` for cells that do not fit their table."""
    try:
        yield
    except MISFIT as error:
        raise CellDoesNotFit(table, error) from error
