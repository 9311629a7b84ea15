"""Write batches through JDBC: staged by Spark in a table of their own, then moved in one transaction with the fence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from potok.redact import redact, remember, remember_options, safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkMisfit, too_many_refused
from potok.sinks.guarantee import Guarantee
from potok.sinks.jdbc.fence import JdbcFences
from potok.sinks.jdbc.statements import NUMBER, THERE, JdbcStatements
from potok.sinks.jdbc.url_secrets import secrets_of
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.spark_access import JdbcConnection, JdbcError, SparkAccess
from potok.sinks.sql_fence import SqlFence
from potok.sinks.table_columns import THERE as HAS_VALUE
from potok.sinks.typed_rows import digest_of, last_of_keys, rows_as_table
from potok.sinks.urls import remember_url

if TYPE_CHECKING:
    from potok.sinks.jdbc.jdbc import JdbcTarget

T = TypeVar("T")

_REFUSED = ("22", "23", "44")
"""Classes of SQLSTATE of a row that the table rejects: a value out of range, or a violated constraint."""

_KEY_TYPE = "VARCHAR(255)"
"""Of a text column in the primary key of a table that is created: several databases do not index longer text."""


class JdbcWriter(SinkWriter):
    """Inserts, or upserts and deletes rows; the last record of a key that the table accepts wins."""

    def __init__(self, target: JdbcTarget, opening: Opening, spark: SparkAccess) -> None:
        self._target, self._opening, self._spark = target, opening, spark
        self._columns = target.columns(opening.types)
        self._keys = target.shape.key_names(opening.types)
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._fences = JdbcFences(opening, target.label)
        step = hashlib.blake2b(f"{opening.query}/{opening.step}".encode(), digest_size=6).hexdigest()
        # The epoch keeps a process that was replaced from mixing its rows with those of its successor.
        self._prefix = f"potok_rows_{step}_"
        self._staging = f"{self._prefix}{opening.epoch}"
        self._connection: JdbcConnection | None = None
        remember_url(target.url.removeprefix("jdbc:"))
        remember(*secrets_of(target.url))
        remember_options(dict(target.properties))
        self._run(opening.committed + 1, self._begin, GIVE_UP_MS)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        given = _numbered(rows_as_table(rows))
        digest = digest_of(given).hex()
        failures: Failures = {}
        limit_ms = GIVE_UP_MS if self._once else BRIEFLY_MS
        while True:
            rest = given.filter(pa.array(_kept(given, failures)))
            staged = last_of_keys(rest, self._keys) if self._keys else rest
            found = self._run(batch.number, partial(self._write, batch, staged, digest, failures), limit_ms)
            if not isinstance(found, _Refused):
                return dict(sorted(found.items()))
            failures |= found.failures
            if cause := too_many_refused(failures):
                raise self._failed(batch.number, cause)

    def _write(self, batch: Batch, staged: pa.Table, digest: str, failures: Failures) -> Failures | _Refused:
        """Write rows and commit; or return those that the table rejects, and write none."""
        connection = self._connected()
        statements = self._statements(connection)
        if self._exactly:
            fence = self._fences.locked(connection, batch)
            connection.rollback()
            if (fence.batch, fence.digest) == (batch.number, digest):
                # The previous attempt was written, but died before the commit of the ledger.
                return fence.refused
            if fence.batch == batch.number and fence.digest and not self._keys:
                # The program was changed, or a function is not deterministic. The rows cannot be told from others.
                cause = "an attempt of this batch that died has left other rows"
                remedy = "delete the rows of that batch and the fence, or pass another name="
                raise self._failed(batch.number, cause, remedy=remedy)
        connection.replace_table(statements.staging, staged)
        if self._exactly:
            self._fences.locked(connection, batch)
        try:
            self._put(connection, statements, 0, _END)
        except JdbcError as error:
            if not error.state.startswith(_REFUSED):
                raise
            connection.rollback()
            numbers = staged.column(NUMBER).to_pylist()
            return _Refused(self._search(connection, statements, numbers))
        if self._exactly:
            self._fences.move(connection, SqlFence(batch.epoch, batch.number, digest, failures))
        self._commit(batch, connection)
        return failures

    def _put(self, connection: JdbcConnection, statements: JdbcStatements, first: int, end: int) -> None:
        for statement in statements.put:
            connection.run(statement, *([first, end] * (statement.count("?") // 2)))

    def _search(self, connection: JdbcConnection, statements: JdbcStatements, numbers: list[int]) -> Failures:
        """Return the rows that the table rejects, found by halves in a transaction that is rolled back."""
        failures: Failures = {}

        def search(part: list[int]) -> None:
            mark = connection.savepoint()
            try:
                self._put(connection, statements, part[0], part[-1] + 1)
            except JdbcError as error:
                if not error.state.startswith(_REFUSED):
                    raise
                connection.rollback(mark)
                if len(part) == 1:
                    failures[part[0]] = redact(str(error))
                elif not too_many_refused(failures):
                    search(part[: len(part) // 2])
                    search(part[len(part) // 2 :])

        search(sorted(numbers))
        connection.rollback()
        return failures

    def _commit(self, batch: Batch, connection: JdbcConnection) -> None:
        try:
            connection.commit()
        except JdbcError as error:
            if self._once:
                self._disconnect()
                raise self._failed(batch.number, str(error)) from safe_cause(error)
            raise

    def _begin(self) -> None:
        """Check that the table exists and fits, and fence earlier epochs of the query."""
        connection = self._connected()
        statements = self._statements(connection)
        try:
            connection.rows(statements.check)
        except JdbcError as error:
            connection.rollback()
            if error.transient:
                raise
            self._create(connection, statements, error)
        connection.commit()
        if self._exactly:
            self._fences.create = statements.create_fences
            self._fences.take_over(connection)
            connection.commit()
        for left in connection.tables(self._target.table.rpartition(".")[0], self._prefix):
            connection.run(f"DROP TABLE {statements.beside(left)}")
            connection.commit()

    def _create(self, connection: JdbcConnection, statements: JdbcStatements, missing: JdbcError) -> None:
        """Create the table; if it exists, its columns do not fit."""
        texts = [name for name in self._keys if pa.types.is_string(self._columns.field(name).type)]
        types = ", ".join(f"`{name}` {_KEY_TYPE}" for name in texts)
        required = [field.with_nullable(field.name not in self._keys) for field in self._columns]
        try:
            connection.rows(f"SELECT 1 FROM {statements.table} WHERE 1 = 0")
        except JdbcError:
            connection.rollback()
            connection.create_table(statements.table, pa.schema(required).empty_table(), types)
            if self._keys:
                connection.run(statements.primary_key)
            return
        names = ", ".join(f'"{field.name}" ({field.type})' for field in self._columns)
        hint = f"the table needs the columns {names}; or leave fields out with map_values"
        raise SinkMisfit(self._opening.step, self._target.label, redact(str(missing)), hint)

    def _run(self, batch: int, work: Callable[[], T], retry_ms: int) -> T:
        """Run `work`, and again for some time if the connection was lost or the server was busy."""
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            try:
                return work()
            except JdbcError as error:
                self._disconnect()
                if not error.transient or not retry.wait():
                    passing = error.transient and self._target.give_up_after_ms is None
                    raise self._failed(batch, str(error), passing=passing) from safe_cause(error)
            except BaseException:
                self._disconnect()
                raise

    def _connected(self) -> JdbcConnection:
        if self._connection is None:
            self._connection = self._spark.connect_jdbc(self._target.address)
        return self._connection

    def _statements(self, connection: JdbcConnection) -> JdbcStatements:
        names = self._columns.names
        return JdbcStatements(
            connection.product, connection.quote, self._target.table, self._staging, names, self._keys
        )

    def _failed(self, batch: int, cause: str, *, passing: bool = False, remedy: str | None = None) -> DeliveryFailed:
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, redact(cause), lost=self._once, passing=passing, remedy=remedy)

    def close(self) -> None:
        """Drop the staged rows of the last batch; if the database does not answer, the next start does."""
        if self._connection is not None:
            self._connection.discard_table(self._statements(self._connection).staging)
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Refused:
    """The rows of a batch that the table rejects."""

    def __init__(self, failures: Failures) -> None:
        self.failures = failures


_END = 1 << 31


def _numbered(rows: pa.Table) -> pa.Table:
    """Return rows as they are staged: with their numbers, and 1 or 0 for whether there is a value."""
    there = pa.repeat(pa.scalar(1, pa.int32()), len(rows))
    if HAS_VALUE in rows.column_names:
        there = rows.column(HAS_VALUE).cast(pa.int32())
        rows = rows.drop_columns([HAS_VALUE])
    numbers = pa.array(np.arange(len(rows), dtype=np.int64))
    return rows.append_column(NUMBER, numbers).append_column(THERE, there)


def _kept(rows: pa.Table, failures: Failures) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kept = np.ones(len(rows), np.bool_)
    kept[list(failures)] = False
    return kept
