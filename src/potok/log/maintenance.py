"""Maintenance of old records: cleanup policies, and what a cleanup reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from potok.errors import LogError

DAY_MS = 86_400_000

DELETE = "delete"
COMPACT = "compact"
BOTH = "compact,delete"

CLEANUP_POLICIES = (DELETE, COMPACT, BOTH)


class InvalidTopicConfig(LogError):
    """An invalid configuration of a topic."""

    def __init__(self, topic: str, why: str, hint: str) -> None:
        super().__init__(f'topic "{topic}" has an invalid configuration: {why}', hint=hint)


class MaintainedByServer(LogError):
    """Maintenance that a server does itself, or not at all."""

    def __init__(self, what: str, url: str) -> None:
        super().__init__(
            f'the log at "{url}" cannot {what}: its server maintains old records itself',
            hint="set the configuration of the topic with the tools of that server",
        )


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of compacting the sealed segments of one partition."""

    partition: int
    records_before: int
    records_after: int
    bytes_before: int
    bytes_after: int

    @property
    def removed(self) -> int:
        return self.records_before - self.records_after


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One archived segment: offsets `base_offset` to `end_offset` (exclusive) of a partition."""

    partition: int
    base_offset: int
    end_offset: int
    records: int
    size: int
    path: str


def policy_of(topic: str, text: str) -> str:
    """Normalize a cleanup policy: `delete,compact` and `compact, delete` are the same."""
    words = {word.strip() for word in text.split(",")}
    for policy in CLEANUP_POLICIES:
        if words == set(policy.split(",")):
            return policy
    raise InvalidTopicConfig(topic, f'"{text}" is not a cleanup policy', 'use "delete", "compact" or "compact,delete"')


class TopicMaintenance(ABC):
    """The part of a broker that removes, compacts and archives records."""

    url: str

    @abstractmethod
    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Set the offsets from which on `owner` needs the records, so that retention keeps them; replaces earlier
        ones."""

    @abstractmethod
    def enforce_retention(
        self, topic: str | None = None, protect: Mapping[tuple[str, int], int] = {}
    ) -> dict[tuple[str, int], int]:
        """Delete old segments of a topic, or of all; return the new start offsets of partitions that shrank.

        Segments of a topic with an archive are moved there.
        """

    def compact_topic(self, topic: str, *, seal: bool = False) -> list[Compaction]:
        """Retain the last record of each key in the sealed segments of a topic; offsets do not change.

        Args:
            seal: Close the active segment first, so that its records take part.
        """
        raise MaintainedByServer("compact a topic", self.url)

    def archive_topic(
        self, topic: str, directory: str | Path | None = None, older_than_ms: int = 0, *, seal: bool = False
    ) -> list[ArchivedFile]:
        """Move sealed segments to Parquet files, from which `read` still returns their records.

        Args:
            directory: By default the topic's own `archive`.
            older_than_ms: Only segments whose last record was ingested this long ago.
            seal: Close the active segment first, so that its records take part.
        """
        raise MaintainedByServer("archive a topic", self.url)

    @abstractmethod
    def remove_records(self, topic: str, partition: int, ranges: Sequence[tuple[int, int]]) -> int:
        """Remove the records of some offsets, as far as the log supports it and the records are not protected.

        Args:
            ranges: Disjoint ranges in order, each from the first offset to the second (exclusive).

        Returns:
            How many records were removed.
        """

    def maintain(self) -> None:
        """Run retention, archiving and compaction of all topics where due; cheap if nothing is.

        Running queries call this at intervals, because an embedded log has no server to do it.
        """
        self.enforce_retention()
