"""Commit batches to an Iceberg table, each together with the table property that records its last batch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    ValidationException,
)
from pyiceberg.table import Table, Transaction
from sqlalchemy.exc import OperationalError

from potok.redact import redact, remember_options, safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.lakes.fit import TooManyRefused, check_fit, fit
from potok.sinks.lakes.iceberg_rows import added_files, over_deleted, where_keys
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.table_columns import THERE
from potok.sinks.typed_rows import digest_of, last_of_keys, rows_as_table

if TYPE_CHECKING:
    from potok.sinks.lakes.iceberg import IcebergTarget

T = TypeVar("T")

LOST_RACE = (CommitFailedException, ValidationException)
"""Another writer was faster, and nothing was committed."""

PASSING = (
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    OperationalError,
    OSError,
)
"""Errors that a retry may not meet: the catalog or the storage does not answer."""

_RETRIES = "commit.retry.num-retries"


@dataclass(frozen=True, slots=True)
class IcebergFence:
    """The last batch that the table has, the digest of its rows, and the snapshot that added them."""

    batch: int
    epoch: int = 0
    digest: str = ""
    snapshot: int | None = None


class IcebergWriter(SinkWriter):
    """Appends or replaces the rows of a batch in one commit, which also sets the fence.

    The catalog accepts a commit only if the table is as it was read, so the fence cannot change in between. A property
    outlives the snapshots, which maintenance removes.
    """

    def __init__(self, target: IcebergTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._property = f"potok.{opening.query}.{opening.step}"
        self._rows = target.shape.schema(opening.types)
        self._keys = target.shape.key_names(opening.types)
        remember_options(dict(target.properties))
        self._catalog: Catalog | None = None
        self._table: Table = self._run(opening.committed + 1, self._opened, GIVE_UP_MS)
        self._columns = _plain(self._table.schema().as_arrow())
        check_fit(opening.step, target.label, self._rows, self._columns)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        given = rows_as_table(rows)
        try:
            there = given.column(THERE) if self._keys else None
            table, failures = fit(given, self._columns, required=there)
        except TooManyRefused as error:
            raise self._failed(batch.number, str(error)) from error
        digest = digest_of(table).hex() if self._exactly else ""
        if self._keys:
            table = last_of_keys(table, self._keys)
        limit_ms = GIVE_UP_MS if self._once else BRIEFLY_MS
        self._run(batch.number, lambda: self._write(batch, table, digest), limit_ms)
        return dict(sorted(failures.items()))

    def _write(self, batch: Batch, table: pa.Table, digest: str) -> None:
        self._table.refresh()
        void: int | None = None
        if self._exactly:
            fence = self._fence()
            if fence.batch > batch.number or fence.epoch > batch.epoch:
                owner = f'a later start of query "{self._opening.query}"'
                raise SinkTaken(self._opening.step, self._target.label, owner, "stop one of the two")
            if fence.batch == batch.number:
                if fence.digest == digest:
                    return
                # An attempt that died had other rows: the program was changed, or a function is not deterministic.
                void = None if self._keys else fence.snapshot
        if not len(table) and void is None:
            return
        transaction = self._begun()
        properties = {"potok": f"{self._opening.query}/{self._opening.step}:{batch.number}"}
        if void is not None:
            self._remove(transaction, void, properties)
        if self._keys:
            table = self._replace(transaction, table, properties)
        if len(table):
            required = pa.schema([self._columns.field(name) for name in table.column_names])
            transaction.append(table.cast(required), snapshot_properties=properties)
        if self._exactly:
            added = IcebergFence(batch.number, batch.epoch, digest, transaction.table_metadata.current_snapshot_id)
            transaction.set_properties({self._property: json.dumps(asdict(added))})
        transaction.commit_transaction()

    def _begun(self) -> Transaction:
        """Begin a transaction that is not repeated by the library: the fence has to be read again before."""
        metadata = self._table.metadata
        once = metadata.model_copy(update={"properties": {**metadata.properties, _RETRIES: "0"}})
        self._table.metadata = once
        return self._table.transaction()

    def _replace(self, transaction: Transaction, table: pa.Table, properties: dict[str, str]) -> pa.Table:
        """Delete the rows of the keys, and return the rows to append."""
        where = where_keys(table, self._keys)
        kept = over_deleted(self._table, table, self._keys, where)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            transaction.delete(where, snapshot_properties=properties)
        there = table.filter(table.column(THERE)).drop_columns([THERE])
        return there if not len(kept) else pa.concat_tables([kept, there], promote_options="default")

    def _remove(self, transaction: Transaction, snapshot: int, properties: dict[str, str]) -> None:
        """Remove the files that a snapshot added, in the same commit."""
        files, rows = added_files(self._table, snapshot)
        known = self._table.snapshot_by_id(snapshot)
        summary: Any = None if known is None else known.summary
        if not files or (summary is not None and int(summary["added-records"] or 0) != rows):
            cause = "an attempt of this batch that died has left other rows, and the table was compacted since"
            remedy = f"delete the rows that snapshot {snapshot} added, and pass another name="
            raise self._failed(self._fence().batch, cause, remedy=remedy)
        with transaction.update_snapshot(snapshot_properties=properties).overwrite() as overwrite:
            for file in files:
                overwrite.delete_data_file(file)

    def _fence(self) -> IcebergFence:
        found = self._table.properties.get(self._property)
        return IcebergFence(0) if found is None else IcebergFence(**json.loads(found))

    def _opened(self) -> Table:
        """Open the table, create it if it does not exist, and check that it is not ahead of the query."""
        target, opening = self._target, self._opening
        if self._catalog is None:
            self._catalog = load_catalog(target.catalog or None, **dict(target.properties))
        table = self._found(self._catalog)
        if self._exactly:
            self._table = table
            fence = self._fence()
            if fence.batch > opening.committed + 1 or fence.epoch > opening.epoch:
                remedy = (
                    f'delete the rows, or choose another table, and then remove the property "{self._property}" '
                    "of this one"
                )
                raise SinkAhead(opening.step, target.label, fence.batch, opening.committed, remedy)
        return table

    def _found(self, catalog: Catalog) -> Table:
        target = self._target
        try:
            return catalog.load_table(target.table)
        except (NoSuchTableError, NoSuchNamespaceError):
            catalog.create_namespace_if_not_exists(target.table.rpartition(".")[0])
        try:
            # One commit: a process that dies leaves no table without its partitions.
            with catalog.create_table_transaction(target.table, pa.schema([*map(_stored, self._rows)])) as creation:
                if target.partition_by:
                    with creation.update_spec() as spec:
                        for name in target.partition_by:
                            spec.add_identity(name)
        except TableAlreadyExistsError:
            pass
        return catalog.load_table(target.table)

    def _run(self, batch: int, work: Callable[[], T], retry_ms: int) -> T:
        """Run `work`, and again for some time if the catalog does not answer, or if another writer was faster."""
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            try:
                return work()
            except NoSuchTableError as error:
                hint = "restore the table, or start the query again, which creates it"
                raise SinkMisfit(self._opening.step, self._target.label, str(error), hint) from safe_cause(error)
            except (*LOST_RACE, *PASSING) as error:
                # A lost race is certain; after any other error, the commit may be there.
                if (self._once and not isinstance(error, LOST_RACE)) or not retry.wait():
                    passing = self._target.give_up_after_ms is None
                    raise self._failed(batch, error, passing=passing) from safe_cause(error)
            except (RESTError, ValueError, TypeError) as error:
                raise self._failed(batch, error) from safe_cause(error)

    def _failed(
        self, batch: int, cause: Exception | str, *, passing: bool = False, remedy: str | None = None
    ) -> DeliveryFailed:
        text = redact(" ".join(str(cause).split())) or type(cause).__name__
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, text, lost=self._once, passing=passing, remedy=remedy)

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None


def _stored(field: pa.Field) -> pa.Field:
    """Return a column that is created: Iceberg has instants in UTC, and times of day in microseconds."""
    if pa.types.is_timestamp(field.type):
        return field.with_type(pa.timestamp("us", "UTC" if field.type.tz else None))
    return field.with_type(pa.time64("us")) if pa.types.is_time(field.type) else field


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the numbers of its fields."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])
