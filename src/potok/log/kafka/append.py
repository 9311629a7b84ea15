"""Plain appends: one idempotent producer per process, whose acknowledgements return the positions."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from potok.log.broker import AppendResult
from potok.log.kafka.clients import Clients
from potok.log.kafka.errors import KafkaUnreachable
from potok.log.kafka.producer_records import Outgoing, outgoing
from potok.records.position import Position

Part = tuple[str, int, pa.RecordBatch]
"""A topic, a partition, and rows from `normalised`."""

DELIVERY_MS = 60_000
_POLL_S = 0.1
_FULL_S = 0.01


class Delivery:
    """Collects the delivery reports of one append."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.arrived = threading.Event()
        self.offsets: dict[tuple[str, int], list[int]] = {}
        self.error: KafkaError | None = None
        self.failed_topic = ""

    def report(self, error: KafkaError | None, message: Message) -> None:
        topic_partition = (message.topic() or "", message.partition() or 0)
        if error is None:
            self.offsets.setdefault(topic_partition, []).append(message.offset() or 0)
        elif self.error is None:
            self.error, self.failed_topic = error, topic_partition[0]
        self.expect_fewer(1)

    def expect_fewer(self, count: int) -> None:
        self._left -= count
        if self._left <= 0:
            self.arrived.set()


class Appender:
    """Appends wait for their own records, and share requests."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._closing = threading.Event()

    def append(self, parts: Sequence[Part]) -> list[AppendResult]:
        """Append all parts; durable on all in-sync replicas when it returns."""
        return [
            run
            for topic_partition, offsets in sorted(self._delivered(parts).items())
            for run in _runs(topic_partition[1], offsets)
        ]

    def append_parts(self, parts: Sequence[Part]) -> Position:
        """Append all parts; return the position after them."""
        delivered = self._delivered(parts)
        return Position.after((*topic_partition, max(offsets) + 1) for topic_partition, offsets in delivered.items())

    def _delivered(self, parts: Sequence[Part]) -> dict[tuple[str, int], list[int]]:
        """Append all parts; return the offsets of the records of each partition."""
        expected = sum(len(batch) for _, _, batch in parts)
        if expected == 0:
            return {}
        producer = self._running()
        delivery = Delivery(expected)
        sent = 0
        try:
            for topic, partition, batch in parts:
                for record in outgoing(batch):
                    send(producer, topic, partition, record, delivery)
                    sent += 1
        except KafkaException as error:
            raise self._clients.translated(error.args[0], topic) from error
        finally:
            delivery.expect_fewer(expected - sent)
            arrived = delivery.arrived.wait(2 * DELIVERY_MS / 1000)
        if not arrived:
            raise KafkaUnreachable(self._clients.options.bootstrap, "records were not acknowledged")
        if delivery.error is not None:
            raise self._clients.translated(delivery.error, delivery.failed_topic)
        return delivery.offsets

    def close(self) -> None:
        with self._lock:
            producer, self._producer = self._producer, None
            self._closing.set()
        if producer is not None:
            producer.flush(DELIVERY_MS / 1000)

    def _running(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = self._clients.producer(
                    enable_idempotence=True, acks="all", message_timeout_ms=DELIVERY_MS, **_quick(self._clients)
                )
                self._closing = threading.Event()
                arguments = (self._producer, self._closing)
                threading.Thread(target=self._serve, args=arguments, name="potok-kafka", daemon=True).start()
            return self._producer

    def _serve(self, producer: Producer, closing: threading.Event) -> None:
        """Serve delivery reports for all waiting threads."""
        failed = False
        while not closing.is_set() and not (failed and len(producer) == 0):
            try:
                producer.poll(_POLL_S)
            except (KafkaException, SystemError):
                # The producer has failed fatally; the next append creates another one.
                failed = True
                with self._lock:
                    if self._producer is producer:
                        self._producer = None


def send(producer: Producer, topic: str, partition: int, record: Outgoing, delivery: Delivery | None) -> None:
    """Pass one record to the client, waiting while its queue is full."""
    refreshed = False
    report = None if delivery is None else delivery.report
    while True:
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition,
                on_delivery=report,
                timestamp=record.timestamp_ms,
                headers=record.headers,
            )
            return
        except BufferError:
            producer.poll(_FULL_S)
        except KafkaException as error:
            if refreshed or error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            # The client does not know recently added partitions yet.
            producer.list_topics(topic, timeout=DELIVERY_MS / 1000)
            refreshed = True


def _quick(clients: Clients) -> dict[str, object]:
    """Do not linger: an append waits for its records."""
    return {} if {"linger.ms", "queue.buffering.max.ms"} & set(clients.options.values) else {"linger_ms": 0}


def _runs(partition: int, offsets: list[int]) -> Iterator[AppendResult]:
    """Merge consecutive offsets into results: other producers may write in between."""
    offsets.sort()
    first = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            yield AppendResult(partition, offsets[first], at - first)
            first = at
