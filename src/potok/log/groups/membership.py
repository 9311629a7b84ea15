"""Taking part in a consumer group: who reads which partitions, and who may commit for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Place = tuple[str, int]
"""A topic and a partition of it."""

DEFAULT_LEASE_MS = 6_000
"""The shortest that a Kafka server accepts unless it is set up otherwise."""

DEFAULT_MAX_PAUSE_MS = 300_000


class PartitionListener(Protocol):
    """Told what a member gains and loses, inside `Membership.refresh` and on the thread that called it."""

    def assigned(self, places: Sequence[Place]) -> None:
        """These partitions are this member's from now on."""

    def revoked(self, places: Sequence[Place]) -> None:
        """These partitions go to somebody else when this returns; until then the member can still commit for them.

        Partitions that were taken away already (the lease ran out) are told here too: a commit for them is refused.
        """


class Membership(ABC):
    """One member's part in a group. It stays alive by itself, in the background, until it is closed.

    Partitions change hands only inside `refresh`, so whoever reads records is never surprised in the middle of one.
    Used by one thread at a time.
    """

    group: str

    @property
    @abstractmethod
    def member(self) -> str:
        """New each time it joins."""

    @abstractmethod
    def changed(self) -> bool:
        """Whether `refresh` may have something to tell; cheap enough to be asked before every record.

        To ask says that the member is at work: one that neither asks nor commits for longer than `max_pause_ms` is
        taken out of the group, and joins again with its next `refresh`.
        """

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether nothing is on its way to this member: all that it is meant to read is assigned to it."""

    @abstractmethod
    def refresh(self) -> None:
        """Find out what changed, tell the listener, and let go of what others are to read."""

    @abstractmethod
    def assignment(self) -> frozenset[Place]:
        """What the listener was told is this member's."""

    @abstractmethod
    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Set the offsets that the group goes on from, all or none.

        Raises `PartitionsMoved` where one of the partitions is no longer this member's, in which case nothing is
        committed, and the next `refresh` tells the listener what is lost.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave the group; what this member had goes to the others at once. The listener is not told."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`client` says where the member runs, as a person would want to read it."""

    member: str
    client: str
    topics: tuple[str, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as of one instant: its living members, and how far it has come in each topic that it committed for."""

    group: str
    members: tuple[GroupMember, ...]
    committed: Mapping[str, Mapping[int, int]]

    @property
    def topics(self) -> list[str]:
        read = {topic for member in self.members for topic in member.topics}
        return sorted(read | set(self.committed))

    def owner(self, place: Place) -> GroupMember | None:
        return next((member for member in self.members if place in member.places), None)


class ConsumerGroups(ABC):
    """The part of a broker that groups of consumers need."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets that a consumer group goes on from; empty where it has committed none."""

    @abstractmethod
    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set offsets of a group from outside; `GroupHasMembers` while it has living members, who commit themselves."""

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
        """Become a member: every partition of `topics` belongs to exactly one living member of the group.

        The listener hears of the first partitions in the first `Membership.refresh`.

        Args:
            lease_ms: A member that died without a word keeps its partitions for so long.
            max_pause_ms: A member that lives but does not ask for records for so long loses its partitions.
        """

    @abstractmethod
    def groups(self) -> list[str]:
        """The groups that have members or have committed something."""

    @abstractmethod
    def describe_group(self, group: str) -> GroupDescription:
        """Members and offsets of a group; nothing in it for one that nobody has heard of."""
