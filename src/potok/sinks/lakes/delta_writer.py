"""Commit batches to a Delta table, each with the transaction identifiers that record the last batch of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from potok.redact import redact, remember_options, safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.lakes.delta_constraints import violations
from potok.sinks.lakes.delta_files import NotFound, remove_files
from potok.sinks.lakes.fit import TooManyRefused, check_fit, fit, without
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.table_columns import THERE
from potok.sinks.typed_rows import digest_of, last_of_keys, rows_as_table

if TYPE_CHECKING:
    from potok.sinks.lakes.delta import DeltaTarget

T = TypeVar("T")

METADATA = "potok"
"""The field of the commit's metadata that names the step and the batch."""

VOID = -1
"""The digest of a batch whose rows were removed and are being written again."""

_AWAY = re.compile(r"object store|generic \w+ error|error sending|timed out|connection", re.IGNORECASE)
_STYLED = re.compile(r"\x1b\[[0-9;]*m")


class DeltaWriter(SinkWriter):
    """Appends or merges the rows of a batch in one commit.

    The commit has three transaction identifiers, which Delta keeps for the life of the table: the number of the
    batch, the digest of its rows, and the epoch. A second process that commits the same step meanwhile is rejected
    by Delta itself.
    """

    def __init__(self, target: DeltaTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._app = f"potok/{opening.query}/{opening.step}"
        self._rows = target.shape.schema(opening.types)
        self._keys = target.shape.key_names(opening.types)
        self._options = dict(target.storage_options)
        remember_options(self._options)
        self._table: DeltaTable = self._run(opening.committed + 1, self._opened, GIVE_UP_MS)
        self._columns = pa.schema(self._table.schema().to_arrow())
        check_fit(opening.step, target.label, self._rows, self._columns)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        given = rows_as_table(rows)
        try:
            table, failures = fit(given, self._columns, required=_there(given))
            if bad := self._run(batch.number, lambda: self._violations(table), BRIEFLY_MS):
                numbers = [row for row in range(len(given)) if row not in failures]
                failures |= {numbers[row]: reason for row, reason in bad.items()}
                table = without(table, bad)
        except TooManyRefused as error:
            raise self._failed(batch.number, str(error)) from error
        digest = int.from_bytes(digest_of(table)[:8]) >> 1 if self._exactly else 0
        if self._keys:
            table = last_of_keys(table, self._keys)
        limit_ms = GIVE_UP_MS if self._once else BRIEFLY_MS
        self._run(batch.number, lambda: self._write(batch, table, digest), limit_ms)
        return dict(sorted(failures.items()))

    def _violations(self, table: pa.Table) -> Failures:
        self._table.update_incremental()
        return violations(self._table, table)

    def _write(self, batch: Batch, table: pa.Table, digest: int) -> None:
        self._table.update_incremental()
        if self._exactly:
            last = self._table.transaction_version(self._app) or 0
            if last > batch.number or self._epoch_of(self._table) > batch.epoch:
                owner = f'a later start of query "{self._opening.query}"'
                raise SinkTaken(self._opening.step, self._target.label, owner, "stop one of the two")
            if last == batch.number:
                seen = self._table.transaction_version(f"{self._app}/digest")
                if seen == digest:
                    return
                if seen != VOID and not self._keys:
                    # An attempt that died had other rows: the program was changed, or a function is not deterministic.
                    mark = f"{self._app}:{last}"
                    remove_files(self._table, self._options, mark, self._properties(batch, VOID))
                    self._table.update_incremental()
        if len(table):
            (self._merge if self._keys else self._append)(table, self._properties(batch, digest))

    def _append(self, table: pa.Table, properties: CommitProperties) -> None:
        write_deltalake(self._table, table, mode="append", commit_properties=properties)

    def _merge(self, table: pa.Table, properties: CommitProperties) -> None:
        same = " AND ".join(f"s.{_quoted(name)} = t.{_quoted(name)}" for name in self._keys)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in self._rows.names}
        merger = self._table.merge(table, same, source_alias="s", target_alias="t", commit_properties=properties)
        merger = merger.when_matched_delete(f"NOT s.{THERE}").when_matched_update(values)
        merger.when_not_matched_insert(values, predicate=f"s.{THERE}").execute()

    def _properties(self, batch: Batch, digest: int) -> CommitProperties:
        if not self._exactly:
            return CommitProperties()
        seen = {"": batch.number, "/digest": digest, "/epoch": batch.epoch}
        fence = [Transaction(f"{self._app}{name}", number) for name, number in seen.items()]
        return CommitProperties(custom_metadata={METADATA: f"{self._app}:{batch.number}"}, app_transactions=fence)

    def _opened(self) -> DeltaTable:
        """Open the table, create it if it does not exist, and check that it is not ahead of the query."""
        target, opening = self._target, self._opening
        options = self._options or None
        if not DeltaTable.is_deltatable(target.uri, options):
            schema = pa.schema([field.with_type(stored_type(field.type)) for field in self._rows])
            partitions = list(target.partition_by) or None
            DeltaTable.create(target.uri, schema, mode="ignore", partition_by=partitions, storage_options=options)
        table = DeltaTable(target.uri, storage_options=options)
        if self._exactly:
            seen = table.transaction_version(self._app) or 0
            if seen > opening.committed + 1 or self._epoch_of(table) > opening.epoch:
                remedy = (
                    "choose another table, or remove this one; or, to write all rows again to this one, "
                    "delete its rows and pass another name="
                )
                raise SinkAhead(opening.step, target.label, seen, opening.committed, remedy)
        return table

    def _epoch_of(self, table: DeltaTable) -> int:
        return table.transaction_version(f"{self._app}/epoch") or 0

    def _run(self, batch: int, work: Callable[[], T], retry_ms: int) -> T:
        """Run `work`, and again for some time if storage does not answer, or if another writer was faster."""
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            try:
                return work()
            except NotFound as error:
                raise self._failed(batch, str(error), remedy=error.remedy) from error
            except TableNotFoundError as error:
                raise self._misfit(error) from safe_cause(error)
            except (DeltaError, OSError) as error:
                # A lost race is certain; after any other error, the commit may be there.
                passing = isinstance(error, CommitFailedError) or (_passes(error) and not self._once)
                if not passing or not retry.wait():
                    passing = passing and self._target.give_up_after_ms is None
                    raise self._failed(batch, error, passing=passing) from safe_cause(error)

    def _misfit(self, error: DeltaError) -> SinkMisfit:
        hint = "name a directory that can be created; or restore the table"
        return SinkMisfit(self._opening.step, self._target.label, _text(error), hint)

    def _failed(
        self, batch: int, cause: Exception | str, *, passing: bool = False, remedy: str | None = None
    ) -> DeliveryFailed:
        text = cause if isinstance(cause, str) else _text(cause)
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, text, lost=self._once, passing=passing, remedy=remedy)

    def close(self) -> None:
        """Do nothing: no files stay open between batches."""


def stored_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column that is created: Delta has instants in microseconds alone."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(stored_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(stored_type(type_.key_type), stored_type(type_.item_type))
    return pa.list_(stored_type(type_.value_type)) if pa.types.is_list(type_) else type_


def _there(rows: pa.Table) -> pa.Array | None:
    return rows.column(THERE) if THERE in rows.column_names else None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _passes(error: Exception) -> bool:
    return isinstance(error, OSError) or _AWAY.search(str(error)) is not None


def _text(error: Exception) -> str:
    text = " ".join(_STYLED.sub("", str(error)).replace("↳", ":").split())
    return redact(text) or type(error).__name__
