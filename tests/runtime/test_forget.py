"""A query that is removed leaves nothing that the next one of its name, or the log, would stumble over."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations import reset_offsets
from potok.runtime.operations.shadow import _begin, shadow_of, swap
from potok.runtime.planning.planner import Planner
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.testing.outputs import read_outputs

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus


def counting(times: int = 1) -> StreamsBuilder:
    builder = StreamsBuilder("words")
    words = builder.stream("texts", value=str).group_by(lambda v: v)
    words.aggregate(initializer=0, aggregator=lambda k, v, n: n + times, name="counts")
    return builder


def stopped(driver: InProcess) -> None:
    driver._prepared.ledger.end_epoch({})
    driver._runner.close()
    driver._prepared.release()


def promoted(directory: Path) -> InProcess:
    """A stopped query whose tables a shadow has built."""
    driver = InProcess(counting(), directory=directory)
    for _ in range(2):
        driver.send("texts", b"a")
        driver.run()
    stopped(driver)
    build_shadow(driver)
    assert swap(driver.broker, "words") == "words"
    return driver


def build_shadow(driver: InProcess) -> None:
    _begin(driver.broker, "words", Settings(broker=str(driver._directory)))
    shadow = InProcess(shadow_of(counting(100).build()), directory=driver._directory)
    shadow.run(1)
    stopped(shadow)


def test_a_query_that_is_forgotten_does_not_find_the_cells_it_had_before_it_was_promoted(tmp_path: Path) -> None:
    driver = promoted(tmp_path)
    reset_offsets.forget(driver.broker, "words")
    assert list((tmp_path / "queries").iterdir()) == []
    driver._begin()
    driver.run(1)
    assert driver.table("counts").all() == {"a": 2}


def test_a_shadow_does_not_build_on_cells_that_an_earlier_one_left_behind(tmp_path: Path) -> None:
    driver = promoted(tmp_path)
    # As a restore does: cells of another name, while those of the first shadow are still there.
    driver.broker.set_metadata({"query/words/cells": b"words"})
    build_shadow(driver)
    assert driver.broker.get_metadata("query/shadow-words/cells") == b"shadow-words.2"


def test_neither_a_shadow_that_was_promoted_nor_a_query_that_was_forgotten_keeps_records_from_retention(
    tmp_path: Path,
) -> None:
    driver = promoted(tmp_path)
    driver._topology = counting(100).build()
    driver._begin()
    stopped(driver)
    assert driver.broker.protected() == {("texts", 0): 2}
    reset_offsets.forget(driver.broker, "words")
    assert driver.broker.protected() == {}


def test_on_kafka_the_output_of_a_query_that_was_forgotten_comes_again(kafka: ServerStatus, tmp_path: Path) -> None:
    broker = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    assert isinstance(broker, KafkaBroker)
    name = f"forgotten-{uuid.uuid4().hex}"
    for times in (1, 100):
        run_one_batch(broker, name, times)
        reset_offsets.forget(broker, name)
    assert [record.value for record in read_outputs(broker, f"{name}-out")] == [1, 100]
    broker.close()


def run_one_batch(broker: Broker, name: str, times: int) -> None:
    builder = StreamsBuilder(name)
    builder.stream(f"{name}-in", value=int).map_values(lambda v: v * times).to(f"{name}-out")
    if not broker.has_topic(f"{name}-in"):
        broker.create_topic(f"{name}-in")
        broker.append(f"{name}-in", [LogRecord(b"k", b"1", 1_000)])
    prepared = prepare(builder, broker, Settings(broker=broker.url))
    parts = prepared.plan, prepared.ledger, prepared.directory, prepared.metrics
    runner = BatchRunner(InProcessExecutor(), broker, *parts, prepared.state)
    ends = broker.end_offsets_of([f"{name}-in"])
    run_batch(runner, Planner(broker, prepared.ledger, [f"{name}-in"], {}, 1 << 40, 1 << 40, ends).next())
    runner.close()
    prepared.release()
