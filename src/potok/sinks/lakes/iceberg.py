"""Append rows to an Iceberg table, or maintain its rows by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.typed_rows import RowShape


@dataclass(frozen=True, slots=True)
class IcebergTarget(SinkSpec):
    """A table of a catalog. The properties of the catalog may contain secrets and are not shown."""

    verb: ClassVar[str] = "to_iceberg"

    table: str
    catalog: str
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    shape: RowShape
    partition_by: tuple[str, ...]
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        return f'the Iceberg table "{self.table}"' + (f' of catalog "{self.catalog}"' if self.catalog else "")

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_iceberg", "iceberg")
        if "." not in self.table or not all(self.table.split(".")):
            raise TopologyError(f'"{self.table}" has no namespace', hint='write "shop.orders"')
        self.shape.check(types)
        columns = self.shape.schema(types)
        missing = [name for name in self.partition_by if name not in columns.names]
        if missing:
            hint = "there are " + ", ".join(f'"{name}"' for name in columns.names)
            raise TopologyError(f'partition_by= names "{missing[0]}", which is not a column', hint=hint)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        return self.shape.prepare(rows, types)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.lakes.iceberg_writer import IcebergWriter  # which loads the library

        return IcebergWriter(self, opening)
