"""Consumer groups of the embedded log show their lag and their rebalances."""

from __future__ import annotations

from pathlib import Path

from potok import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.monitoring.registry import Registry
from potok.records.log_record import LogRecord
from potok.runtime.monitoring.consumer_group_collector import ConsumerGroupCollector


def test_a_group_has_the_lag_of_its_committed_offsets_and_counts_rebalances(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.create_topic("t", 1)
    broker.append("t", [LogRecord(b"k", b"v", n) for n in range(10)])
    registry = Registry()
    registry.add(ConsumerGroupCollector(broker))
    with Consumer(broker, "t", group="billing") as first:
        first.poll()
        first.commit()
        broker.append("t", [LogRecord(b"k", b"v", n) for n in range(3)])
        before = series(registry)
        with Consumer(broker, "t", group="billing") as second:
            second.poll()
            after = series(registry)
    assert before['kafka_consumergroup_group_lag{group="billing",topic="t",partition="0"}'] == 3
    rebalances = 'potok_consumer_group_rebalances_total{group="billing"}'
    assert after[rebalances] > before[rebalances] > 0
    broker.close()


def series(registry: Registry) -> dict[str, float]:
    lines = registry.expose().body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
