"""Receiving records in a plain Python program."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import pyarrow as pa

from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.errors import OffsetOutOfRange, TopicNotFound
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

Place = tuple[str, int]

_SHORTEST_WAIT = 0.001
_LONGEST_WAIT = 0.02


class ConsumedRecord(LogRecord):
    """A record with its position; the bytes are decoded only when asked for."""

    __slots__ = ()

    def json(self) -> Any:
        return None if self.value is None else orjson.loads(self.value)

    def text(self) -> str | None:
        return None if self.value is None else self.value.decode()

    def key_text(self) -> str | None:
        return None if self.key is None else self.key.decode()


class Consumer:
    """Reads topics record by record, partition by partition, and waits for more.

    >>> with Consumer("file:./data", "orders", group="billing") as consumer:
    ...     for record in consumer:
    ...         print(record.json())
    ...         consumer.commit()

    A consumer reads all partitions of its topics: a group remembers how far it came, it does not share the work.

    Args:
        broker: A broker or its URL.
        group: Go on where this group committed last.
        from_beginning: Where the group has committed nothing, start at the first record instead of the next one.
        until_end: Iterating ends at the records that were there when the consumer was made.
        batch_records: How many records of a partition are read at a time.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        from_beginning: bool = False,
        until_end: bool = False,
        batch_records: int = 10_000,
    ) -> None:
        self.broker = broker if isinstance(broker, Broker) else open_broker(broker)
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        self.group = group
        self._batch_records = batch_records
        ends = self.broker.end_offsets_of(self.topics)
        self._ends = ends if until_end else None
        self._positions: dict[Place, int] = {}
        for topic in self.topics:
            starts = self.broker.start_offsets(topic)
            committed = self.broker.committed(group, topic) if group is not None else {}
            for partition, start in starts.items():
                otherwise = start if from_beginning else ends[topic][partition]
                # What retention deleted in the meantime is skipped.
                self._positions[topic, partition] = max(committed.get(partition, otherwise), start)

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Every record as it arrives; for ever, unless `until_end`."""
        while True:
            found = False
            for batch, place in self._available(self._batch_records):
                found = True
                for record in _records(batch, place):
                    self._positions[place] = record.offset + 1
                    yield record
                    if self._positions[place] != record.offset + 1:
                        break  # the caller sought elsewhere
            if not found:
                if self._ends is not None:
                    return
                self._wait(None)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[ConsumedRecord]:
        """What is there, at most `max_records`; waits up to `timeout` seconds for the first."""
        found: list[ConsumedRecord] = []
        self._wait(timeout)
        for batch, place in self._available(max_records):
            found += _records(batch.slice(0, max_records - len(found)), place)
            self._positions[place] = found[-1].offset + 1
            if len(found) >= max_records:
                break
        return found

    def commit(self) -> None:
        """Remember that the group has dealt with all records handed out so far."""
        if self.group is None:
            raise LogError("a consumer without a group cannot commit", hint='pass group="..."')
        for topic in self.topics:
            offsets = {place[1]: position for place, position in self._positions.items() if place[0] == topic}
            self.broker.commit(self.group, topic, offsets)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on at `offset` of one partition."""
        if (topic, partition) not in self._positions:
            raise TopicNotFound(topic, partition, sum(place[0] == topic for place in self._positions))
        self._positions[topic, partition] = offset

    def positions(self) -> dict[Place, int]:
        """The next offset of each partition."""
        return dict(self._positions)

    def close(self) -> None:
        """Nothing is committed here, and the broker stays open for others."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _available(self, limit: int) -> Iterator[tuple[pa.RecordBatch, Place]]:
        """A piece of each partition in turn, so that a long one does not hold up the others."""
        limit = min(limit, self._batch_records)
        ends = self._ends or self.broker.end_offsets_of(self.topics)
        for place in list(self._positions):
            topic, partition = place
            position, end = self._positions[place], ends[topic][partition]
            if position >= end:
                continue
            for batch in self.broker.read(topic, partition, position, min(end, position + limit)):
                yield batch, place
                position += len(batch)
                if self._positions[place] != position:
                    break

    def _wait(self, timeout: float | None) -> None:
        """Until there is something to read, or the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _SHORTEST_WAIT
        while not self._has_more():
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                pause = min(pause, left)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_WAIT)

    def _has_more(self) -> bool:
        ends = self.broker.end_offsets_of(self.topics)
        for (topic, partition), position in self._positions.items():
            end = ends[topic][partition]
            if position > end:
                raise OffsetOutOfRange(topic, partition, (position, position), (0, end))
            if position < end:
                return True
        return False


def _records(batch: pa.RecordBatch, place: Place) -> Iterator[ConsumedRecord]:
    keys, values, times, ingested, headers, offsets = (column.to_pylist() for column in batch.columns)
    for row in range(len(batch)):
        listed = tuple((item["name"], item["value"]) for item in headers[row] or ())
        yield ConsumedRecord(
            keys[row], values[row], times[row], listed, place[0], place[1], offsets[row], ingested[row]
        )
