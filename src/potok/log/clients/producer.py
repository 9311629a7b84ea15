"""Send records from a plain Python program."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from potok.clock import epoch_ms
from potok.duration import Duration, to_seconds
from potok.errors import LogError
from potok.log.broker import AppendResult, Broker
from potok.log.clients.encoding import to_bytes
from potok.log.errors import BrokerClosed, KeylessRecord, RecordTooLarge, TopicNotFound
from potok.log.open import open_broker
from potok.records.log_record import NO_TIMESTAMP, Headers, LogRecord

HeadersInput = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]

_BATCH_BYTES = 8 << 20

_logger = logging.getLogger("potok.log")


class Producer:
    """Collects records into batches and appends them; flushed records are durable.

    >>> with Producer("file:./data") as producer:
    ...     producer.send("orders", {"amount": 120.5}, key="user_001")

    A batch is written when it is full, when its first record has waited for `linger`, by `flush()` and at the
    end of the `with` block. The error of a failed append is raised by the call that made it or, if it was made in the
    background, by the next call; its records stay in the batch and are retried.

    Args:
        broker: A broker or its URL.
        batch_records: Write when this many records are pending.
        linger: Write at the latest after this time; 0 writes every record before `send` returns.
        encode: Encodes keys and values. By default bytes stay unchanged, text becomes
            UTF-8 and anything else JSON.
        create_topics: Create a topic that does not exist, with one partition.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        *,
        batch_records: int = 10_000,
        linger: Duration = "20 ms",
        encode: Callable[[object], bytes | None] = to_bytes,
        create_topics: bool = True,
    ) -> None:
        self.broker = broker if isinstance(broker, Broker) else open_broker(broker)
        self._batch_records = batch_records
        self._linger = to_seconds(linger)
        self._encode = encode
        self._create_topics = create_topics
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._waiting: dict[tuple[str, int | None], list[LogRecord]] = {}
        self._count = 0
        self._bytes = 0
        self._failed = False
        self._closed = False
        self._lingers = False
        self._partitions: dict[str, int] = {}
        self._keyed: set[str] = set()

    def send(
        self,
        topic: str,
        value: object,
        key: object = None,
        timestamp: int | datetime | None = None,
        headers: HeadersInput | None = None,
        partition: int | None = None,
    ) -> AppendResult | None:
        """Add one record to the batch. If this raises, the record was not added.

        If records are written one by one (`linger=0`), return the position of the record.

        Args:
            timestamp: Milliseconds since 1970, or a datetime; by default the time of the append.
            partition: Default: chosen by the key.
        """
        record = encoded_record(self._encode, value, key, timestamp, headers)
        with self._lock:
            size = self._admit(topic, partition, record)
            if self._failed or self._is_full() or self._would_reorder(topic, partition):
                self.flush()
            if self._linger <= 0:
                return self.broker.append(topic, [record], partition)[0]
            self._waiting.setdefault((topic, partition), []).append(record)
            self._count += 1
            self._bytes += size
            if not self._lingers:
                self._lingers = True
                # Not a daemon: the interpreter waits for it at exit, so that nothing stays unwritten.
                threading.Thread(target=self._flush_later, name="potok-producer").start()
        return None

    def flush(self) -> None:
        """Append all pending records; durable when this returns."""
        with self._lock:
            self._failed = False
            for topic_partition, records in list(self._waiting.items()):
                self.broker.append(topic_partition[0], records, topic_partition[1])
                del self._waiting[topic_partition]
                self._count -= len(records)
            self._bytes = 0

    def close(self) -> None:
        """Flush and close. If the flush fails, the producer stays open and keeps the records."""
        with self._lock:
            self.flush()
            self._closed = True
            self._closing.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _admit(self, topic: str, partition: int | None, record: LogRecord) -> int:
        """Check that a record can be appended; return its size."""
        size = len(record.key or b"") + len(record.value or b"")
        if size > self.broker.max_record_bytes:
            raise RecordTooLarge(size, self.broker.max_record_bytes)
        self._check(topic, partition)
        if record.key is None and topic in self._keyed:
            raise KeylessRecord(topic)
        return size

    def _check(self, topic: str, partition: int | None) -> None:
        if self._closed:
            raise BrokerClosed(self.broker.url)
        partitions = self._partitions.get(topic)
        if partitions is None:
            if self._create_topics:
                self.broker.create_topic(topic, exist_ok=True)
            described = self.broker.describe_topic(topic)
            partitions = self._partitions[topic] = len(described.partitions)
            if described.config.compacted:
                self._keyed.add(topic)
        if partition is not None and not 0 <= partition < partitions:
            raise TopicNotFound(topic, partition, partitions)

    def _is_full(self) -> bool:
        return self._count >= self._batch_records or self._bytes >= _BATCH_BYTES

    def _would_reorder(self, topic: str, partition: int | None) -> bool:
        """Records with and without a given partition are appended separately, so one batch of a topic has only one
        kind."""
        if partition is not None:
            return (topic, None) in self._waiting
        return any(topic_partition[0] == topic and topic_partition[1] is not None for topic_partition in self._waiting)

    def _flush_later(self) -> None:
        self._closing.wait(self._linger)
        with self._lock:
            self._lingers = False
            try:
                self.flush()
            except LogError as error:
                self._failed = True
                _logger.error("%d records could not be appended yet: %s", self._count, error)


def encoded_record(
    encode: Callable[[object], bytes | None],
    value: object,
    key: object,
    timestamp: int | datetime | None,
    headers: HeadersInput | None,
) -> LogRecord:
    return LogRecord(encode(key), encode(value), _milliseconds(timestamp), _headers(headers))


def _milliseconds(timestamp: int | datetime | None) -> int:
    if timestamp is None:
        return NO_TIMESTAMP
    return epoch_ms(timestamp) if isinstance(timestamp, datetime) else timestamp


def _headers(headers: HeadersInput | None) -> Headers:
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
