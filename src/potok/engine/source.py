"""The source of the streaming query: it carries offsets and no rows."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from potok.engine.hang_up import hush
from potok.engine.trouble import write_trouble
from potok.errors import PotokError, QueryError
from potok.private import write_private
from potok.retry import Retry
from potok.state.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "potok"
MOST_PATIENCE_S = 0.1
REUSE = "spark.python.worker.reuse"


class Decision(Protocol):
    """What a batch should reach. Two that are equal are the same batch."""

    def to_json(self) -> dict[str, Any]: ...


class Decides(Protocol):
    """A planner: for one query or for several. Its first decision may be to do nothing."""

    def next(self) -> Decision: ...

    def wait_for_records(self, seconds: float) -> None: ...


class OffsetSource(DataSource):
    """What Spark polls: the planner's decision as an offset. Each batch reads its records by itself.

    Made in one process of Spark's, which is not kept, and asked for its reader in another, which is polled.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        hush()

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "nothing boolean"

    def streamReader(self, schema: Any) -> OffsetReader:  # noqa: N802 - Spark's spelling
        hush()
        file = Path(self.options["planner"])
        data = file.read_bytes()
        if _digest(data) != self.options["digest"]:
            raise QueryError(
                f"{self.options['planner']} is not as the query wrote it, so it is not loaded",
                hint="look who else can write to the directory of the query, and start it again",
            )
        return OffsetReader(pickle.loads(data), file, int(self.options["retry_for_ms"]))


class OffsetReader(DataSourceStreamReader):
    """Runs in a process of its own, so it learns of progress from the ledger."""

    def __init__(self, planner: Decides, file: Path, retry_for_ms: int) -> None:
        self._planner, self._file, self._retry_for_ms = planner, file, retry_for_ms
        self._retry: Retry | None = None
        self._last: Decision | None = None
        self._patience_s = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's spelling
        return Offsets().to_json()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - Spark's spelling
        while True:
            try:
                found = self._decided()
                break
            except PotokError as error:
                if not self._may_pass(error):
                    raise
                if self._last is not None:
                    # So Spark asks again, and can be stopped meanwhile.
                    return self._last.to_json()
        if self._retry is not None:
            self._retry = None
            write_trouble(self._file, None)
        if found != self._last:
            self._patience_s = 0.0
        self._last = found
        return found.to_json()

    def _decided(self) -> Decision:
        found = self._planner.next()
        if found == self._last:
            # Nothing to do: each answer costs Spark more than a look at the log costs us, so it waits a little longer.
            self._patience_s = min(MOST_PATIENCE_S, self._patience_s + 0.01)
            self._planner.wait_for_records(self._patience_s)
            found = self._planner.next()
        return found

    def _may_pass(self, error: PotokError) -> bool:
        """Wait before the next try; False where there is to be none."""
        if not error.passing:
            return False
        self._retry = self._retry or Retry(self._retry_for_ms)
        write_trouble(self._file, error)
        if self._retry.wait():
            return True
        write_trouble(self._file, None)
        return False

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[bool]]:
        return iter(())


def _digest(data: bytes) -> str:
    """Reaches the source through Spark, and not through the directory: so only what this program wrote is loaded."""
    return hashlib.sha256(data).hexdigest()


def polled(spark: SparkSession, planner: Decides, file: Path, retry_for_ms: int = 0) -> DataFrame:
    """The stream of a planner's decisions. The planner travels in a file: it may hold the password of a broker.

    Spark asks for all Python sources there are when the first one is registered, in a worker that knows nothing of ours
    and would print a traceback when Spark hangs up on it, a minute later or at the end. So that worker is not kept; nor
    is the one that makes the source, which would hold 80 MB for nothing.
    A filter that nothing passes takes the source out of the plan of a batch: Spark would start one more process, and
    ask for the partitions of every batch, to read no rows.
    """
    # By value: functions of the program may tell the time of its records.
    data = cloudpickle.dumps(planner)
    write_private(file, data)
    write_trouble(file, None)
    conf = spark.sparkContext._conf
    reuse = conf.get(REUSE, "true")
    conf.set(REUSE, "false")
    try:
        spark.dataSource.register(OffsetSource)
        options = {"planner": str(file), "digest": _digest(data), "retry_for_ms": str(retry_for_ms)}
        stream = spark.readStream.format(FORMAT).options(**options).load()
    finally:
        conf.set(REUSE, reuse)
    return stream.where("false")


def offsets_of_batch(checkpoint: Path, batch_id: int) -> Offsets:
    """The offsets that Spark wrote down before it began a batch."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    return Offsets.of_json(json.loads(lines[-1]))
