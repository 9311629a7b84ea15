"""Drive a program or a SQL script through its batches, one call at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from potok.duration import Duration
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import Tables
from potok.sql.catalog import Source
from potok.sql.types import quoted
from potok.statements.database import Database
from potok.statements.results import Executed
from potok.statements.session import SqlSession
from potok.testing.outputs import DeadLetter, read_dead_letters
from potok.testing.query_driver import QueryDriver
from potok.testing.sql_rows import SqlRow, read_rows
from potok.topology.graph import Topology


class TestDriver(QueryDriver):
    """Feeds records to a topology and reads its output.

    >>> with TestDriver(builder) as driver:
    ...     driver.send("orders", {"user_id": "u1", "amount": 120.0})
    ...     driver.run()
    ...     driver.table("order_counts").get("u1")
    1

    With `sql` it is a `SqlDriver`, which executes a script and runs all its queries. The statements of an app run
    next to its agents.

    Args:
        program: A builder, an app, or a topology.
        sql: A script of statements, instead of a program.
        partitions: The number of partitions of the input topics; by default one.
        shards: The number of shards.
        directory: The directory of log and state; by default a temporary one.
        spread: Run every batch as several tasks with a shuffle between them, however small it is.
        state: The location of the state, like the setting of that name; by default next to the log.
        spark: Run the tasks of a batch on Spark, as programs do. In this process, they are the same tasks.
    """

    __test__ = False

    def __new__(cls, *_: Any, sql: str | None = None, **__: Any) -> TestDriver:
        if sql is None:
            return object.__new__(cls)
        return object.__new__(cls if issubclass(cls, SqlDriver) else SqlDriver)


class SqlDriver(TestDriver):
    """Executes a script, feeds its topics, and reads the output of its queries.

    >>> with TestDriver(sql="CREATE STREAM orders (...) WITH (...); CREATE TABLE counts AS SELECT ...;") as driver:
    ...     driver.send("orders", {"amount": 120.0}, "o1", timestamp=1000)
    ...     driver.run()
    ...     driver.rows("counts")[0].columns
    ...     driver.query("SELECT * FROM counts WHERE user_id = 'u1'")

    Args:
        sql: The script. INSERT INTO ... VALUES is executed, SELECT is only checked.
        partitions: The number of partitions per topic; for all others their WITH clause decides.
        shards: The number of shards of each query.
        directory: The directory of log and state; by default a temporary one.
        spread: Run every batch as several tasks with a shuffle between them, however small it is.
        state: The location of the state, like the setting of that name; by default next to the log.
        spark: Run the tasks of a batch on Spark, as programs do. In this process, they are the same tasks.
    """

    drive: type[QueryDriver] = QueryDriver
    """The driver of the batches of one query."""

    def __init__(
        self,
        sql: str | None = None,
        *,
        partitions: Mapping[str, int] | None = None,
        shards: int = 2,
        directory: Path | None = None,
        spread: bool = False,
        state: str | None = None,
        spark: bool = False,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="potok-") if directory is None else None
        self._directory = Path(self._temporary.name) if self._temporary is not None else Path(str(directory))
        self._settings = Settings(broker=f"file:{self._directory}", shards=shards, state=state or "")
        self._options: dict[str, Any] = {"shards": shards, "spread": spread, "state": state, "spark": spark}
        self.broker = EmbeddedBroker.shared(self._directory)
        for topic, count in (partitions or {}).items():
            self.broker.create_topic(topic, count, exist_ok=True)
        self.database = Database(self.broker, self._settings, runs=False)
        self.session = SqlSession(self.database)
        self._drivers: dict[str, QueryDriver] = {}
        self._topologies: dict[str, Topology] = {}
        try:
            self.execute(sql or "")
        except BaseException:
            self.close()
            raise

    def execute(self, sql: str) -> list[Executed]:
        """Execute more statements; their queries run from the next `run` on."""
        try:
            return self.session.execute(sql)
        finally:
            self._settle()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a pull query, or of a SHOW or DESCRIBE statement."""
        return self.session.rows(sql)

    def rows(self, name: str) -> list[SqlRow]:
        """Return the records written to the topic of a stream or table, as its columns."""
        return read_rows(self.broker, self._source(name))

    def run(self, batch_records: int | None = None, *, more_to_come: bool = False) -> int:
        """Run all queries, in the order of their statements, until none of them has work left."""
        batches = 0
        while moved := sum(driver.run(batch_records, more_to_come=more_to_come) for driver in self._running()):
            batches += moved
        return batches

    def advance_to(self, timestamp_ms: int) -> int:
        """Advance the stream time of all queries to an instant; return the number of batches."""
        return sum(driver.advance_to(timestamp_ms) for driver in self._running()) + self.run()

    def wait(self, duration: Duration) -> int:
        """Advance the processing time of all queries, without waiting; return the number of batches."""
        return sum(driver.wait(duration) for driver in self._running()) + self.run()

    def restart(self) -> None:
        """Stop all queries, as in a crash between two batches, and start again from the statements alone."""
        self.database.close()
        self.database = Database(self.broker, self._settings, runs=False)
        self.session = SqlSession(self.database)
        for driver in self._drivers.values():
            driver.restart()
        self._settle()

    def table(self, name: str) -> TableView:
        source = self._source(name)
        return Tables(self.broker, source.table_of)[source.name]

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters of the queries, query after query."""
        topics = [topology.dead_letter_topic for topology in self._topologies.values()]
        return [letter for topic in topics for letter in read_dead_letters(self.broker, topic)]

    def leave(self) -> None:
        for driver in self._drivers.values():
            driver.leave()
        self._drivers.clear()
        self.session.close()
        self.database.close()

    def _source(self, name: str) -> Source:
        """Find a source by its exact name or as a statement would fold its case."""
        known = self.database.catalog
        return known.sources.get(name) or known.source(name.upper())

    def _running(self) -> list[QueryDriver]:
        queries = self.database.catalog_state().queries
        return [driver for name, driver in self._drivers.items() if not queries[name].paused]

    def _settle(self) -> None:
        """Drive the queries that the statements define, and no others."""
        wanted = {name: query for name, query in self.database.catalog_state().queries.items() if not query.broken}
        for name in [name for name in self._drivers if name not in wanted]:
            self._drivers.pop(name).leave()
            del self._topologies[name]
        for name, query in wanted.items():
            if name not in self._drivers:
                self._drivers[name] = self.drive(query.topology, directory=self._directory, **self._options)
            elif self._topologies[name] is not query.topology:
                self._drivers[name].replace(query.topology)
            self._topologies[name] = query.topology

    def __repr__(self) -> str:
        return f"<SqlDriver of {', '.join(map(quoted, self._drivers)) or 'no queries'}>"
