"""The interface of formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from potok.records.schemas.schema import Schema

Column: TypeAlias = pa.Array | list[Any]
"""A typed column, or a list of plain Python objects where no type was declared."""


@dataclass(slots=True)
class Decoded:
    """One value for each input, null where the input was null or is in `errors`."""

    column: Column
    errors: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Encoded:
    """Bytes for each input, null where the input was null or is in `errors`."""

    values: pa.Array
    errors: dict[int, str] = field(default_factory=dict)


def binary_column(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the bytes of a column of bytes or text, in one chunk."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return whole if pa.types.is_binary(whole.type) else whole.cast(pa.binary())


class Format(Protocol):
    """Decodes bytes to values and encodes values. It never raises for the content of a record: such rows are
    in `errors`.
    """

    @property
    def name(self) -> str: ...

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        """Decode a binary column.

        With `columns`, only these fields of a struct are read and checked: errors in fields that the topology
        does not use are ignored.
        """
        ...

    def encode(self, column: Column, schema: Schema | None) -> Encoded: ...
