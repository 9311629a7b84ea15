from __future__ import annotations

from log.records import batch_of
from potok.log.embedded.embedded_broker import EmbeddedBroker


def test_the_first_record_at_or_after_a_time_is_found_across_segments(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=20_000)
    for n in range(60):
        broker.append("t", batch_of([b"x" * 1000] * 5, at=100 * n + 1))
    assert broker.describe_topic("t").partitions[0].segments > 10
    assert broker.offset_at("t", 0, 0) == 0
    assert broker.offset_at("t", 0, 3001) == 150
    assert broker.offset_at("t", 0, 3002) == 155
    assert broker.offset_at("t", 0, 9999) == 300


def test_times_out_of_order_give_the_first_that_is_late_enough(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=200_000)
    for at in (5, 100, 3, 50, 200, 1):
        broker.append("t", batch_of([b"x" * 50_000] * 3, at=at))
    assert broker.offset_at("t", 0, 6) == 3
    assert broker.offset_at("t", 0, 101) == 12


def test_an_empty_partition_answers_with_its_end(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    assert broker.offset_at("t", 0, 5) == 0
