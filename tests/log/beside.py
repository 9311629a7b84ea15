"""The prelude of the programs that tests start as processes."""

from pathlib import Path

import pyarrow as pa

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord

__all__ = ["EmbeddedBroker", "LogRecord", "Path", "append_batches", "pa", "publish_batches", "say"]


def say(*words: object) -> None:
    """Tell the test; what was said before a kill is not lost."""
    print(*words, flush=True)


def append_batches(broker: EmbeddedBroker, first: int) -> None:
    """Batches `first` to 20, each of 30 records on 3 partitions."""
    broker.create_topic("t", 3, segment_bytes=2000, exist_ok=True)
    for n in range(first, 20):
        broker.append("t", [LogRecord(b"k%d" % row, b"%d:%d" % (n, row)) for row in range(30)])
        say(n)


PUBLISHED = {("a", 0): 1, ("a", 1): 100, ("b", 0): 40_000, ("b", 1): 0}
"""Records of a batch for each partition: none, a few (inline), so many that their file is adopted."""


def publish_batches(broker: EmbeddedBroker) -> None:
    """The batches after the last one published, up to 6."""
    for topic in ("a", "b"):
        broker.create_topic(topic, 2, segment_bytes=1 << 20, exist_ok=True)
    done = broker.get_metadata("batch")
    for n in range(int(done or b"-1") + 1, 6):
        staged = [
            broker.stage(broker.directory / "staging", topic, partition, values_batch(b"%d" % n, count))
            for (topic, partition), count in PUBLISHED.items()
        ]
        broker.publish(staged, {"batch": b"%d" % n}, {"batch": done})
        done = b"%d" % n
        say(n)


def values_batch(value: bytes, count: int) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([value] * count, pa.binary())})


def append_rounds(broker: EmbeddedBroker, rounds: int, first: int = 0) -> dict[bytes, bytes | None]:
    """Values for 40 keys, each round others, every fifth a tombstone; returns the last value of each key."""
    last: dict[bytes, bytes | None] = {}
    for n in range(first, first + rounds):
        values = {b"k%d" % row: None if (n + row) % 5 == 0 else b"%d:%d" % (n, row) * 10 for row in range(40)}
        records = [LogRecord(key, value, n) for key, value in values.items()]
        for at in range(0, 40, 10):
            broker.append("t", records[at : at + 10])
        last |= values
    return last
