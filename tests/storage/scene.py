"""A data directory with everything that Potok stores in one, and what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.clients.consumer import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.verify_data import verify_data
from potok.state.lmdb.environment import close_environment
from tests.kill import orders_program, without_spark
from tests.kill.answer import Answer, check

RECORDS, READ = 1_200, 700
"""Records in the log, and how many of them the query has read."""

QUERY = "orders-query"
PLAIN = ("orders", "parts", "latest")
"""Topics that no query writes to: one of small segments with an archive, and one that is compacted."""

Row = tuple[int, int, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Expected:
    """The contents of an undamaged directory, before the query resumes and after."""

    topics: dict[str, list[Row]]
    committed: dict[str, dict[int, int]]
    before: Answer
    after: Answer


def build(directory: Path) -> Expected:
    """Fill a directory: sealed, compacted and archived segments, a consumer group, and a query in the middle."""
    broker = EmbeddedBroker(directory)
    broker.create_topic("orders", 2)
    records = [LogRecord(*orders_program.record(number)) for number in range(RECORDS)]
    broker.append("orders", records[:READ])
    broker.create_topic("parts", 1, segment_bytes=4_000, archive=directory / "archive")
    broker.create_topic("latest", 1, segment_bytes=4_000, cleanup_policy="compact")
    for start in range(0, 300, 20):
        broker.append("parts", [LogRecord(b"%d" % n, b"part %d" % n * 20, n) for n in range(start, start + 20)])
        broker.append("latest", [LogRecord(b"%d" % (n % 7), b"last %d" % n * 20, n) for n in range(start, start + 20)])
    broker.archive_topic("parts")
    broker.compact_topic("latest")
    consumer = Consumer(broker, ["parts"], group="readers", start="earliest")
    consumer.poll(max_records=50)
    consumer.commit()
    consumer.close()
    broker.close()
    run(directory)
    broker = EmbeddedBroker(directory)
    middle = broker.end_offsets("orders")
    broker.append("orders", records[READ:])
    expected = Expected(
        {topic: rows(broker, topic) for topic in PLAIN},
        committed(broker),
        Answer(broker, middle),
        Answer(broker, broker.end_offsets("orders")),
    )
    broker.close()
    return expected


def run(directory: Path) -> None:
    """Let the query read to the end, in this process."""
    without_spark.main(f"file:{directory}", 200, "")
    for shard in (directory / "queries" / QUERY / "state").glob("*"):
        close_environment(shard)


def rows(broker: Broker, topic: str) -> list[Row]:
    found: list[Row] = []
    ends, starts = broker.end_offsets(topic), broker.earliest_offsets(topic)
    for partition, end in ends.items():
        for batch in broker.read(topic, partition, starts[partition], end):
            columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
            found += [(partition, *row) for row in zip(*columns, strict=True)]
    return found


def committed(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"readers": broker.committed("readers", "parts")}


def look(directory: Path, expected: Expected) -> None:
    """Compare everything that can be read with the expected contents."""
    broker = EmbeddedBroker(directory)
    try:
        for topic, right in expected.topics.items():
            assert rows(broker, topic) == right, f"topic {topic}"
        assert committed(broker) == expected.committed
        check(broker, answer=expected.before)
    finally:
        broker.close()


def go_on(directory: Path, expected: Expected) -> None:
    """Let the query read the rest, and compare."""
    run(directory)
    broker = EmbeddedBroker(directory)
    try:
        check(broker, answer=expected.after)
    finally:
        broker.close()


def verify(directory: Path) -> None:
    """Read everything, and raise the first damage found."""
    for part in verify_data(directory):
        if part.damage:
            assert "process that read it" not in part.damage, part.damage
            raise PotokError(part.damage, hint=part.hint)
