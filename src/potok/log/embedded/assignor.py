"""Assign the partitions of a group to its members: evenly, and with as few moves as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from potok.log.consumer_groups import PartitionId


def balance(
    members: Mapping[str, Collection[str]], partitions: Mapping[str, int], owners: Mapping[PartitionId, str]
) -> dict[PartitionId, str]:
    """Return the member of each partition; partitions without a reader are omitted.

    Deterministic: any member may compute the assignment for all of them.

    Args:
        members: The topics that each member reads.
        partitions: The number of partitions of each topic.
        owners: The current owner of each partition, which keeps it unless that would be uneven.
    """
    readers = {topic: sorted(name for name, wanted in members.items() if topic in wanted) for topic in partitions}
    plan = _Plan(readers)
    topic_partitions = [
        (topic, number) for topic in sorted(partitions) if readers[topic] for number in range(partitions[topic])
    ]
    for topic_partition in topic_partitions:
        owner = owners.get(topic_partition)
        if owner in readers[topic_partition[0]]:
            plan.assign(topic_partition, owner)
    for topic_partition in topic_partitions:
        if topic_partition not in plan.owner:
            plan.assign(topic_partition, plan.least_loaded(topic_partition[0]))
    while sum(plan.rebalance(topic_partition) for topic_partition in topic_partitions):
        pass
    return plan.owner


class _Plan:
    def __init__(self, readers: Mapping[str, list[str]]) -> None:
        self.owner: dict[PartitionId, str] = {}
        self._readers = readers
        self._load: Counter[str] = Counter()
        self._load_of_topic: Counter[tuple[str, str]] = Counter()

    def assign(self, topic_partition: PartitionId, member: str) -> None:
        before = self.owner.get(topic_partition)
        if before is not None:
            self._load[before] -= 1
            self._load_of_topic[before, topic_partition[0]] -= 1
        self.owner[topic_partition] = member
        self._load[member] += 1
        self._load_of_topic[member, topic_partition[0]] += 1

    def least_loaded(self, topic: str) -> str:
        """Return the member with the fewest partitions; among equals, the one with fewer of this topic, whose load
        comes in bursts."""
        return min(self._readers[topic], key=lambda name: (self._load[name], self._load_of_topic[name, topic], name))

    def rebalance(self, topic_partition: PartitionId) -> bool:
        """Move a partition if that makes the load more even. Each move does, so the moves terminate."""
        idle = self.least_loaded(topic_partition[0])
        if self._load[idle] + 1 >= self._load[self.owner[topic_partition]]:
            return False
        self.assign(topic_partition, idle)
        return True
