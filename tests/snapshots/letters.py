"""Dead letters as a query writes them, put into a log by hand."""

from __future__ import annotations

from potok.log.broker import Broker
from potok.records.log_record import LogRecord

QUERY = "shop"
TOPIC = "shop-dead-letters"


def letter(
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
    """The letter of a record, by default of that which `fill` puts there."""
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


def fill(broker: Broker, *letters: LogRecord, orders: int = 6, partitions: int = 1) -> None:
    broker.create_topic("orders", partitions)
    for partition in range(partitions):
        broker.append("orders", [order(offset) for offset in range(orders)], partition)
    broker.create_topic(TOPIC)
    if letters:
        broker.append(TOPIC, list(letters))
