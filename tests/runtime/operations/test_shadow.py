"""What may happen between a shadow's beginning and the swap. Batches run in this process; see also test_repair.py."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations.replay import PrefixReserved, start_replay
from potok.runtime.operations.shadow import NotAShadow, _begin, _position, catch_up, shadow_of, swap
from potok.runtime.planning.planner import Planner
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.spark.spark_executor import start_spark
from potok.testing.outputs import read_outputs

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus
    from potok.state.offsets import Ends
    from potok.topology.graph import Topology


class Died(Exception):
    """The process dies here."""


class OnKafka:
    """A query that multiplies numbers, its shadow, and the numbers."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker, self.name = broker, f"times-{uuid.uuid4().hex}"
        self.settings = Settings(broker=broker.url)
        broker.create_topic(f"{self.name}-in")

    def program(self, times: int) -> Topology:
        builder = StreamsBuilder(self.name)
        numbers = builder.stream(f"{self.name}-in", value=int).map_values(lambda v: v * times)
        numbers.to(f"{self.name}-out", partitions=1)
        return builder.build()

    def send(self, *numbers: int, partition: int = 0) -> None:
        self.broker.append(f"{self.name}-in", [LogRecord(b"k", b"%d" % number, 1_000) for number in numbers], partition)

    def run(self, topology: Topology, ends: Ends | None = None) -> None:
        """All that is there, or up to some offsets, in one batch."""
        topics = topology.source_topics
        prepared = prepare(topology, self.broker, self.settings)
        parts = prepared.plan, prepared.ledger, prepared.directory, prepared.metrics
        runner = BatchRunner(InProcessExecutor(), self.broker, *parts, prepared.state)
        target = ends or self.broker.end_offsets_of(topics)
        try:
            planner = Planner(self.broker, prepared.ledger, topics, {}, 1 << 40, 1 << 40, target)
            run_batch(runner, planner.next())
        finally:
            runner.close()
            prepared.release()

    def promote(self, topology: Topology) -> None:
        """As `potok promote` does, without Spark."""
        _begin(self.broker, self.name, self.settings)
        self.run(shadow_of(topology), _position(self.broker, self.name).offsets.topics)
        swap(self.broker, self.name)

    def out(self, prefix: str = "") -> list[int]:
        return [record.value for record in read_outputs(self.broker, f"{prefix}{self.name}-out")]


@pytest.fixture
def numbers(kafka: ServerStatus, tmp_path: Path) -> Iterator[OnKafka]:
    broker = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    assert isinstance(broker, KafkaBroker)
    yield OnKafka(broker)
    broker.close()


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Do something, and die between Kafka's commit and the ledger's."""

    def die(place: str) -> None:
        if place == "log.publish.sent":
            raise Died

    def do(work: Callable[[], None]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("potok.log.kafka.kafka_broker.failpoint", die)
            with pytest.raises(Died):
                work()

    return do


def test_a_query_that_died_with_its_output_out_is_promoted_and_nothing_comes_twice(numbers, dying) -> None:
    numbers.send(1, 2)
    numbers.run(numbers.program(1))
    numbers.send(3)
    dying(lambda: numbers.run(numbers.program(1)))
    numbers.send(4)

    numbers.promote(numbers.program(100))
    numbers.run(numbers.program(100))

    assert numbers.out() == [1, 2, 3, 400]
    assert numbers.out("shadow-") == [100, 200, 300]


def test_a_shadow_that_died_with_its_output_out_is_promoted_all_the_same(numbers, dying) -> None:
    numbers.send(1, 2)
    numbers.run(numbers.program(1))
    _begin(numbers.broker, numbers.name, numbers.settings)
    dying(lambda: numbers.run(shadow_of(numbers.program(100))))

    numbers.promote(numbers.program(100))
    numbers.send(3)
    numbers.run(numbers.program(100))

    assert numbers.out() == [1, 2, 300]
    assert numbers.out("shadow-") == [100, 200]


def test_partitions_that_were_added_since_the_query_stopped_are_read(numbers) -> None:
    numbers.send(1, 2)
    numbers.run(numbers.program(1))
    admin = AdminClient({"bootstrap.servers": numbers.broker.options.bootstrap})
    admin.create_partitions([NewPartitions(f"{numbers.name}-in", 2)])[f"{numbers.name}-in"].result()
    while numbers.broker.partitions(f"{numbers.name}-in") < 2:
        pass
    numbers.send(3, partition=1)

    numbers.promote(numbers.program(100))
    numbers.run(numbers.program(100))

    assert numbers.out() == [1, 2, 300]


def copying() -> StreamsBuilder:
    builder = StreamsBuilder("words")
    builder.stream("texts").to("copies")
    return builder


def test_a_replay_cannot_take_the_name_of_a_shadow(tmp_path: Path) -> None:
    with InProcess(copying(), directory=tmp_path) as driver:
        for prefix in ("shadow-", "shadow-more-"):
            with pytest.raises(PrefixReserved, match="--into try-"):
                start_replay(
                    copying().build(), driver.broker, 0, 1_000, prefix, Settings(broker=str(tmp_path)), start_spark
                )
        assert driver.broker.list_metadata("query/shadow-") == {}


def test_a_query_with_the_name_of_a_shadow_cannot_be_promoted(tmp_path: Path) -> None:
    settings = Settings(broker=str(tmp_path))
    InProcess(copying(), directory=tmp_path).close()
    with InProcess(shadow_of(copying().build()), directory=tmp_path) as impostor:
        impostor._prepared.release()
        with pytest.raises(NotAShadow, match="potok offsets reset shadow-words --forget"):
            catch_up(copying().build(), impostor.broker, settings, start_spark)
        with pytest.raises(NotAShadow):
            swap(impostor.broker, "words")
