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
from tests.sinks.lakes.s3 import BUCKET, LOGIN
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
    def __init__(self, directory: Path, server: str | None = None) -> None:
        """`server` is that of object storage; without it, the table is in a directory."""
        super().__init__()
        self.uri = str(directory / "orders") if server is None else f"s3://{BUCKET}{directory}/orders"
        key, secret = LOGIN
        self.storage = (
            {}
            if server is None
            else {
                "AWS_ENDPOINT_URL": server,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": secret,
            }
        )

    def target(self) -> DeltaTarget:
        partition_by = self.options.get("partition_by", ())
        return DeltaTarget(self.uri, self.shape, partition_by, tuple(self.storage.items()), 2_000)

    def delta(self) -> DeltaTable:
        return DeltaTable(self.uri, storage_options=self.storage)

    def table(self) -> pa.Table:
        return pa.table(self.delta().to_pyarrow_table())

    def append(self, rows: pa.Table) -> None:
        write_deltalake(self.uri, rows, mode="append", storage_options=self.storage)

    def versions(self) -> int:
        return self.delta().version()

    def make(self, schema: pa.Schema) -> None:
        DeltaTable.create(self.uri, schema, storage_options=self.storage)


class IcebergLake(Lake):
    def __init__(self, directory: Path, server: str | None = None) -> None:
        super().__init__()
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"file://{directory}/warehouse" if server is None else f"s3://{BUCKET}{directory}",
        }
        if server is not None:
            login = dict(zip(("s3.access-key-id", "s3.secret-access-key"), LOGIN, strict=True))
            self.properties |= {"s3.endpoint": server, "s3.region": "us-east-1", **login}

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
