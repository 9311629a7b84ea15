"""Confine unexpected errors of a format to the row that causes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.errors import PotokError
from potok.records.conversion.convert import spelled
from potok.records.formats.format import Column, Decoded, Encoded, Format, binary_column
from potok.records.schemas.schema import Schema

_NOT_OF_THE_ROW = (PotokError, OSError, MemoryError)
"""Errors of a declaration, or of the machine."""


@dataclass(frozen=True, slots=True)
class GuardedFormat:
    """A format that raises for no row: if `inner` raises, each row is tried alone, and one that raises again is in the
    errors. Formats report the errors they expect; this handles what a library or a user's object raises.
    """

    inner: Format

    @property
    def name(self) -> str:
        return self.inner.name

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        try:
            return self.inner.decode(values, schema, columns)
        except _NOT_OF_THE_ROW:
            raise
        except Exception:  # noqa: BLE001 - found again row by row
            whole = binary_column(values)
        empty = self.inner.decode(whole.slice(0, 0), schema, columns).column
        nothing: Column = [None] if isinstance(empty, list) else pa.nulls(1, empty.type)
        parts, errors = self._each(
            len(whole), lambda row: self.inner.decode(whole.slice(row, 1), schema, columns), Decoded(nothing), "read"
        )
        if isinstance(empty, list):
            return Decoded([item for part in parts for item in part.column], errors)
        return Decoded(pa.concat_arrays([part.column for part in parts]), errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        try:
            return self.inner.encode(column, schema)
        except _NOT_OF_THE_ROW:
            raise
        except Exception:  # noqa: BLE001 - found again row by row
            nothing = Encoded(pa.nulls(1, pa.binary()))
        parts, errors = self._each(
            len(column), lambda row: self.inner.encode(_alone(column, row), schema), nothing, "written"
        )
        return Encoded(pa.concat_arrays([part.values for part in parts]), errors)

    def _each(
        self, count: int, work: Callable[[int], Any], nothing: Any, verb: str
    ) -> tuple[list[Any], dict[int, str]]:
        parts: list[Any] = []
        errors: dict[int, str] = {}
        for row in range(count):
            try:
                part = work(row)
            except _NOT_OF_THE_ROW:
                raise
            except Exception as error:  # noqa: BLE001 - it becomes the reason of a bad record
                part = nothing
                errors[row] = f"cannot be {verb} as {self.name}: {type(error).__name__}: {spelled(error)}"
            parts.append(part)
            if part.errors:
                errors[row] = part.errors[0]
        return parts, errors


def _alone(column: Column, row: int) -> Column:
    return [column[row]] if isinstance(column, list) else column.slice(row, 1)
