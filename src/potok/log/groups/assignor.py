"""Assign the partitions of a group to its members: evenly, and with as few moves as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from potok.log.groups.membership import Place


def balance(
    members: Mapping[str, Collection[str]], partitions: Mapping[str, int], owners: Mapping[Place, str]
) -> dict[Place, str]:
    """Return the member of each partition; partitions without a reader are omitted.

    Deterministic: any member may compute the assignment for all of them.

    Args:
        members: The topics that each member reads.
        partitions: The number of partitions of each topic.
        owners: The current owner of each partition, which keeps it unless that would be uneven.
    """
    readers = {topic: sorted(name for name, wanted in members.items() if topic in wanted) for topic in partitions}
    plan = _Plan(readers)
    places = [(topic, number) for topic in sorted(partitions) if readers[topic] for number in range(partitions[topic])]
    for place in places:
        owner = owners.get(place)
        if owner in readers[place[0]]:
            plan.assign(place, owner)
    for place in places:
        if place not in plan.owner:
            plan.assign(place, plan.least_loaded(place[0]))
    while sum(plan.rebalance(place) for place in places):
        pass
    return plan.owner


class _Plan:
    def __init__(self, readers: Mapping[str, list[str]]) -> None:
        self.owner: dict[Place, str] = {}
        self._readers = readers
        self._load: Counter[str] = Counter()
        self._load_of_topic: Counter[tuple[str, str]] = Counter()

    def assign(self, place: Place, member: str) -> None:
        before = self.owner.get(place)
        if before is not None:
            self._load[before] -= 1
            self._load_of_topic[before, place[0]] -= 1
        self.owner[place] = member
        self._load[member] += 1
        self._load_of_topic[member, place[0]] += 1

    def least_loaded(self, topic: str) -> str:
        """Return the member with the fewest partitions; among equals, the one with fewer of this topic, whose load
        comes in bursts."""
        return min(self._readers[topic], key=lambda name: (self._load[name], self._load_of_topic[name, topic], name))

    def rebalance(self, place: Place) -> bool:
        """Move a partition if that makes the load more even. Each move does, so the moves terminate."""
        idle = self.least_loaded(place[0])
        if self._load[idle] + 1 >= self._load[self.owner[place]]:
            return False
        self.assign(place, idle)
        return True
