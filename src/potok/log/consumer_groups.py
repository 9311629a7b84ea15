"""Membership in a consumer group: who reads which partitions, and who may commit for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

PartitionId = tuple[str, int]
"""A topic and one of its partitions."""

DEFAULT_LEASE_MS = 6_000
"""The shortest session timeout that a Kafka server accepts by default."""

DEFAULT_MAX_PAUSE_MS = 300_000


class PartitionListener(Protocol):
    """Notified of gained and lost partitions, inside `Membership.refresh` and on the calling thread."""

    def assigned(self, topic_partitions: Sequence[PartitionId]) -> None:
        """Handle newly assigned partitions."""

    def revoked(self, topic_partitions: Sequence[PartitionId]) -> None:
        """Handle partitions that are reassigned when this returns; until then the member can still commit for them.

        Also called for partitions that are already lost (the lease expired): a commit for them is rejected.
        """


class Membership(ABC):
    """A member of a group. It stays alive in the background until it is closed.

    Partitions are assigned and revoked only inside `refresh`, so never in the middle of a record. Used by one thread
    at a time.
    """

    group: str

    @property
    @abstractmethod
    def member(self) -> str:
        """The id of the member, new each time it joins."""

    @abstractmethod
    def changed(self) -> bool:
        """Return whether `refresh` may have news; cheap enough to call before every record.

        A call shows that the member is active: one that neither calls this nor commits for longer than `max_pause_ms`
        is removed from the group, and joins again with its next `refresh`.
        """

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Return whether all partitions planned for this member are assigned to it."""

    @abstractmethod
    def refresh(self) -> None:
        """Fetch changes, notify the listener, and release the partitions of others."""

    @abstractmethod
    def assignment(self) -> frozenset[PartitionId]:
        """The partitions that the listener was notified of."""

    @abstractmethod
    def commit(self, offsets: Mapping[PartitionId, int]) -> None:
        """Commit the offsets of the group, all or none.

        Raises `PartitionsMovedError` if one of the partitions is no longer this member's: then nothing is committed,
        and the next `refresh` notifies the listener of the loss.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave the group; its partitions are reassigned at once. The listener is not notified."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`client` is a readable description of where the member runs."""

    member: str
    client: str
    topics: tuple[str, ...]
    topic_partitions: tuple[PartitionId, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group at one instant: its members, and its committed offsets by topic."""

    group: str
    members: tuple[GroupMember, ...]
    committed: Mapping[str, Mapping[int, int]]
    rebalances: int | None = None
    """How often its partitions were distributed; None if the log does not say."""

    @property
    def topics(self) -> list[str]:
        read = {topic for member in self.members for topic in member.topics}
        return sorted(read | set(self.committed))

    def owner(self, topic_partition: PartitionId) -> GroupMember | None:
        return next((member for member in self.members if topic_partition in member.topic_partitions), None)


class ConsumerGroups(ABC):
    """The part of a broker for consumer groups."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the committed offsets of a group; empty if it has committed none."""

    @abstractmethod
    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Reset offsets of a group; raises `GroupHasMembers` while it has members, which commit themselves."""

    @abstractmethod
    def join_group(
        self,
        group: str,
        topics: Sequence[str],
        listener: PartitionListener,
        *,
        lease_ms: int = DEFAULT_LEASE_MS,
        max_pause_ms: int = DEFAULT_MAX_PAUSE_MS,
    ) -> Membership:
        """Join a group: every partition of `topics` belongs to exactly one member of the group.

        The first `Membership.refresh` notifies the listener of the first partitions.

        Args:
            lease_ms: How long a member that died keeps its partitions.
            max_pause_ms: A member that does not poll for this long loses its partitions.
        """

    @abstractmethod
    def groups(self) -> list[str]:
        """Return the groups that have members or committed offsets."""

    @abstractmethod
    def describe_group(self, group: str) -> GroupDescription:
        """Return members and offsets of a group; empty for an unknown one."""
