"""What the field `source` of a change says about its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.json_columns import NULL
from potok.sources.cdc.envelopes.shape import Shape


class Source(Protocol):
    """Writes the field `source` for one kind of database."""

    def __hash__(self) -> int: ...

    @property
    def connector(self) -> str: ...

    @property
    def name(self) -> str:
        """The name of the capture, with which topics begin."""
        ...

    def parts(self, shape: Shape, times: pa.Array, origins: Sequence[tuple[Any, ...]]) -> list[pa.Array | str]:
        """Return what is joined to the JSON of the sources of changes; `times` has the commits, in milliseconds."""
        ...

    def of_snapshot(self, shape: Shape, stream: Mapping[str, Any], read_ms: int) -> dict[str, Any]:
        """Return the source of rows of a snapshot that land behind a position in the stream."""
        ...

    def fields(self) -> list[dict[str, Any]]:
        """Return the fields of its schema."""
        ...


def field(name: str, type_: str = "string", *, optional: bool = False) -> dict[str, Any]:
    return {"type": type_, "optional": optional, "field": name}


def first_fields() -> list[dict[str, Any]]:
    """Return the schema of the fields that all sources begin with."""
    snapshot = {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": "true,last,false,incremental"},
        "default": "false",
        "field": "snapshot",
    }
    return [field("version"), field("connector"), field("name"), field("ts_ms", "int64"), snapshot, field("db")]


def numbers(values: Sequence[int | None]) -> pa.Array:
    """Return numbers as a column of JSON."""
    return pc.fill_null(pc.cast(pa.array(values, pa.int64()), pa.string()), NULL)
