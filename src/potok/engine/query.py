"""A running topology."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from potok.engine.batch import BatchRunner
from potok.engine.beginning import protect
from potok.engine.cause import cause_of
from potok.engine.clock import windowed_steps
from potok.engine.connector import connector_of
from potok.engine.pace import FIRST, Pace
from potok.engine.planner import Planner
from potok.engine.prepare import Prepared
from potok.engine.reach import check_reach, on_one_machine
from potok.engine.signals import held_signals
from potok.engine.upkeep import Upkeep
from potok.errors import PotokError, QueryError
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.settings import Settings
from potok.state.entry import mark_of
from potok.state.offsets import Ends, Offsets
from potok.views.table_view import TableView
from potok.views.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PROTECT_EVERY_S = 5.0
START_PATIENCE_S = 30.0


class StopAtBoundary(Exception):
    """Ends Spark's query before a batch begins; the batch is begun again at the next start."""


class QueryFailed(QueryError):
    """A batch that Spark could not finish."""

    def __init__(self, query: str, cause: str) -> None:
        super().__init__(
            f'query "{query}" failed: {cause}',
            hint="nothing of the batch is visible; start the query again to retry it",
        )


class Query:
    """A topology at work, in the background of this process."""

    def __init__(
        self,
        prepared: Prepared,
        spark: SparkSession,
        settings: Settings,
        *,
        target: Ends | None = None,
        leader: str = "",
    ) -> None:
        """`target` makes it stop there; `leader` is a query that it must not pass."""
        self._prepared, self._spark, self._settings = prepared, spark, settings
        self.name = prepared.plan.topology.name
        broker, topology = prepared.broker, prepared.plan.topology
        master = str(spark.sparkContext.master)
        check_reach(master, broker, prepared.plan, prepared.state)
        steps = windowed_steps(topology)
        self._planner = Planner(
            broker, self.name, topology.source_topics, steps, settings.idle_after_ms, settings.max_batch_records, target
        )
        self._planner.leader = leader
        parallelism = spark.sparkContext.defaultParallelism
        self._runner = BatchRunner(
            spark.sparkContext,
            broker,
            prepared.plan,
            prepared.ledger,
            prepared.directory,
            prepared.pulse,
            parallelism,
            prepared.state,
        )
        self._runner.pace = self._pace(broker, settings)
        self._runner.connector = connector_of(spark, broker, self.name)
        self._runner.one_machine = on_one_machine(master)
        self._lock = threading.Lock()
        self._stopping = False
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._query: StreamingQuery | None = None
        self._protected_at = 0.0
        self._upkeep = Upkeep(broker)

    def _pace(self, broker: Broker, settings: Settings) -> Pace:
        """Goes on with what the last run has learnt."""
        mark = mark_of(self.name, "pace")
        learnt = broker.mark(mark)
        pace = Pace(settings.target_batch_ms, settings.max_batch_records, int(learnt) if learnt else FIRST)
        broker.set_marks({mark: str(pace.limit).encode()})
        return pace

    @property
    def checkpoint(self) -> Path:
        return self._prepared.directory / "checkpoint"

    def start(self) -> Query:
        from potok.engine.source import polled

        with held_signals():
            source = polled(self._spark, self._planner, self._prepared.directory / "planner")
            stream = source.writeStream.queryName(self.name).foreachBatch(self._on_batch)
        try:
            with held_signals():
                self._query = stream.option("checkpointLocation", self.checkpoint.as_uri()).start()
                threading.Thread(target=self._watch, name=f"potok-{self.name}", daemon=True).start()
                self._upkeep.start()
        except BaseException:
            if self._query is not None:
                self.stop()
            raise
        return self

    def _on_batch(self, _: DataFrame, batch_id: int) -> None:
        from potok.engine.source import offsets_of_batch

        with self._lock:
            if self._stopping:
                raise StopAtBoundary
            try:
                self._runner.run(offsets_of_batch(self.checkpoint, batch_id))
                self._protect()
            except BaseException as error:
                self._error = error
                raise
        failpoint("commit_log.before")

    def _protect(self) -> None:
        """Let go of what has been read; now and then is enough, for it only moves forward."""
        if time.monotonic() - self._protected_at > PROTECT_EVERY_S:
            self._protected_at = time.monotonic()
            protect(self._prepared.broker, self.name, self._runner.ledger.entry.offsets.topics)

    def _watch(self) -> None:
        """Wait for the end of Spark's query or of the input, and close the books."""
        assert self._query is not None
        try:
            try:
                while self._query.isActive and not self._stopping and not self._finished():
                    time.sleep(0.02)
            except Exception as error:  # noqa: BLE001 - told by `wait`: nobody hears what is raised in this thread
                self._error = self._error or error
            try:
                self._halt()
            except Exception as error:  # noqa: BLE001 - there may be no JVM left to be stopped
                self._error = self._error or error
        finally:
            try:
                self._close()
            except Exception as error:  # noqa: BLE001 - told by `wait`: nobody hears what is raised in this thread
                self._error = self._error or error
            finally:
                self._ended.set()

    def _finished(self) -> bool:
        if self._planner.target is None:
            return False
        with self._lock:
            return self._planner.next() == self._runner.ledger.entry.offsets

    def _halt(self) -> None:
        """Stop Spark's query between two batches: to interrupt one in the middle of a job ends badly.

        Nor is it stopped before it has begun to poll: the process of its source would miss its peer, and say so.
        """
        assert self._query is not None
        with self._lock:
            self._stopping = True
        end = time.monotonic() + START_PATIENCE_S
        while self._query.isActive and "nitializing" in str(self._query.status["message"]) and time.monotonic() < end:
            time.sleep(0.02)
        self._query.stop()

    def _close(self) -> None:
        self._upkeep.stop()
        pulse = self._prepared.pulse
        failure = self._failure()
        pulse.state, pulse.error = ("failed", str(failure)) if failure else ("stopped", "")
        marks: dict[str, bytes | None] = {mark_of(self.name, "progress"): pulse.to_bytes()}
        try:
            if failure is None:
                self._runner.ledger.end_epoch(marks)
            else:
                self._prepared.broker.set_marks(marks)
        finally:
            self._runner.close()
            self._prepared.release()

    def _failure(self) -> PotokError | None:
        if isinstance(self._error, PotokError):
            return self._error
        if self._error is not None:
            return QueryFailed(self.name, cause_of(self._error))
        spark_error = self._query.exception() if self._query is not None else None
        if spark_error is None or StopAtBoundary.__name__ in str(spark_error):
            return None
        return QueryFailed(self.name, cause_of(spark_error))

    def stop(self) -> None:
        """Stop at the next batch boundary, and wait for it."""
        self._stopping = True
        self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come. Raises what made the query fail."""
        if not self._ended.wait(timeout):
            return False
        failure = self._failure()
        if failure is not None:
            raise failure from self._error
        return True

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    def spark_progress(self) -> list[Any]:
        """Spark's own reports of the latest batches."""
        return [] if self._query is None else list(self._query.recentProgress)

    @property
    def tables(self) -> Tables:
        return Tables(self._prepared.broker, self.name)

    def table(self, name: str) -> TableView:
        """Read a table, as of the last committed batch."""
        return self.tables[name]

    @property
    def offsets(self) -> Offsets:
        return self._runner.ledger.entry.offsets

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
