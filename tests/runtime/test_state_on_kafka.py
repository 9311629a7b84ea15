"""A query over Kafka with its state on a server: nothing that matters is on the disk of the driver."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.planning.planner import Planner
from potok.runtime.planning.watermark import windowed_steps
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.prepare import Prepared, prepare
from potok.settings import Settings
from potok.snapshots.tables import Tables
from potok.topology.graph import Topology


@pytest.fixture(params=["redis", "postgres", "cassandra", "s3"])
def settings(request: pytest.FixtureRequest, kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / "cache"))
    return Settings(broker=kafka.url, state=request.getfixturevalue(f"{request.param}_url"), shards=2)


@pytest.fixture
def topology() -> Topology:
    name = f"q-{uuid.uuid4().hex}"
    builder = StreamsBuilder(name)
    builder.stream(f"in-{name}", value=int).group_by_key().sum(name="n").to_stream().to(f"out-{name}")
    return builder.build()


def runner_of(prepared: Prepared) -> BatchRunner:
    parts = prepared.plan, prepared.ledger, prepared.directory, prepared.metrics
    return BatchRunner(InProcessExecutor(), prepared.broker, *parts, prepared.state)


def work(topology: Topology, broker: Broker, settings: Settings) -> Prepared:
    """Start, process all there is, and stop without closing the books."""
    prepared = prepare(topology, broker, settings)
    runner = runner_of(prepared)
    target = broker.end_offsets_of(topology.source_topics)
    steps = windowed_steps(topology)
    planner = Planner(broker, prepared.ledger, topology.source_topics, steps, 1 << 40, 1 << 40, target, 0)
    while (end := planner.next(2)) != runner.ledger.entry.offsets:
        run_batch(runner, end)
    return prepared


def send(broker: Broker, topology: Topology, *values: int) -> None:
    topic = topology.source_topics[0]
    broker.create_topic(topic, 1, exist_ok=True)
    broker.append(topic, [LogRecord(b"k", str(value).encode()) for value in values])


def test_another_machine_resumes_where_the_first_one_stopped(settings: Settings, topology: Topology) -> None:
    broker = open_broker(settings.broker, settings)
    send(broker, topology, 1, 2, 3)
    work(topology, broker, settings).release()
    assert Tables(broker, topology.name)["n"].all() == {"k": 6}
    shutil.rmtree(Path("data"))
    send(broker, topology, 10)
    work(topology, broker, settings).release()
    assert Tables(broker, topology.name)["n"].all() == {"k": 16}
    topic = topology.sink_topics[0]
    batches = broker.read(topic, 0, 0, broker.end_offsets(topic)[0])
    assert [value for batch in batches for value in batch.column("value").to_pylist()] == [b"3", b"6", b"16"]


def test_a_driver_that_was_replaced_can_do_nothing_more(settings: Settings, topology: Topology) -> None:
    broker = open_broker(settings.broker, settings)
    send(broker, topology, 1, 2)
    zombie = work(topology, broker, settings)
    zombie.release()
    # The other machine has a disk of its own, so the lock of the first one does not keep it out.
    successor = work(topology, broker, settings)
    send(broker, topology, 5)
    ends = broker.end_offsets_of(topology.source_topics)
    offsets = zombie.ledger.entry.offsets.advance(ends, 10)
    with pytest.raises(QueryTakenOver):
        run_batch(runner_of(zombie), offsets)
    run_batch(runner_of(successor), offsets)
    with pytest.raises(QueryTakenOver):
        run_batch(runner_of(zombie), offsets)
    assert Tables(broker, topology.name)["n"].all() == {"k": 8}
    successor.release()
