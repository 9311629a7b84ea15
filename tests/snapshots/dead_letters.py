"""Dead letters in the format of a query, appended to a log by hand."""

from __future__ import annotations

from potok.log.broker import Broker
from potok.records.log_record import LogRecord

QUERY = "shop"
TOPIC = "shop-dead-letters"


def dead_letter(
    offset: int,
    *,
    topic: str = "orders",
    partition: int = 0,
    step: str = "parse",
    reason: str = "error",
    at: int = 1_000,
    record: LogRecord | None = None,
    **notes: str,
) -> LogRecord:
    """Return the dead letter of a record, by default of one that `fill` appends."""
    found = record or order(offset)
    named = {
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "step": step,
        "reason": reason,
        "error": "boom",
        "at": str(at),
        **notes,
    }
    headers = tuple((f"potok.{name}", text.encode()) for name, text in named.items())
    return LogRecord(found.key, found.value, 7, (*found.headers, *headers))


def order(offset: int) -> LogRecord:
    return LogRecord(b"k%d" % offset, b"order %d" % offset, 5_000 + offset, (("trace", b"%d" % offset),))


def fill(broker: Broker, *dead_letters: LogRecord, orders: int = 6, partitions: int = 1) -> None:
    broker.create_topic("orders", partitions)
    for partition in range(partitions):
        broker.append("orders", [order(offset) for offset in range(orders)], partition)
    broker.create_topic(TOPIC)
    if dead_letters:
        broker.append(TOPIC, list(dead_letters))
