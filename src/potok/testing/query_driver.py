"""Drive a topology through its batches, one call at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import orjson

from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.events.personal.key_store import open_key_store
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import TopicNotFound
from potok.log.start import Start
from potok.records.log_record import NO_TIMESTAMP, LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.executor import Executor
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations.forget_subject import forget_subject
from potok.runtime.operations.table_refresh import refreshers_of
from potok.runtime.output.dead_letter_reporter import DeadLetterReporter
from potok.runtime.planning.planner import Planner
from potok.runtime.planning.start_offsets import start_positions
from potok.runtime.planning.watermark import windowed_steps
from potok.runtime.queries.prepare import Buildable, Prepared, make_topics, prepare, topology_of
from potok.settings import Settings
from potok.snapshots.patterns.aggregates import Aggregates
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import NoSuchTable, Tables
from potok.spark.dataframes import session_of
from potok.spark.spark_executor import start_spark
from potok.sql.errors import closest
from potok.testing.app_statements import AppStatements, Query, app_of
from potok.testing.outputs import DeadLetter, OutputRecord, read_dead_letters, read_outputs
from potok.topology.graph import Topology

A = TypeVar("A")


class QueryDriver:
    """Runs the batches of one topology, and reads its output."""

    __test__ = False

    def __init__(
        self,
        program: Buildable | Topology | None = None,
        *,
        sql: str | None = None,
        partitions: Mapping[str, int] | None = None,
        shards: int = 2,
        directory: Path | None = None,
        spread: bool = False,
        state: str | None = None,
        spark: bool = False,
    ) -> None:
        if program is None or sql is not None:
            raise TopologyError("a driver has a program or a script", hint="TestDriver(builder), TestDriver(sql=...)")
        self._topology = topology_of(program)
        self._options: dict[str, Any] = {
            "partitions": partitions,
            "shards": shards,
            "spread": spread,
            "state": state,
            "spark": spark,
        }
        self._temporary = tempfile.TemporaryDirectory(prefix="potok-") if directory is None else None
        self._directory = Path(self._temporary.name) if self._temporary is not None else Path(str(directory))
        self._settings = Settings(
            broker=f"file:{self._directory}",
            shards=shards,
            state=state or "",
            personal_keys=f"file:{self._directory}.keys",
        )
        self._spread = spread
        self._executor: Executor = start_spark(self._settings) if spark else InProcessExecutor()
        self._ahead_ms = 0
        self.broker = EmbeddedBroker.shared(self._directory)
        for topic in set(partitions or {}).intersection(self._topology.source_topics):
            self.broker.create_topic(topic, (partitions or {})[topic], exist_ok=True)
        make_topics(self._topology, self.broker)
        session = partial(session_of, self._settings) if spark else lambda: None
        self._refreshers = refreshers_of(self._topology, self.broker, session)
        self._from: Start = getattr(program, "start_at", "earliest")
        self._statements: AppStatements | None = None
        self._begin()
        self._statements = self._beside(program)

    def _begin(self) -> None:
        start = start_positions(self.broker, self._topology, self._from)
        self._prepared: Prepared = prepare(self._topology, self.broker, self._settings, start=start)
        found = self._prepared
        parts = found.plan, found.ledger, found.directory, found.metrics, found.state
        self._runner = BatchRunner(self._executor, self.broker, *parts, compares_batches=True)
        if self._spread:
            self._runner.small_batch = -1
        self._reporter = DeadLetterReporter(self._topology, see="driver.dead_letters()")

    def _beside(self, program: Buildable | Topology) -> AppStatements | None:
        app = app_of(program)
        if app is None:
            return None
        try:
            return AppStatements(app, self.broker, self._settings, self._drive)
        except BaseException:
            self.close()
            raise

    def _drive(self, query: Query) -> QueryDriver:
        return type(self)(query, directory=self._directory, **self._options)

    @property
    def _others(self) -> list[QueryDriver]:
        """Return the queries of the statements."""
        return [] if self._statements is None else self._statements.drivers

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        timestamp: int | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """Append a record. Bytes and None are written unchanged, text keys as UTF-8, everything else as JSON."""
        record = LogRecord(
            key.encode() if isinstance(key, str) else _bytes(key),
            _bytes(value),
            NO_TIMESTAMP if timestamp is None else timestamp,
            tuple(headers.items() if isinstance(headers, Mapping) else headers or ()),
        )
        self._check_topic(topic)
        self.broker.append(topic, [record], partition)

    def refresh(self, table: str) -> int:
        """Load the DataFrame of a table again, as the query does at its interval; return the number of changes.

        The function gets the Spark session if the driver has `spark=True`, else None.
        """
        found = next((one for one in self._refreshers if one.source.name == table), None)
        if found is None:
            raise NoSuchTable(table, self._topology.name, [one.source.name for one in self._refreshers])
        return found.refresh()

    def _check_topic(self, topic: str) -> None:
        if not self.broker.has_topic(topic):
            error, known = TopicNotFound(topic), sorted(self.broker.topics())
            error.hint = closest(topic, known) or f"the topics are: {', '.join(known)}"
            raise error

    def run(self, batch_records: int | None = None, *, more_to_come: bool = False) -> int:
        """Process all records sent so far, in batches of at most `batch_records`, the output that is read again,
        and the windows that close after it.

        Args:
            batch_records: The largest number of records in a batch; by default all of them.
            more_to_come: More input follows: a partition without records holds back the watermark.

        Returns:
            The number of batches.
        """
        batches = 0
        while moved := self._round(batch_records, more_to_come) + sum(
            driver.run(batch_records, more_to_come=more_to_come) for driver in self._others
        ):
            batches += moved
            if not self._comes_back and not self._others:
                break
        return batches

    @property
    def _comes_back(self) -> bool:
        """Whether the topology reads its own output, like agents that send to each other."""
        return not set(self._topology.sink_topics).isdisjoint(self._topology.source_topics)

    def _round(self, batch_records: int | None, more_to_come: bool) -> int:
        """Process all available records; return the number of batches."""
        topics = self._topology.source_topics
        target = None if more_to_come else self.broker.end_offsets_of(topics)
        steps = windowed_steps(self._topology)
        plan, bounds = self._prepared.plan, (1 << 40, 1 << 40, target, self._ahead_ms)
        ledger = self._prepared.ledger
        planner = Planner(self.broker, ledger, topics, steps, *bounds, aligned=plan.aligned, plan=plan)
        batches = 0
        while (end := planner.next(batch_records)) != ledger.entry.offsets:
            report = run_batch(self._runner, end)
            if report is not None:
                self._reporter.report(report.reason_counts)  # pytest prints it for a failed test
            batches += 1
        return batches

    def advance_to(self, timestamp_ms: int) -> int:
        """Advance stream time to an instant, as records of that time would; return the number of batches."""
        self._prepared.ledger.move_clock(timestamp_ms)
        return sum(driver.advance_to(timestamp_ms) for driver in self._others) + self.run()

    def wait(self, duration: Duration) -> int:
        """Advance processing time, without waiting, for processing-time timers; return the number of batches."""
        self._ahead_ms += to_ms(duration)
        return sum(driver.wait(duration) for driver in self._others) + self.run()

    def restart(self) -> None:
        """Stop without a clean shutdown, as in a crash between two batches, and start again."""
        self._runner.close()
        self._prepared.release()
        self._begin()
        for driver in self._others:
            driver.restart()

    def replace(self, program: Buildable | Topology) -> None:
        """Continue with a changed topology."""
        if self._statements is not None:
            self._statements.leave()
            self._statements = None
        self._runner.close()
        self._prepared.release()
        self._topology = topology_of(program)
        self._begin()
        self._statements = self._beside(program)

    def table(self, name: str) -> TableView:
        """Return a table as any reader sees it: `get`, `all`, `range`, `windows`."""
        try:
            return self.tables[name]
        except NoSuchTable:
            found = None if self._statements is None else self._statements.table(name)
            if found is None:
                raise
            return found

    def aggregate(self, cls: type[A]) -> Aggregates[A]:
        """Return the aggregates of a class: their states and their history."""
        return Aggregates(self.broker, cls, self._topology.name, open_key_store(self._settings.personal_keys))

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a pull query, over the topics and tables of an app with statements, or of a script."""
        if self._statements is None:
            raise TopologyError("there are no statements", hint='app.sql("CREATE TABLE ... AS SELECT ...") makes one')
        return self._statements.rows(sql)

    @property
    def tables(self) -> Tables:
        """All tables of the program."""
        return Tables(self.broker, self._topology.name)

    def read(self, topic: str) -> list[OutputRecord]:
        """Return all records of a topic, partition after partition."""
        self._check_topic(topic)
        return read_outputs(self.broker, topic)

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters so far, those of each query in the order of their positions."""
        own = read_dead_letters(self.broker, self._topology.dead_letter_topic)
        return own + [letter for driver in self._others for letter in driver.dead_letters()]

    def forget(self, subject: str) -> list[str]:
        """Delete the key of a subject and append `SubjectForgotten`, as `potok forget` does; return the topics.

        The keys are in a directory next to that of the log.
        """
        return forget_subject(self.broker, open_key_store(self._settings.personal_keys), subject)

    def leave(self) -> None:
        """Stop the query and leave its log open for other users."""
        if self._statements is not None:
            self._statements.leave()
        self._runner.close()
        self._prepared.release()
        self._prepared.state.close(self._prepared.plan.shards)

    def close(self) -> None:
        """Close the log, and delete its temporary directory."""
        self.leave()
        self.broker.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            shutil.rmtree(f"{self._directory}.keys", ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else orjson.dumps(value)
