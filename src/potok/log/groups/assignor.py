"""Which member of a group reads which partition: evenly, and with as few moves as that takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from potok.log.groups.membership import Place


def balance(
    members: Mapping[str, Collection[str]], partitions: Mapping[str, int], owners: Mapping[Place, str]
) -> dict[Place, str]:
    """The member that each partition should go to; partitions that nobody wants are left out.

    The same answer for the same arguments, whoever asks: any member may compute it for all of them.

    Args:
        members: The topics that each member reads.
        partitions: How many there are of each topic.
        owners: Who reads a partition at present; it stays there unless that would be uneven.
    """
    readers = {topic: sorted(name for name, wanted in members.items() if topic in wanted) for topic in partitions}
    plan = _Plan(readers)
    places = [(topic, number) for topic in sorted(partitions) if readers[topic] for number in range(partitions[topic])]
    for place in places:
        owner = owners.get(place)
        if owner in readers[place[0]]:
            plan.give(place, owner)
    for place in places:
        if place not in plan.owner:
            plan.give(place, plan.idlest(place[0]))
    while sum(plan.relieve(place) for place in places):
        pass
    return plan.owner


class _Plan:
    def __init__(self, readers: Mapping[str, list[str]]) -> None:
        self.owner: dict[Place, str] = {}
        self._readers = readers
        self._load: Counter[str] = Counter()
        self._load_of_topic: Counter[tuple[str, str]] = Counter()

    def give(self, place: Place, member: str) -> None:
        before = self.owner.get(place)
        if before is not None:
            self._load[before] -= 1
            self._load_of_topic[before, place[0]] -= 1
        self.owner[place] = member
        self._load[member] += 1
        self._load_of_topic[member, place[0]] += 1

    def idlest(self, topic: str) -> str:
        """Among members with as much to do, the one with less of this topic: its records come in bursts."""
        return min(self._readers[topic], key=lambda name: (self._load[name], self._load_of_topic[name, topic], name))

    def relieve(self, place: Place) -> bool:
        """Move a partition if that makes the load more even. Each move does, so that they come to an end."""
        idle = self.idlest(place[0])
        if self._load[idle] + 1 >= self._load[self.owner[place]]:
            return False
        self.give(place, idle)
        return True
