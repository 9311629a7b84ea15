"""Spark polls the source in a process of its own, and asks for it in others."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import potok
from potok import StreamsBuilder
from potok.engine.planner import Planner
from potok.engine.source import OffsetSource, polled
from potok.errors import QueryError
from potok.log.open import open_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(240)


def processes(spark: SparkSession) -> list[tuple[int, str]]:
    """The process that started it, and the command line, of all that Spark has started."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    found = jvm.java.lang.ProcessHandle.current().descendants().toList()
    return [(one.parent().get().pid(), one.info().commandLine().orElse("")) for one in found if one.isAlive()]


def test_no_worker_of_spark_is_left_waiting_that_is_not_ours(spark: SparkSession, tmp_path: Path) -> None:
    """Such a worker prints a traceback when Spark hangs up on it."""
    with potok.Producer(tmp_path) as producer:
        producer.send("orders", "first")
    builder = StreamsBuilder("copying")
    builder.stream("orders").to("copies")
    potok.run(builder, broker=tmp_path, until_end=True)

    running = processes(spark)
    assert any("create_data_source" in command for _, command in running)
    assert not [command for _, command in running if "plan_data_source_read" in command]
    own = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    assert not [command for parent, command in running if "lookup_data_sources" in command and parent != own]


def test_what_the_source_raises_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    planner = Planner(open_broker(tmp_path), "asking", ["nothing-there"], {}, 1000, 10, None)
    query = polled(spark, planner, tmp_path / "planner").writeStream.foreachBatch(lambda *_: None)
    running = query.option("checkpointLocation", (tmp_path / "checkpoint").as_uri()).start()
    with pytest.raises(StreamingQueryException, match="nothing-there"):
        running.awaitTermination()


def test_a_planner_that_is_not_as_it_was_written_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "planner"
    file.write_bytes(pickle.dumps("another"))
    source = OffsetSource({"planner": str(file), "digest": "0" * 64})
    with pytest.raises(QueryError, match="not as the query wrote it"):
        source.streamReader(None)
