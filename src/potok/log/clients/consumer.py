"""Receiving records in a plain Python program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from potok.duration import Duration, to_ms
from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.clients.positions import Positions
from potok.log.errors import OffsetOutOfRange, PartitionsMoved, TopicNotFound
from potok.log.groups.membership import DEFAULT_LEASE_MS, DEFAULT_MAX_PAUSE_MS, Membership, Place
from potok.log.log_start import Floor, OnLost
from potok.log.open import open_broker

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
    group gets all records, and goes on where it committed last. A consumer without a group reads all partitions.

    Args:
        broker: A broker or its URL.
        group: Share the work with the other consumers of this group.
        from_beginning: Where the group has committed nothing, start at the first record instead of the next one.
        until_end: Iterating ends at the records that were there when the consumer was made.
        batch_records: How many records of a partition are read at a time.
        on_lost: What to do when records were deleted before this consumer came to them: "stop" raises `FellBehind`,
            "jump" goes on behind the gap with a warning, "archive" reads them from the topic's archive.
        on_assign: Called with the partitions that this consumer is given, once it knows where they begin.
        on_revoke: Called with the partitions that go to another consumer, as long as `commit` still counts for them;
            also when the consumer is closed, unless an error ended its `with` block.
        lease: The partitions of a consumer that was killed go to the others after so long.
        max_pause: A consumer that asks for no record for so long loses its partitions as well.
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
        on_lost: OnLost = "stop",
        on_assign: Callable[[list[Place]], object] | None = None,
        on_revoke: Callable[[list[Place]], object] | None = None,
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
        floor = Floor(self.broker, "the consumer" if group is None else f'group "{group}"', on_lost)
        self._membership: Membership | None = None
        self._at = Positions(self.broker, group, floor, ends, from_beginning, on_assign, on_revoke)
        if group is None:
            self._at.assigned([(topic, partition) for topic in self.topics for partition in ends[topic]])
        else:
            self._membership = self.broker.join_group(
                group, self.topics, self._at, lease_ms=to_ms(lease), max_pause_ms=to_ms(max_pause)
            )

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Every record as it arrives; for ever, unless `until_end`."""
        while True:
            found = False
            for batch, place in self._available(self._batch_records):
                found = True
                expected = self._at.next[place]
                for record in records_of(batch, place):
                    self._refresh()
                    if self._at.next.get(place) != expected:
                        break  # the caller sought elsewhere, or another member reads this partition
                    self._at.next[place] = expected = record.offset + 1
                    yield record
            if found:
                continue
            if self._ends is None:
                self._wait(None)
            elif self.at_end():
                return
            else:
                time.sleep(_LONGEST_WAIT)  # a partition is on its way to this consumer

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[ConsumedRecord]:
        """What is there, at most `max_records`; waits up to `timeout` seconds for the first."""
        found: list[ConsumedRecord] = []
        self._wait(timeout)
        for batch, place in self._available(max_records):
            found += records_of(batch.slice(0, max_records - len(found)), place)
            self._at.next[place] = found[-1].offset + 1
            if len(found) >= max_records:
                break
        return found

    def at_end(self) -> bool:
        """With `until_end`: whether all records that were there, and that this consumer is to read, are handed out."""
        if self._ends is None or not (self._membership is None or self._membership.settled):
            return False
        return all(position >= self._ends[topic].get(part, 0) for (topic, part), position in self._at.next.items())

    def commit(self) -> None:
        """Remember that the group has dealt with all records handed out so far.

        Raises `PartitionsMoved`, and commits nothing, if a partition went to another consumer in the meantime.
        """
        membership = self._membership
        if membership is None:
            raise LogError("a consumer without a group cannot commit", hint='pass group="..."')
        if self._closed:
            raise LogError("a closed consumer cannot commit", hint="commit before the end of the with block")
        membership.commit(self._at.next)
        self._at.begun.clear()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on at `offset` of one partition that this consumer reads."""
        self._refresh()
        if (topic, partition) not in self._at.next:
            if self.group is not None and partition in range(self.broker.partitions(topic)):
                raise LogError(
                    f'this consumer does not read "{topic}" partition {partition}: another one of its group does',
                    hint="seek in on_assign=, where the partitions are known",
                )
            raise TopicNotFound(topic, partition, self.broker.partitions(topic))
        self._at.next[topic, partition] = offset

    def positions(self) -> dict[Place, int]:
        """The next offset of each partition that this consumer reads."""
        self._refresh()
        return dict(self._at.next)

    def assignment(self) -> list[Place]:
        """The partitions that this consumer reads: all of its topics, or its share of the group's."""
        return sorted(self.positions())

    def close(self) -> None:
        """Leave the group. Nothing is committed here, unless `on_revoke` does, and the broker stays open for others."""
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
        """Hear from the group. The callbacks run here, and may call the consumer themselves."""
        membership = self._membership
        if membership is None or self._refreshing or self._closed:
            return
        if not membership.changed() and not self._at.begun:
            return
        self._refreshing = True
        try:
            membership.refresh()
            begun, self._at.begun = self._at.begun, {}
            with suppress(PartitionsMoved):  # the next refresh tells which
                membership.commit(begun)
        finally:
            self._refreshing = False

    def _available(self, limit: int) -> Iterator[tuple[pa.RecordBatch, Place]]:
        """A piece of each partition in turn, so that a long one does not hold up the others."""
        limit = min(limit, self._batch_records)
        self._refresh()
        self._at.pass_gaps()
        ends = self._ends or self.broker.end_offsets_of(self.topics)
        for place in list(self._at.next):
            found = False
            # Offsets may hold nothing: compaction leaves gaps, and so do Kafka's transactions.
            while not found and self._at.next.get(place, 0) < ends[place[0]].get(place[1], 0):
                for batch in self._piece(place, limit, ends[place[0]][place[1]]):
                    found = True
                    yield batch, place

    def _piece(self, place: Place, limit: int, end: int) -> Iterator[pa.RecordBatch]:
        """The next `limit` offsets of a partition; the position is behind them if the caller took all records."""
        position = self._at.next[place]
        end = min(end, position + limit)
        try:
            for batch in filter(len, self.broker.read(*place, position, end)):
                yield batch
                position = batch.column("offset")[-1].as_py() + 1
                if self._at.next.get(place) != position:
                    return  # the caller sought elsewhere, or has enough
        except OffsetOutOfRange:
            self._at.floor.look_now()
            self._at.pass_gaps()
            if self._at.next.get(place) == position:
                raise
        if self._at.next.get(place) == position:
            self._at.next[place] = end

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
        self._refresh()
        ends = self.broker.end_offsets_of(self.topics)
        for (topic, partition), position in self._at.next.items():
            end = ends[topic].get(partition, 0)
            if position > end:
                raise OffsetOutOfRange(topic, partition, (position, position), (0, end))
            if position < end:
                return True
        return False
