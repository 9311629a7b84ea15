"""Consume records in a plain Python program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from potok.duration import Duration, to_ms, to_seconds
from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.clients.positions import Positions
from potok.log.consumer_groups import DEFAULT_LEASE_MS, DEFAULT_MAX_PAUSE_MS, Membership, PartitionId
from potok.log.errors import OffsetOutOfRange, PartitionsMovedError, TopicNotFound
from potok.log.log_start import LogStart, OnLost
from potok.log.open import open_broker
from potok.log.start import Start, start_offsets

_SHORTEST_WAIT = 0.001
_LONGEST_WAIT = 0.02
_SHORTEST_LEASE_MS = 100


class Consumer:
    """Reads topics record by record, partition by partition, and waits for more.

    >>> with Consumer("file:./data", "orders", group="billing") as consumer:
    ...     for record in consumer:
    ...         print(record.json())
    ...         consumer.commit()

    Consumers of one group, in any number of processes, share the partitions: each record goes to one of them. Every
    group gets all records, and resumes after its last commit. A consumer without a group reads all partitions.

    Args:
        broker: A broker or its URL.
        group: Share the partitions with the other consumers of this group.
        start: Where to begin if the group has committed nothing: "earliest", "latest", a datetime, or offsets by topic
            and partition.
        until_end: Stop iterating at the records that existed when the consumer was created.
        batch_records: How many records of a partition are read at a time.
        on_lost: What to do if records were deleted before this consumer read them: "stop" raises `FellBehindError`,
            "jump" continues after the gap with a warning, "archive" reads them from the topic's archive.
        on_assign: Called with newly assigned partitions, once their positions are known.
        on_revoke: Called with the partitions to be revoked, while `commit` is still possible for them;
            also when the consumer is closed, unless an error ended its `with` block.
        lease: After this time the partitions of a killed consumer are reassigned.
        max_pause: A consumer that does not poll for this long loses its partitions too.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        batch_records: int = 10_000,
        on_lost: OnLost = "stop",
        on_assign: Callable[[list[PartitionId]], object] | None = None,
        on_revoke: Callable[[list[PartitionId]], object] | None = None,
        lease: Duration = DEFAULT_LEASE_MS / 1000,
        max_pause: Duration = DEFAULT_MAX_PAUSE_MS / 1000,
    ) -> None:
        if to_ms(lease) < _SHORTEST_LEASE_MS:
            raise LogError(
                f"a lease of {to_ms(lease)} ms cannot be renewed in time", hint=f"use {_SHORTEST_LEASE_MS} ms or more"
            )
        self.broker = broker if isinstance(broker, Broker) else open_broker(broker)
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        self.group = group
        self._batch_records = batch_records
        self._refreshing = False
        self._closed = False
        ends = self.broker.end_offsets_of(self.topics)
        self._ends = ends if until_end else None
        log_start = LogStart(self.broker, "the consumer" if group is None else f'group "{group}"', on_lost)
        self._membership: Membership | None = None
        begin = ends if start == "latest" else start_offsets(self.broker, self.topics, start)
        self._at = Positions(self.broker, group, log_start, begin, on_assign, on_revoke)
        if group is None:
            self._at.assigned([(topic, partition) for topic in self.topics for partition in ends[topic]])
        else:
            self._membership = self.broker.join_group(
                group, self.topics, self._at, lease_ms=to_ms(lease), max_pause_ms=to_ms(max_pause)
            )

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Yield every record as it arrives; forever, unless `until_end`."""
        while True:
            found = False
            for batch, topic_partition in self._available(self._batch_records):
                found = True
                expected = self._at.next[topic_partition]
                for record in records_of(batch, topic_partition):
                    self._refresh()
                    if self._at.next.get(topic_partition) != expected:
                        break  # the caller has called seek(), or the partition was revoked
                    self._at.next[topic_partition] = expected = record.offset + 1
                    yield record
            if found:
                continue
            if self._ends is None:
                self._wait(None)
            elif self.at_end():
                return
            else:
                time.sleep(_LONGEST_WAIT)  # a partition is about to be assigned

    def poll(self, timeout: Duration = 0, max_records: int = 10_000) -> list[ConsumedRecord]:
        """Return available records, at most `max_records`; wait up to `timeout` seconds for the first."""
        found: list[ConsumedRecord] = []
        self._wait(to_seconds(timeout))
        for batch, topic_partition in self._available(max_records):
            found += records_of(batch.slice(0, max_records - len(found)), topic_partition)
            self._at.next[topic_partition] = found[-1].offset + 1
            if len(found) >= max_records:
                break
        return found

    def at_end(self) -> bool:
        """With `until_end`: whether all records that existed at the start, of this consumer's partitions, were
        returned."""
        if self._ends is None or not (self._membership is None or self._membership.settled):
            return False
        return all(position >= self._ends[topic].get(part, 0) for (topic, part), position in self._at.next.items())

    def commit(self) -> None:
        """Commit all records returned so far for the group.

        Raises `PartitionsMovedError`, and commits nothing, if a partition was reassigned to another consumer.
        """
        membership = self._membership
        if membership is None:
            raise LogError("a consumer without a group cannot commit", hint='pass group="..."')
        if self._closed:
            raise LogError("a closed consumer cannot commit", hint="commit before the end of the with block")
        membership.commit(self._at.next)
        self._at.initial.clear()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at `offset` of one partition of this consumer."""
        self._refresh()
        if (topic, partition) not in self._at.next:
            if self.group is not None and partition in range(self.broker.partitions(topic)):
                raise LogError(
                    f'this consumer does not read "{topic}" partition {partition}: another member of its group does',
                    hint="seek in on_assign=, where the partitions are known",
                )
            raise TopicNotFound(topic, partition, self.broker.partitions(topic))
        self._at.next[topic, partition] = offset

    def positions(self) -> dict[PartitionId, int]:
        """The next offset of each partition of this consumer."""
        self._refresh()
        return dict(self._at.next)

    def assignment(self) -> list[PartitionId]:
        """The partitions of this consumer: all of its topics, or those assigned by its group."""
        return sorted(self.positions())

    def close(self) -> None:
        """Leave the group. Commits nothing, unless `on_revoke` does; the broker stays open for others."""
        try:
            if not self._closed and self._membership is not None and self._at.next:
                self._at.revoked(sorted(self._at.next))
        finally:
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error, on_revoke is not called: it would commit the record that caused it.
        if error is None:
            self.close()
        else:
            self._leave()

    def _leave(self) -> None:
        if not self._closed:
            self._closed = True
            if self._membership is not None:
                self._membership.close()

    def _refresh(self) -> None:
        """Update the assignment. The callbacks run here, and may call the consumer."""
        membership = self._membership
        if membership is None or self._refreshing or self._closed:
            return
        if not membership.changed() and not self._at.initial:
            return
        self._refreshing = True
        try:
            membership.refresh()
            started, self._at.initial = self._at.initial, {}
            with suppress(PartitionsMovedError):  # the next refresh reports them
                membership.commit(started)
        finally:
            self._refreshing = False

    def _available(self, limit: int) -> Iterator[tuple[pa.RecordBatch, PartitionId]]:
        """Yield a chunk of each partition in turn, so that a long one does not delay the others."""
        limit = min(limit, self._batch_records)
        self._refresh()
        self._at.pass_gaps()
        ends = self._ends or self.broker.end_offsets_of(self.topics)
        for topic_partition in list(self._at.next):
            found = False
            # Offsets may have no record: compaction and Kafka's transactions leave gaps.
            while not found and self._at.next.get(topic_partition, 0) < ends[topic_partition[0]].get(
                topic_partition[1], 0
            ):
                for batch in self._chunk(topic_partition, limit, ends[topic_partition[0]][topic_partition[1]]):
                    found = True
                    yield batch, topic_partition

    def _chunk(self, topic_partition: PartitionId, limit: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the next `limit` offsets of a partition; the position is after them if the caller consumed all
        records."""
        position = self._at.next[topic_partition]
        end = min(end, position + limit)
        try:
            for batch in filter(len, self.broker.read(*topic_partition, position, end)):
                yield batch
                position = batch.column("offset")[-1].as_py() + 1
                if self._at.next.get(topic_partition) != position:
                    return  # the caller has called seek(), or stopped
        except OffsetOutOfRange:
            self._at.log_start.check_next()
            self._at.pass_gaps()
            if self._at.next.get(topic_partition) == position:
                raise
        if self._at.next.get(topic_partition) == position:
            self._at.next[topic_partition] = end

    def _wait(self, timeout: float | None) -> None:
        """Wait until there is something to read, or the timeout is over."""
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
        self._refresh()
        ends = self.broker.end_offsets_of(self.topics)
        for (topic, partition), position in self._at.next.items():
            end = ends[topic].get(partition, 0)
            if position > end:
                raise OffsetOutOfRange(topic, partition, (position, position), (0, end))
            if position < end:
                return True
        return False
