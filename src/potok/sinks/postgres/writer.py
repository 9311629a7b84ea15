"""Write a batch to PostgreSQL in one transaction, together with the fence."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv

from potok.redact import safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkMisfit, too_many_refused
from potok.sinks.guarantee import Guarantee
from potok.sinks.postgres.fence import PostgresFences
from potok.sinks.postgres.remedies import MISFITS, PASSING, message, remedy
from potok.sinks.postgres.statements import Statements
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.sql_fence import SqlFence
from potok.sinks.table_columns import THERE
from potok.sinks.urls import clear_url, remember_url

if TYPE_CHECKING:
    from potok.sinks.postgres.postgres import PostgresTarget

T = TypeVar("T")
Connection = psycopg.Connection[tuple[object, ...]]

_CSV = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")


class PostgresWriter(SinkWriter):
    """Upserts and deletes rows; the last record of a key wins. Rejected records are found by bisection."""

    def __init__(self, target: PostgresTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._statements = Statements(target.table, target.columns(opening.types))
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._fences = PostgresFences(opening, target.label)
        self._connection: Connection | None = None
        self._run(opening.committed + 1, self._begin, GIVE_UP_MS)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        data = _csv(rows)
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        once = self._opening.guarantee is Guarantee.AT_MOST_ONCE
        return self._run(
            batch.number,
            lambda connection: self._write(connection, batch, rows, data, digest),
            GIVE_UP_MS if once else BRIEFLY_MS,
        )

    def _write(self, connection: Connection, batch: Batch, rows: Rows, data: bytes, digest: str) -> Failures:
        if self._exactly:
            fence = self._fences.locked(connection, batch)
            if (fence.batch, fence.digest) == (batch.number, digest):
                # The previous attempt was written, but died before the commit of the ledger.
                return fence.refused
        failures = self._put(connection, batch, rows, data, 0)
        if self._exactly:
            self._fences.move(connection, SqlFence(batch.epoch, batch.number, digest, failures))
        return failures

    def _put(self, connection: Connection, batch: Batch, rows: Rows, data: bytes, first: int) -> Failures:
        """Write rows, whose numbers start at `first`; bisect rows that fail together, in order."""
        try:
            with connection.transaction():
                self._statements.put(connection, data)
            return {}
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if len(rows) == 1:
                return {first: message(error)}
        middle = len(rows) // 2
        failures: Failures = {}
        for start, end in ((0, middle), (middle, len(rows))):
            part = _slice(rows, start, end)
            failures |= self._put(connection, batch, part, _csv(part), first + start)
            if cause := too_many_refused(failures):
                raise self._failed(batch.number, cause)
        return failures

    def _begin(self, connection: Connection) -> None:
        """Check that the table exists and fits, and fence earlier epochs of the query."""
        missing = self._statements.create_table(connection)
        if missing is not None:
            hint = f"add it: {missing}; or leave the field out with map_values"
            raise SinkMisfit(self._opening.step, self._target.label, "a column is missing", hint)
        try:
            self._statements.check(connection)
        except psycopg.errors.InvalidColumnReference as error:
            hint = f"add one: {self._statements.unique_index}"
            cause = "its key columns have no unique constraint"
            raise SinkMisfit(self._opening.step, self._target.label, cause, hint) from error
        except MISFITS as error:
            hint = "name another table, or drop this one: the query then creates it"
            raise SinkMisfit(self._opening.step, self._target.label, message(error), hint) from error
        if self._exactly:
            self._fences.take_over(connection)

    def _run(self, batch: int, work: Callable[[Connection], T], retry_ms: int) -> T:
        """Run `work` in a transaction, and again for some time if the connection was lost or the server was busy."""
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            committing = False
            try:
                connection = self._connected()
                with connection.transaction():
                    done = work(connection)
                    committing = True
                return done
            except (psycopg.OperationalError, psycopg.InterfaceError, *PASSING) as error:
                self.close()
                unknown = committing and self._opening.guarantee is Guarantee.AT_MOST_ONCE
                if unknown or not retry.wait():
                    passing = self._target.give_up_after_ms is None
                    raise self._failed(batch, error, passing=passing) from safe_cause(error)
            except psycopg.Error as error:
                self.close()
                raise self._failed(batch, error) from safe_cause(error)
            except BaseException:
                self.close()
                raise

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            remember_url(self._target.url)
            self._connection = psycopg.connect(
                str(clear_url(self._target.url)),
                autocommit=True,
                connect_timeout=5,
                client_encoding="utf8",
                application_name=f"potok {self._opening.query}"[:63],
            )
        return self._connection

    def _failed(self, batch: int, error: psycopg.Error | str, *, passing: bool = False) -> DeliveryFailed:
        lost = self._opening.guarantee is Guarantee.AT_MOST_ONCE
        cause, help_ = (error, None) if isinstance(error, str) else (message(error), self._remedy(error))
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, cause, lost=lost, passing=passing, remedy=help_)

    def _remedy(self, error: psycopg.Error) -> str | None:
        return remedy(error, self._statements.table_name, clear_url(self._target.url).user or "")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _csv(rows: Rows) -> bytes:
    """The rows as COPY reads them: number, whether it deletes, and all columns."""
    assert not isinstance(rows.key, list)
    assert not isinstance(rows.value, list)
    names = [f"c{number}" for number in range(rows.key.type.num_fields + rows.value.type.num_fields + 1)]
    gone = pa.compute.invert(rows.value.field(THERE))
    columns = [pa.array(np.arange(len(rows))), gone, *rows.key.flatten(), *rows.value.flatten()[1:]]
    out = io.BytesIO()
    pa.csv.write_csv(pa.table(columns, names=names), out, _CSV)
    return out.getvalue()


def _slice(rows: Rows, start: int, end: int) -> Rows:
    assert not isinstance(rows.key, list)
    assert not isinstance(rows.value, list)
    return Rows(rows.key.slice(start, end - start), rows.value.slice(start, end - start), rows.timestamp[start:end])
