"""A running topology."""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from potok.connectors.where import StoreUnreachable
from potok.engine.batch import BatchRunner
from potok.engine.batch_loop import BatchLoop
from potok.engine.beginning import protect
from potok.engine.clock import windowed_steps
from potok.engine.connector import connector_of
from potok.engine.lock import QueryTakenOver
from potok.engine.outcry import Outcry
from potok.engine.pace import FIRST, FIRST_ONE_BY_ONE, Pace
from potok.engine.planner import Planner
from potok.engine.prepare import Prepared
from potok.engine.reach import check_reach, on_one_machine
from potok.engine.signals import held_signals
from potok.engine.upkeep import Upkeep
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.redact import redact_url
from potok.settings import Settings
from potok.state.entry import mark_of
from potok.state.offsets import Ends, Offsets
from potok.topology.nodes import Agents, Process
from potok.views.table_view import TableView
from potok.views.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PROTECT_EVERY_S = 5.0
CHECK_OWNER_EVERY_S = 2.0


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
        own: frozenset[str] = frozenset(),
    ) -> None:
        """`target` makes it stop there; of the topics that are its `own`, it reads all that it has written until then.
        `leader` is a query that it must not pass."""
        self._prepared, self._spark, self._settings = prepared, spark, settings
        self.name = prepared.plan.topology.name
        broker, topology = prepared.broker, prepared.plan.topology
        master = str(spark.sparkContext.master)
        check_reach(master, broker, prepared.plan, prepared.state)
        steps = windowed_steps(topology)
        self._planner = Planner(
            broker,
            self.name,
            topology.source_topics,
            steps,
            settings.idle_after_ms,
            settings.max_batch_records,
            target,
            leader=leader,
            own=own,
            aligned=prepared.plan.aligned,
            # With all functions of the program, so only where one of them is needed.
            plan=prepared.plan if prepared.plan.extracts_aligned_time else None,
            max_bytes=settings.max_batch_bytes,
        )
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
        self._loop = BatchLoop(
            self.name,
            prepared.directory,
            work=self._run,
            close=self._close,
            finished=self._finished,
            ready=self._ready,
            waiting=self._waiting,
            retry_for_ms=settings.retry_for_ms,
        )
        self.waiting_for: PotokError | None = None
        """What the query waits for: Kafka, the server of its state or a sink that does not answer."""
        self._protected_at, self._owner_checked_at = 0.0, time.monotonic()
        self._upkeep = Upkeep(broker)
        found_anyway = settings.broker == Settings.load().broker
        self._outcry = Outcry(topology, "" if found_anyway else redact_url(settings.broker))

    def _pace(self, broker: Broker, settings: Settings) -> Pace:
        """Continue with what the last run has learnt."""
        mark = mark_of(self.name, "pace")
        one_by_one = any(isinstance(node, Agents | Process) for node in self._prepared.plan.topology.nodes)
        first = FIRST_ONE_BY_ONE if one_by_one else FIRST
        pace = Pace(settings.target_batch_ms, settings.max_batch_records, first, settings.max_batch_bytes)
        pace.resume(broker.mark(mark))
        broker.set_marks({mark: pace.to_bytes()})
        return pace

    @property
    def checkpoint(self) -> Path:
        return self._loop.checkpoint

    def start(self) -> Query:
        try:
            self._loop.start(self._spark, self._planner)
            with held_signals():
                self._upkeep.start()
        except BaseException:
            if self._loop.is_active:
                self.stop()
            raise
        return self

    def _ready(self) -> None:
        """Let whoever looks know that the query runs although nothing has come; a batch does so by itself."""
        pulse = self._prepared.pulse
        if pulse.state == "starting":
            pulse.begin()
            pulse.offsets = self._runner.ledger.entry.offsets.topics
            self._prepared.broker.set_marks({mark_of(self.name, "progress"): pulse.to_bytes()})

    def _run(self, batch_id: int) -> None:
        from potok.engine.source import offsets_of_batch

        report = self._runner.run(offsets_of_batch(self.checkpoint, batch_id))
        if report is not None:
            self._outcry.tell(report.piles)
        self._protect()

    def _waiting(self, error: PotokError | None) -> None:
        """Say what is waited for, where anybody may look; None when that is over."""
        before, self.waiting_for = self.waiting_for, error
        if (before is None) == (error is None):
            return
        tell_waiting(self._prepared, error)

    def _protect(self) -> None:
        """Let go of what has been read; now and then is enough, for it only moves forward."""
        if time.monotonic() - self._protected_at > PROTECT_EVERY_S:
            self._protected_at = time.monotonic()
            protect(self._prepared.broker, self.name, self._runner.ledger.entry.offsets.topics)

    def _finished(self) -> bool:
        if time.monotonic() - self._owner_checked_at > CHECK_OWNER_EVERY_S:
            self._owner_checked_at = time.monotonic()
            self._runner.ledger.check_owner()
        self._outcry.tell_more()
        return self._planner.target is not None and self._planner.next() == self._runner.ledger.entry.offsets

    def _close(self, failure: PotokError | None) -> None:
        self._upkeep.stop()
        self._outcry.tell_more(now=True)
        pulse = self._prepared.pulse
        pulse.state, pulse.error = ("failed", str(failure)) if failure else ("stopped", "")
        marks: dict[str, bytes | None] = {mark_of(self.name, "progress"): pulse.to_bytes()}
        try:
            if failure is None:
                self._runner.ledger.end_epoch(marks)
            elif not isinstance(failure, QueryTakenOver):
                self._prepared.broker.set_marks(marks)
        finally:
            self._runner.close()
            self._prepared.release()

    def stop(self) -> None:
        """Stop at the next batch boundary, and wait for it."""
        self._loop.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come. Raises what made the query fail."""
        return self._loop.wait(timeout)

    @property
    def is_active(self) -> bool:
        return self._loop.is_active

    def spark_progress(self) -> list[Any]:
        """Spark's own reports of the latest batches."""
        return self._loop.progress()

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


def tell_waiting(prepared: Prepared, error: PotokError | None, *, first: bool = True) -> None:
    """Say in the progress of a query what it waits for, None where it continues; and in the log, if that is the first
    time."""
    pulse, name = prepared.pulse, prepared.plan.topology.name
    pulse.state, pulse.error = ("running", "") if error is None else ("waiting", error.message)
    if not first:
        return
    if error is None:
        log.warning('query "%s" continues', name)
    else:
        log.warning('query "%s" waits and tries again: %s', name, error.message)
    # Over Kafka the progress may be on the very server that does not answer.
    if prepared.broker.commits_together or not isinstance(error, StoreUnreachable):
        with contextlib.suppress(PotokError):
            prepared.broker.set_marks({mark_of(name, "progress"): pulse.to_bytes()})
