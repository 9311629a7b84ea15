"""The members of a consumer group and their partitions: one metadata value, changed in transactions.

Partitions are reassigned in two steps. The plan says who is to read a partition; a living member that owns it keeps
it until it releases it. So a partition has at most one owner at any time, and an owner can commit before it releases.
Any process that finds an expired lease removes the member and frees its partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from potok.log.consumer_groups import GroupDescription, GroupMember, PartitionId
from potok.log.embedded import catalog, groups
from potok.log.embedded.metadata import Transaction
from potok.log.errors import GroupHasMembers, PartitionsMovedError

Work = Callable[[Transaction], None]


class Enrolled(NamedTuple):
    client: str
    topics: tuple[str, ...]
    lease_ms: int


class Claim(NamedTuple):
    """The owner of a partition, and the generation of the claim: a member that lost and regained it has another
    claim."""

    member: str
    generation: int


@dataclass(slots=True)
class GroupMetadata:
    """`generation` grows with each change of members or partitions; `partitions` is what the plan was made for."""

    generation: int = 0
    members: dict[str, Enrolled] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    plan: dict[PartitionId, str] = field(default_factory=dict)
    claims: dict[PartitionId, Claim] = field(default_factory=dict)

    def remove(self, gone: Collection[str]) -> None:
        self.members = {name: enrolled for name, enrolled in self.members.items() if name not in gone}
        self.claims = {
            topic_partition: claim for topic_partition, claim in self.claims.items() if claim.member not in gone
        }

    def release(self, member: str, topic_partitions: Collection[PartitionId]) -> None:
        """Release partitions planned for others; `settle` assigns them."""
        for topic_partition in topic_partitions:
            if self.claims.get(topic_partition, Claim("", 0)).member == member:
                del self.claims[topic_partition]

    def replan(self, partitions: Mapping[str, int]) -> None:
        self.generation += 1
        self.partitions = dict(partitions)
        self.claims = {
            topic_partition: claim
            for topic_partition, claim in self.claims.items()
            if topic_partition[1] < partitions.get(topic_partition[0], 0)
        }
        owners = {topic_partition: claim.member for topic_partition, claim in self.claims.items()}
        self.plan = balance({name: enrolled.topics for name, enrolled in self.members.items()}, partitions, owners)

    def settle(self) -> None:
        for topic_partition, member in self.plan.items():
            if topic_partition not in self.claims:
                self.claims[topic_partition] = Claim(member, self.generation)

    def owned_by(self, member: str) -> dict[PartitionId, int]:
        """Return the partitions of a member, with the generation of each claim."""
        return {
            topic_partition: claim.generation
            for topic_partition, claim in self.claims.items()
            if claim.member == member
        }

    def meant_for(self, member: str) -> set[PartitionId]:
        return {topic_partition for topic_partition, planned in self.plan.items() if planned == member}

    def to_bytes(self) -> bytes:
        return orjson.dumps(
            {
                "generation": self.generation,
                "members": {name: list(enrolled) for name, enrolled in self.members.items()},
                "partitions": self.partitions,
                "plan": [[*topic_partition, member] for topic_partition, member in self.plan.items()],
                "claims": [[*topic_partition, *claim] for topic_partition, claim in self.claims.items()],
            },
        )

    @classmethod
    def of_bytes(cls, data: bytes | None) -> GroupMetadata:
        if data is None:
            return cls()
        found: dict[str, Any] = orjson.loads(data)
        return cls(
            found["generation"],
            {
                name: Enrolled(client, tuple(topics), lease)
                for name, (client, topics, lease) in found["members"].items()
            },
            found["partitions"],
            {(topic, partition): member for topic, partition, member in found["plan"]},
            {(topic, part): Claim(member, generation) for topic, part, member, generation in found["claims"]},
        )


def raw(txn: Transaction, group: str) -> bytes | None:
    """Return the raw metadata, which waiting members compare: it is unchanged between two rebalances."""
    return txn.get(_key(group))


def join(txn: Transaction, group: str, member: str, enrolled: Enrolled, now_ms: int) -> None:
    for topic in enrolled.topics:
        catalog.get_topic(txn, topic)
    metadata = GroupMetadata.of_bytes(raw(txn, group))
    _expel(txn, group, metadata, now_ms)
    metadata.members[member] = enrolled
    _put_beat(txn, group, member, now_ms)
    _replan(txn, metadata)
    _store(txn, group, metadata)


def beat(txn: Transaction, group: str, member: str, now_ms: int) -> None:
    """Renew the lease of a member, and remove members with expired leases. Does nothing for a removed member."""
    metadata = GroupMetadata.of_bytes(raw(txn, group))
    if member not in metadata.members:
        return
    _put_beat(txn, group, member, now_ms)
    if _expel(txn, group, metadata, now_ms) or _partitions(txn, metadata) != metadata.partitions:
        _replan(txn, metadata)
        _store(txn, group, metadata)


def release(txn: Transaction, group: str, member: str, topic_partitions: Collection[PartitionId]) -> None:
    metadata = GroupMetadata.of_bytes(raw(txn, group))
    metadata.release(member, topic_partitions)
    metadata.settle()
    _store(txn, group, metadata)


def leave(txn: Transaction, group: str, member: str, now_ms: int) -> None:
    metadata = GroupMetadata.of_bytes(raw(txn, group))
    if member in metadata.members:
        _remove(txn, group, metadata, [member])
        _expel(txn, group, metadata, now_ms)
        _replan(txn, metadata)
        _store(txn, group, metadata)


def commit(
    txn: Transaction, group: str, member: str, offsets: Mapping[PartitionId, int], held: Mapping[PartitionId, int]
) -> None:
    """Commit for partitions that a member owns, by the generations of its claims; all or none."""
    claims = GroupMetadata.of_bytes(raw(txn, group)).claims
    moved = [
        topic_partition
        for topic_partition in offsets
        if topic_partition not in held or claims.get(topic_partition) != Claim(member, held[topic_partition])
    ]
    if moved:
        raise PartitionsMovedError(group, moved)
    for topic in {topic for topic, _ in offsets}:
        groups.commit(txn, group, topic, {part: offset for (name, part), offset in offsets.items() if name == topic})


def check_nobody(txn: Transaction, group: str, now_ms: int) -> None:
    count = len(living(txn, group, GroupMetadata.of_bytes(raw(txn, group)), now_ms))
    if count:
        raise GroupHasMembers(group, count)


def describe(txn: Transaction, group: str, now_ms: int) -> GroupDescription:
    metadata = GroupMetadata.of_bytes(raw(txn, group))
    members = tuple(
        GroupMember(
            name, metadata.members[name].client, metadata.members[name].topics, tuple(sorted(metadata.owned_by(name)))
        )
        for name in sorted(living(txn, group, metadata, now_ms))
    )
    known = ((topic.name, groups.committed(txn, group, topic.name)) for topic in catalog.all_topics(txn))
    committed = {topic: offsets for topic, offsets in known if offsets}
    return GroupDescription(group, tuple(members), committed, metadata.generation)


def living(txn: Transaction, group: str, metadata: GroupMetadata, now_ms: int) -> list[str]:
    return [
        name
        for name, enrolled in metadata.members.items()
        if _is_alive(txn.get(_beat_key(group, name)), enrolled.lease_ms, now_ms)
    ]


def names(txn: Transaction, now_ms: int) -> list[str]:
    """Return the groups that have committed offsets or have living members."""
    enrolled = [key[1:].decode() for key, _ in catalog.scan(txn, b"r")]
    at_work = {name for name in enrolled if living(txn, name, GroupMetadata.of_bytes(raw(txn, name)), now_ms)}
    return sorted(at_work | groups.names(txn))


def _key(group: str) -> bytes:
    return b"r" + groups.checked(group)


def _beat_key(group: str, member: str) -> bytes:
    return b"h" + groups.checked(group) + b"\0" + member.encode()


def _put_beat(txn: Transaction, group: str, member: str, now_ms: int) -> None:
    txn.put(_beat_key(group, member), now_ms.to_bytes(8, "big"))


def _is_alive(beat_at: bytes | None, lease_ms: int, now_ms: int) -> bool:
    """Return whether a lease is valid.

    After the clock was set back, heartbeats may be in the future. They count no longer than the lease either: a
    living member sends another one before that.
    """
    return beat_at is not None and abs(now_ms - int.from_bytes(beat_at, "big")) < lease_ms


def _expel(txn: Transaction, group: str, metadata: GroupMetadata, now_ms: int) -> bool:
    """Remove members with expired leases; return whether there were any."""
    alive = living(txn, group, metadata, now_ms)
    gone = [name for name in metadata.members if name not in alive]
    _remove(txn, group, metadata, gone)
    return bool(gone)


def _remove(txn: Transaction, group: str, metadata: GroupMetadata, gone: Sequence[str]) -> None:
    for name in gone:
        txn.delete(_beat_key(group, name))
    metadata.remove(gone)


def _replan(txn: Transaction, metadata: GroupMetadata) -> None:
    metadata.replan(_partitions(txn, metadata))
    metadata.settle()


def _partitions(txn: Transaction, metadata: GroupMetadata) -> dict[str, int]:
    """Return the partition counts of all subscribed topics. A deleted one has none; its readers fail when they read."""
    wanted = sorted({topic for enrolled in metadata.members.values() for topic in enrolled.topics})
    found = [catalog.find_topic(txn, name) for name in wanted]
    return {topic.name: topic.partitions for topic in found if topic is not None}


def _store(txn: Transaction, group: str, metadata: GroupMetadata) -> None:
    if metadata.members:
        txn.put(_key(group), metadata.to_bytes())
    else:
        txn.delete(_key(group))


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
