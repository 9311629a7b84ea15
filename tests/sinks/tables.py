"""A table outside the log, and its content as any reader sees it."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import Any

import psycopg

from potok.sinks.guarantee import Guarantee
from potok.sinks.jdbc.jdbc import JdbcTarget
from potok.sinks.sink_spec import Batch, Failures, SinkSpec, SinkWriter, Types
from potok.sinks.spark_access import SparkAccess
from potok.sinks.typed_rows import Mode, RowShape
from potok.spark.driver_spark import DriverSpark
from tests.sinks.rows import deliver, opening, rows_of, typed

TYPES = Types(typed("string"), typed("name string, amount bigint"))
ANN, BOB = ("a", {"name": "ann", "amount": 1}), ("b", {"name": "bob", "amount": 2})
EVE = ("e", {"name": "eve", "amount": 3})

Records = list[tuple[Any, Any]]


class OutsideTable(ABC):
    """One table. Each writer that is opened stands for a start of the query."""

    types = TYPES
    mode: Mode = "append"
    query = "q"
    spark: SparkAccess | None = None

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._open: list[SinkWriter] = []

    @abstractmethod
    def target(self) -> SinkSpec:
        """Return the sink spec of the table."""

    @abstractmethod
    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows, in order."""

    @property
    def shape(self) -> RowShape:
        return RowShape(self.mode, **{k: v for k, v in self.options.items() if k != "partition_by"})

    def open(self, epoch: int = 1, committed: int = 0, guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> SinkWriter:
        target = self.target()
        target.check(self.types, guarantee)
        given = opening(self.types, guarantee, query=self.query, epoch=epoch, committed=committed, spark=self.spark)
        sink_writer = target.open(given)
        assert isinstance(sink_writer, SinkWriter)
        self._open.append(sink_writer)
        return sink_writer

    def put(self, records: Records, batch: Batch = Batch(1, 1), sink_writer: SinkWriter | None = None) -> Failures:
        """Deliver one batch, by a writer of its own unless one is given."""
        chosen = sink_writer or self.open(batch.epoch, batch.number - 1)
        return deliver(self.target(), chosen, rows_of(records, self.types), self.types, batch)

    def close(self) -> None:
        for sink_writer in self._open:
            sink_writer.close()


class JdbcTable(OutsideTable):
    """A table of PostgreSQL that no other test uses, and a connection beside that of the sink."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.table, self.query = f"t_{uuid.uuid4().hex[:12]}", f"q-{uuid.uuid4().hex[:12]}"
        self.spark = DriverSpark()
        self._connection = psycopg.connect(url, autocommit=True)
        info = self._connection.info
        self.url = f"jdbc:postgresql://{info.host}:{info.port}/{info.dbname}"
        self.properties = {"user": info.user}

    def target(self) -> JdbcTarget:
        return JdbcTarget(self.url, self.table, self.shape, "", "", tuple(self.properties.items()), 3_000)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement)  # type: ignore[call-overload]
        return list(cursor.fetchall()) if cursor.description else []

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.run(f"SELECT * FROM {self.table}"))

    def close(self) -> None:
        super().close()
        self._connection.close()
