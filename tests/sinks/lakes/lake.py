"""A lake for tests: a Delta or an Iceberg table, and its content as any reader sees it."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.lakes.iceberg import IcebergTarget
from tests.sinks.tables import OutsideTable


class Lake(OutsideTable):
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

    def rows(self, order: str = "amount") -> list[tuple[Any, ...]]:
        table = self.table()
        return [tuple(row.values()) for row in table.sort_by(order).to_pylist()]


class DeltaLake(Lake):
    def __init__(self, directory: Path) -> None:
        super().__init__()
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
        super().__init__()
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
