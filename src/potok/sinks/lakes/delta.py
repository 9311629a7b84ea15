"""Append rows to a Delta table, or maintain its rows by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.typed_rows import RowShape
from potok.sinks.urls import address_of


@dataclass(frozen=True, slots=True)
class DeltaTarget(SinkSpec):
    """A Delta table, in a directory or in object storage, whose options may contain secrets and are not shown."""

    verb: ClassVar[str] = "to_delta"

    uri: str
    shape: RowShape
    partition_by: tuple[str, ...]
    storage_options: tuple[tuple[str, str], ...] = field(repr=False)
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        return f"the Delta table {address_of(self.uri) if '://' in self.uri else self.uri}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_delta", "delta")
        self.shape.check(types)
        columns = self.shape.schema(types)
        for column in columns:
            if _has_time(column.type):
                hint = "write it as text: map_values(lambda v: {**v, ...})"
                raise TopologyError(
                    f'the column "{column.name}" is a time of day, which Delta does not have', hint=hint
                )
        missing = [name for name in self.partition_by if name not in columns.names]
        if missing:
            hint = "there are " + ", ".join(f'"{name}"' for name in columns.names)
            raise TopologyError(f'partition_by= names "{missing[0]}", which is not a column', hint=hint)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        return self.shape.prepare(rows, types)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.lakes.delta_writer import DeltaWriter  # which loads the library

        return DeltaWriter(self, opening)


def _has_time(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(_has_time(type_.field(number).type) for number in range(type_.num_fields))
    return bool(pa.types.is_time(type_))
