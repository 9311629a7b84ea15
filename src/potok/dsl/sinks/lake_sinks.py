"""Write streams and tables to tables of a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from potok.dsl.sinks.delivering import RowDelivering, given_up, names_of
from potok.duration import Duration
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.lakes.iceberg import IcebergTarget
from potok.sinks.typed_rows import Mode


class LakeSinks(RowDelivering):
    """The methods that write the rows of a lake: records that are appended, or the rows of a table by key."""

    def to_delta(
        self,
        path: str | Path,
        *,
        mode: Mode | None = None,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        with_key: bool = False,
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Write to a Delta table, one commit for each batch.

        >>> orders.to_delta("lake/orders")
        >>> totals.to_delta("s3://lake/totals", storage_options={"AWS_REGION": "eu-west-1"})

        Args:
            path: The directory or the URL of the table, which is created if it does not exist.
            mode: `append` adds a row for each record, the default for streams. `upsert` replaces the row of the same
                key, and deletes it for a null value: the default for tables.
            key: The fields of the value that identify a row; by default the key of the record.
            columns: Column names by field, where they differ.
            with_key: Append key, timestamp and value instead of the value alone; required for null values.
            partition_by: The columns by which a table that is created is partitioned.
            storage_options: The options of object storage, as `deltalake` takes them.
            give_up_after: How long to retry while storage does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, each commit has the transaction identifier of its batch.
            name: Names the step; the table records its batches under this name.
        """
        uri = str(path) if "://" in str(path) else str(Path(path).expanduser().resolve())
        options = tuple((storage_options or {}).items())
        shape = self._shape(mode, key, columns, with_key)
        target = DeltaTarget(uri, shape, names_of(partition_by), options, given_up(give_up_after))
        self._deliver(target, uri.rstrip("/").rpartition("/")[2], guarantee, name)

    def to_iceberg(
        self,
        table: str,
        *,
        catalog: str | Mapping[str, str] = "",
        mode: Mode | None = None,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        with_key: bool = False,
        partition_by: str | Sequence[str] = (),
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Write to an Iceberg table, one commit for each batch.

        >>> orders.to_iceberg("shop.orders", catalog="prod")
        >>> totals.to_iceberg("shop.totals", catalog={"type": "rest", "uri": "http://localhost:8181"})

        Args:
            table: The namespace and the name; both are created if they do not exist.
            catalog: A catalog of `.pyiceberg.yaml`, or the properties of one, as `pyiceberg` takes them; with `name`,
                which catalogs in a database need.
            mode: `append` adds a row for each record, the default for streams. `upsert` replaces the row of the same
                key, and deletes it for a null value: the default for tables.
            key: The fields of the value that identify a row; by default the key of the record.
            columns: Column names by field, where they differ.
            with_key: Append key, timestamp and value instead of the value alone; required for null values.
            partition_by: The columns by which a table that is created is partitioned.
            give_up_after: How long to retry while the catalog does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, each commit sets a property of the table to its batch.
            name: Names the step; the table records its batches under this name.
        """
        given = {} if isinstance(catalog, str) else dict(catalog)
        known = catalog if isinstance(catalog, str) else given.pop("name", "potok")
        shape = self._shape(mode, key, columns, with_key)
        target = IcebergTarget(
            table, known, tuple(given.items()), shape, names_of(partition_by), given_up(give_up_after)
        )
        self._deliver(target, table, guarantee, name)
