"""The position of a consumer in each of its partitions, and the initial position of a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from potok.log.broker import Broker
from potok.log.consumer_groups import PartitionId
from potok.log.log_start import LogStart

PartitionCallback = Callable[[list[PartitionId]], object]


class Positions:
    """The next offset of each partition; the listener of a membership, if the consumer is in a group.

    `initial` holds the initial positions of partitions for which the group has committed nothing; the consumer
    commits them, so that the next owner skips nothing if this one dies.

    Args:
        begin: Where partitions begin for which the group has committed nothing; others begin at their first record.
        on_assigned: Called with partitions once their positions are known.
        on_revoked: Called with partitions while a commit is still possible for them.
    """

    def __init__(
        self,
        broker: Broker,
        group: str | None,
        log_start: LogStart,
        start: Mapping[str, Mapping[int, int]],
        on_assigned: PartitionCallback | None,
        on_revoked: PartitionCallback | None,
    ) -> None:
        self._broker = broker
        self._group = group
        self.log_start = log_start
        self._start = start
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self.next: dict[PartitionId, int] = {}
        self.initial: dict[PartitionId, int] = {}

    def assigned(self, topic_partitions: Sequence[PartitionId]) -> None:
        for topic in sorted({topic for topic, _ in topic_partitions}):
            committed = {} if self._group is None else self._broker.committed(self._group, topic)
            firsts = self.log_start.first_offsets(topic)
            for partition in (number for name, number in topic_partitions if name == topic):
                if partition in committed:
                    self.next[topic, partition] = committed[partition]
                else:
                    # Read a partition that was added after the consumer was created from its start.
                    first = firsts.get(partition, 0)
                    start = self._start.get(topic, {}).get(partition, first)
                    self.next[topic, partition] = self.initial[topic, partition] = start
        self.log_start.check_next()
        if self._on_assigned is not None:
            self._on_assigned(list(topic_partitions))

    def revoked(self, topic_partitions: Sequence[PartitionId]) -> None:
        try:
            if self._on_revoked is not None:
                self._on_revoked(list(topic_partitions))
        finally:
            for topic_partition in topic_partitions:
                self.next.pop(topic_partition, None)
                self.initial.pop(topic_partition, None)

    def pass_gaps(self) -> None:
        """Move the positions whose records were deleted, or raise `FellBehindError`."""
        self.next |= self.log_start.raised(self.next)
