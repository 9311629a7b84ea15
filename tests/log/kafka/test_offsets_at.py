from __future__ import annotations

from potok.log.kafka.kafka_broker import KafkaBroker
from potok.records.log_record import LogRecord


def test_offsets_at_a_time_are_those_of_the_first_record_as_late_in_each_partition(log: KafkaBroker) -> None:
    log.create_topic("t", 3)
    log.append("t", [LogRecord(b"k", b"v", at) for at in (10, 30, 20, 40)], 0)
    log.append("t", [LogRecord(b"k", b"v", at) for at in (5, 6)], 1)
    partitions = [("t", part) for part in range(3)]
    assert log.offsets_at(partitions, 20) == {("t", 0): 1, ("t", 1): 2, ("t", 2): 0}
    assert log.offsets_at(partitions, 6) == {("t", 0): 0, ("t", 1): 1, ("t", 2): 0}
    assert log.offset_at("t", 0, 41) == 4
