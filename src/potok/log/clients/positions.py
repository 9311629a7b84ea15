"""How far a consumer has come in each partition that it reads, and where it begins in one that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from potok.log.broker import Broker
from potok.log.groups.membership import Place
from potok.log.log_start import Floor

Told = Callable[[list[Place]], object]


class Positions:
    """The next offset of each partition; the listener of a membership, if the consumer is in a group.

    `begun` holds where partitions begin for which the group has committed nothing; the consumer commits that, so that
    the next owner misses nothing if this one dies.

    Args:
        ends: The ends of the topics when the consumer was made: where a reader begins who wants only what comes later.
        told_assigned: Called with partitions once their positions are known.
        told_revoked: Called with partitions while it is still possible to commit for them.
    """

    def __init__(
        self,
        broker: Broker,
        group: str | None,
        floor: Floor,
        ends: Mapping[str, Mapping[int, int]],
        from_beginning: bool,
        told_assigned: Told | None,
        told_revoked: Told | None,
    ) -> None:
        self._broker = broker
        self._group = group
        self.floor = floor
        self._ends = ends
        self._from_beginning = from_beginning
        self._told_assigned = told_assigned
        self._told_revoked = told_revoked
        self.next: dict[Place, int] = {}
        self.begun: dict[Place, int] = {}

    def assigned(self, places: Sequence[Place]) -> None:
        for topic in sorted({topic for topic, _ in places}):
            committed = {} if self._group is None else self._broker.committed(self._group, topic)
            firsts = self.floor.first_offsets(topic)
            for partition in (number for name, number in places if name == topic):
                if partition in committed:
                    self.next[topic, partition] = committed[partition]
                else:
                    # Of a partition that appeared after the consumer was made, it misses nothing.
                    first = firsts.get(partition, 0)
                    begin = first if self._from_beginning else self._ends[topic].get(partition, first)
                    self.next[topic, partition] = self.begun[topic, partition] = begin
        self.floor.look_now()
        if self._told_assigned is not None:
            self._told_assigned(list(places))

    def revoked(self, places: Sequence[Place]) -> None:
        try:
            if self._told_revoked is not None:
                self._told_revoked(list(places))
        finally:
            for place in places:
                self.next.pop(place, None)
                self.begun.pop(place, None)

    def pass_gaps(self) -> None:
        """Move the positions in front of which the log was cut off, or raise `FellBehind`."""
        self.next |= self.floor.raised(self.next)
