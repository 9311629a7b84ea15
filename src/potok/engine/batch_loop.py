"""One of Spark's streaming queries as a loop over batches, which ends at a boundary between two of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from potok.engine.cause import INTERNAL, cause_of
from potok.engine.signals import held_signals
from potok.engine.trouble import read_trouble
from potok.errors import PotokError, QueryError
from potok.log.failpoint import failpoint
from potok.retry import Retry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from potok.engine.source import Decides

LOOK_S = 0.02
START_PATIENCE_S = 30.0


class StopAtBoundary(Exception):
    """Ends Spark's query before a batch begins; the batch is begun again at the next start."""


class QueryFailed(QueryError):
    """A batch that Spark could not finish."""

    def __init__(self, query: str, cause: str) -> None:
        hint = "nothing of the batch is visible; start the query again to retry it"
        if cause.startswith(INTERNAL):
            hint += ", and report this message if it fails again: nothing in the program explains it"
        super().__init__(f'query "{query}" failed: {cause}', hint=hint)


class BatchLoop:
    """Calls `work` with the number of each batch, under `boundary`, `after` without it, and `close` at the end.

    `ready` is called once, under `boundary`, when Spark has looked for records and found none. What may pass is tried
    again for `retry_for_ms`; `waiting` is told what is waited for, and None when that is over.
    The end comes when it is stopped, when Spark's query fails, or when there is `finished`, between two batches.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        work: Callable[[int], None],
        close: Callable[[PotokError | None], None],
        after: Callable[[], None] = lambda: None,
        finished: Callable[[], bool] | None = None,
        ready: Callable[[], None] | None = None,
        waiting: Callable[[PotokError | None], None] = lambda _: None,
        retry_for_ms: int = 0,
    ) -> None:
        self.name, self.directory = name, directory
        self.boundary = threading.Lock()
        """Whoever holds it is between two batches."""
        self._work, self._close, self._after, self._finished = work, close, after, finished
        self._ready = ready
        self._waiting, self._retry_for_ms = waiting, retry_for_ms
        self._stop_asked = threading.Event()
        self._waits_to_plan = False
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._query: StreamingQuery | None = None

    @property
    def _stopping(self) -> bool:
        return self._stop_asked.is_set()

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def is_active(self) -> bool:
        return self._query is not None and not self._ended.is_set()

    def start(self, spark: SparkSession, planner: Decides) -> None:
        from potok.engine.source import polled

        with held_signals():
            source = polled(spark, planner, self.directory / "planner", self._retry_for_ms)
            stream = source.writeStream.queryName(self.name).foreachBatch(self._on_batch)
            self._query = stream.option("checkpointLocation", self.checkpoint.as_uri()).start()
            threading.Thread(target=self._watch, name=f"potok-{self.name}", daemon=True).start()

    def _on_batch(self, _: DataFrame, batch_id: int) -> None:
        """Do the work of a batch; again, for a while, if somebody does not answer: the same batch, so nothing of it is
        lost or done twice."""
        retry: Retry | None = None
        while (error := self._tried(batch_id)) is not None:
            retry = retry or Retry(self._retry_for_ms, self._stop_asked)
            self._waiting(error)
            if not retry.wait():
                if self._stopping:
                    raise StopAtBoundary
                self._error = error
                raise error
        if retry is not None:
            self._waiting(None)
        self._after()
        failpoint("commit_log.before")

    def _tried(self, batch_id: int) -> PotokError | None:
        """Do the work of a batch once; returns what may pass, and raises what will not."""
        with self.boundary:
            if self._stopping:
                raise StopAtBoundary
            try:
                self._work(batch_id)
            except BaseException as error:
                if isinstance(error, PotokError) and error.passing:
                    return error
                self._error = error
                raise
        return None

    def _watch(self) -> None:
        """Wait for the end of Spark's query, and close the books."""
        assert self._query is not None
        for step in (self._wait_for_end, self._halt, lambda: self._close(self.failure())):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - told by `wait`: nobody hears what is raised in this thread
                self._error = self._error or error
        self._ended.set()

    def _wait_for_end(self) -> None:
        assert self._query is not None
        while self._query.isActive and not self._stopping and not self._is_finished():
            self._look_whether_ready()
            self._look_whether_planned()
            time.sleep(LOOK_S)

    def _look_whether_ready(self) -> None:
        assert self._query is not None
        if self._ready is not None and str(self._query.status["message"]).startswith("Waiting"):
            with self.boundary:
                self._ready()
            self._ready = None

    def _look_whether_planned(self) -> None:
        """Say if the planner, which is in another process, waits for somebody."""
        trouble = read_trouble(self.directory / "planner")
        if trouble is not None or self._waits_to_plan:
            self._waits_to_plan = trouble is not None
            self._waiting(trouble)

    def _is_finished(self) -> bool:
        if self._finished is None:
            return False
        with self.boundary:
            try:
                return self._finished()
            except PotokError as error:
                if not error.passing:
                    raise
                return False

    def _halt(self) -> None:
        """Stop Spark's query between two batches: to interrupt one in the middle of a job ends badly.

        Nor is it stopped before it has begun to poll: the process of its source would miss its peer, and say so.
        """
        assert self._query is not None
        with self.boundary:
            self._stop_asked.set()
        end = time.monotonic() + START_PATIENCE_S
        while self._query.isActive and "nitializing" in str(self._query.status["message"]) and time.monotonic() < end:
            time.sleep(LOOK_S)
        self._query.stop()

    def failure(self) -> PotokError | None:
        """What ended the loop; nothing if it was stopped."""
        if isinstance(self._error, PotokError):
            return self._error
        if self._error is not None:
            return QueryFailed(self.name, cause_of(self._error))
        spark_error = self._query.exception() if self._query is not None else None
        if spark_error is None or StopAtBoundary.__name__ in str(spark_error):
            return None
        return QueryFailed(self.name, cause_of(spark_error))

    def progress(self) -> list[Any]:
        """Spark's own reports of the latest batches."""
        return [] if self._query is None else list(self._query.recentProgress)

    def stop(self) -> None:
        """Stop at the next boundary, and wait for it."""
        self._stop_asked.set()
        self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come. Raises what made it fail."""
        if not self._ended.wait(timeout):
            return False
        failure = self.failure()
        if failure is not None:
            raise failure from self._error
        return True
