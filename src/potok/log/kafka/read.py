"""Read a range of offsets with a consumer that is assigned to each range and reused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from potok.errors import LogError
from potok.log.broker import READ_SCHEMA
from potok.log.errors import OffsetOutOfRange, TopicNotFound
from potok.log.kafka.admin.offsets import Positions
from potok.log.kafka.admin.topics import KnownTopic
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.kafka.errors import KafkaUnreachable

BATCH_RECORDS = 65_536
BATCH_BYTES = 64 << 20
_PIECE = 10_000
_WAIT_S = 0.2

_MOST_IDLE = 8
"""Each holds connections and threads; a process seldom reads more ranges at the same time."""

_OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)


class Readers:
    """A pool of consumers. One that has read a topic before already knows its leader."""

    def __init__(self, clients: Clients, positions: Positions) -> None:
        self._clients, self._positions = clients, positions
        self._lock = threading.Lock()
        self._idle: list[Reader] = []

    def read(self, topic: KnownTopic, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range. Control records, aborted and compacted ones leave gaps."""
        if start == end:
            return
        reader = self._take(topic)
        usable = False
        try:
            yield from reader.batches(topic.name, partition, start, end)
            usable = True
        except GeneratorExit:
            usable = True
            raise
        except _OutOfRange as error:
            raise self._explained(topic.name, partition, start, end) from error
        finally:
            self._give_back(reader, usable)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.close()

    def _take(self, topic: KnownTopic) -> Reader:
        with self._lock:
            for reader in self._idle:
                if topic in reader.knows:
                    self._idle.remove(reader)
                    return reader
        # A consumer that has to fetch the metadata of another topic is slower than a new one.
        return Reader(self._clients, topic, self._positions)

    def _give_back(self, reader: Reader, usable: bool) -> None:
        spare: Reader | None = reader
        if usable:
            reader.rest()
            with self._lock:
                self._idle.append(reader)
                spare = self._idle.pop(0) if len(self._idle) > _MOST_IDLE else None
        if spare is not None:
            spare.close()

    def _explained(self, topic: str, partition: int, start: int, end: int) -> LogError:
        first = self._positions.starts(topic)[partition]
        last = self._positions.ends([topic])[topic][partition]
        return OffsetOutOfRange(topic, partition, (start, end), (first, last))


class _OutOfRange(Exception):
    """Kafka does not hold the whole range."""


class Reader:
    """A consumer without a group, assigned manually."""

    def __init__(self, clients: Clients, topic: KnownTopic, positions: Positions) -> None:
        self._clients, self._positions = clients, positions
        self.knows = {topic}
        # Records fetched beyond the end of a range are discarded, so limit prefetching.
        self._consumer: Consumer = clients.reader(queued_max_messages_kbytes=4 << 10)

    def batches(self, topic: str, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        try:
            self._consumer.assign([TopicPartition(topic, partition, start)])
        except KafkaException as error:
            raise self._clients.translated(error.args[0], topic) from error
        held: list[Message] = []
        size = 0
        for piece in self._pieces(topic, partition, start, end):
            held += piece
            size += sum(map(len, piece))
            if len(held) >= BATCH_RECORDS or size >= BATCH_BYTES:
                yield read_batch(held[:BATCH_RECORDS])
                held, size = held[BATCH_RECORDS:], 0
        if held:
            yield read_batch(held)

    def rest(self) -> None:
        self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()

    def _pieces(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[Message]]:
        position = start
        deadline = time.monotonic() + TIMEOUT_S
        while position < end:
            # A request for many records waits for all of them: so fetch those at hand first, then a single one.
            wanted = min(_PIECE, end - position)
            try:
                messages = self._consumer.consume(wanted, 0) or self._consumer.consume(1, _WAIT_S)
            except KafkaException as failure:
                raise self._clients.translated(failure.args[0], topic) from failure
            records = messages
            if any(map(Message.error, messages)):
                records = [message for message in messages if message.error() is None]
                for message in messages:
                    if (error := message.error()) is not None:
                        position = max(position, self._at_end(error, message, topic, partition, end))
            if records:
                position = max(position, _offset(records[-1]) + 1)
                if position > end:
                    records = [record for record in records if _offset(record) < end]
            if messages:
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise KafkaUnreachable(self._clients.options.bootstrap, f'no records of "{topic}" arrived')
            yield records

    def _at_end(self, error: KafkaError, message: Message, topic: str, partition: int, end: int) -> int:
        """Return the offset at which the data ends, if the error says so."""
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if _offset(message) < end and self._positions.ends([topic])[topic][partition] < end:
                raise _OutOfRange
            return _offset(message)
        if code in _OUT_OF_RANGE:
            raise _OutOfRange
        if code in _PASSING:
            return 0
        if code in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise TopicNotFound(topic)
        raise self._clients.translated(error, topic)


def read_batch(messages: list[Message]) -> pa.RecordBatch:
    """Convert messages into a batch of READ_SCHEMA. Kafka stores one time per record, which is used as ingestion time
    too."""
    count = len(messages)
    times = pa.array(np.fromiter((message.timestamp()[1] for message in messages), np.int64, count))
    headers = list(map(Message.headers, messages))
    headers_type = READ_SCHEMA.field("headers").type
    columns = [
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        times,
        times,
        pa.array(_listed(headers), headers_type) if any(headers) else pa.nulls(count, headers_type),
        pa.array(_offsets(messages)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READ_SCHEMA)


def _offsets(messages: list[Message]) -> npt.NDArray[np.int64]:
    first, last = _offset(messages[0]), _offset(messages[-1])
    if last - first + 1 == len(messages):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(_offset, messages), np.int64, len(messages))


def _listed(headers: Sequence[object]) -> list[list[dict[str, object]] | None]:
    found: list[list[dict[str, object]] | None] = [None] * len(headers)
    for row, listed in enumerate(headers):
        if isinstance(listed, list) and listed:
            found[row] = [{"name": name, "value": value} for name, value in listed]
    return found


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset
