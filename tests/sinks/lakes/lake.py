"""A lake for tests: a Delta or an Iceberg table, and its content as any reader sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from potok.sinks.guarantee import Guarantee
from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.lakes.iceberg import IcebergTarget
from potok.sinks.sink_spec import Batch, Failures, SinkSpec, SinkWriter, Types
from potok.sinks.typed_rows import Mode, RowShape
from tests.sinks.rows import deliver, opening, rows_of, typed

TYPES = Types(typed("string"), typed("name string, amount bigint"))

Records = list[tuple[Any, Any]]


class Lake(ABC):
    """One table. Each writer that is opened stands for a start of the query."""

    types = TYPES
    mode: Mode = "append"
    options: dict[str, Any] = {}

    @abstractmethod
    def target(self) -> SinkSpec:
        """Return the sink spec of the table."""

    @abstractmethod
    def table(self) -> pa.Table:
        """Return the content."""

    @abstractmethod
    def append(self, rows: pa.Table) -> None:
        """Append rows as another program does."""

    @abstractmethod
    def versions(self) -> int:
        """Return how many commits the table has."""

    @abstractmethod
    def make(self, schema: pa.Schema) -> None:
        """Create the table before the sink does."""

    @property
    def shape(self) -> RowShape:
        return RowShape(self.mode, **{k: v for k, v in self.options.items() if k != "partition_by"})

    def open(self, epoch: int = 1, committed: int = 0, guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> SinkWriter:
        target = self.target()
        target.check(self.types, guarantee)
        sink_writer = target.open(opening(self.types, guarantee, epoch=epoch, committed=committed))
        assert isinstance(sink_writer, SinkWriter)
        return sink_writer

    def put(self, records: Records, batch: Batch = Batch(1, 1), sink_writer: SinkWriter | None = None) -> Failures:
        """Deliver one batch, by a writer of its own unless one is given."""
        chosen = sink_writer or self.open(batch.epoch, batch.number - 1)
        return deliver(self.target(), chosen, rows_of(records, self.types), self.types, batch)

    def rows(self, order: str = "amount") -> list[tuple[Any, ...]]:
        table = self.table()
        return [tuple(row.values()) for row in table.sort_by(order).to_pylist()]


class DeltaLake(Lake):
    def __init__(self, directory: Path) -> None:
        self.uri = str(directory / "orders")

    def target(self) -> DeltaTarget:
        return DeltaTarget(self.uri, self.shape, self.options.get("partition_by", ()), (), 2_000)

    def table(self) -> pa.Table:
        return pa.table(DeltaTable(self.uri).to_pyarrow_table())

    def append(self, rows: pa.Table) -> None:
        write_deltalake(self.uri, rows, mode="append")

    def versions(self) -> int:
        return DeltaTable(self.uri).version()

    def make(self, schema: pa.Schema) -> None:
        DeltaTable.create(self.uri, schema)


class IcebergLake(Lake):
    def __init__(self, directory: Path) -> None:
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"file://{directory}/warehouse",
        }

    @property
    def catalog(self) -> SqlCatalog:
        found = load_catalog("potok", **self.properties)
        assert isinstance(found, SqlCatalog)
        return found

    def target(self) -> IcebergTarget:
        partition_by = self.options.get("partition_by", ())
        return IcebergTarget("shop.orders", "potok", tuple(self.properties.items()), self.shape, partition_by, 2_000)

    def table(self) -> pa.Table:
        return self.catalog.load_table("shop.orders").scan().to_arrow()

    def append(self, rows: pa.Table) -> None:
        self.catalog.load_table("shop.orders").append(rows)

    def versions(self) -> int:
        return len(self.catalog.load_table("shop.orders").snapshots())

    def make(self, schema: pa.Schema) -> None:
        self.catalog.create_namespace_if_not_exists("shop")
        self.catalog.create_table("shop.orders", schema)
