"""What a log does to its old records: which kinds of topic there are, and what a clean-up reports."""

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
    """A topic cannot be kept in the way that was asked for."""

    def __init__(self, topic: str, why: str, hint: str) -> None:
        super().__init__(f'topic "{topic}" cannot be kept so: {why}', hint=hint)


class DoneByTheServer(LogError):
    """Work on old records that a server does by itself, or not at all."""

    def __init__(self, what: str, url: str) -> None:
        super().__init__(
            f'the log at "{url}" cannot be told to {what}: its server looks after old records by itself',
            hint="set the topic's own configuration, with the tools of that server",
        )


@dataclass(frozen=True, slots=True)
class Compaction:
    """What compaction made of the sealed segments of one partition."""

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
    """One segment that lies in the archive: offsets `base_offset` to `end_offset` (not included) of a partition."""

    partition: int
    base_offset: int
    end_offset: int
    records: int
    size: int
    path: str


def policy_of(topic: str, text: str) -> str:
    """A cleanup policy in its one spelling: `delete,compact` and `compact, delete` are the same."""
    words = {word.strip() for word in text.split(",")}
    for policy in CLEANUP_POLICIES:
        if words == set(policy.split(",")):
            return policy
    raise InvalidTopicConfig(topic, f'"{text}" is no cleanup policy', 'use "delete", "compact" or "compact,delete"')


class TopicMaintenance(ABC):
    """The part of a broker that removes, compacts and archives records."""

    url: str

    @abstractmethod
    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Say from which offsets on `owner` needs the records, so that retention keeps them; replaces what it said."""

    @abstractmethod
    def enforce_retention(
        self, topic: str | None = None, protect: Mapping[tuple[str, int], int] = {}
    ) -> dict[tuple[str, int], int]:
        """Delete whole old segments of a topic, or of all; returns the new start offsets of partitions that shrank.

        Those of a topic with an archive are moved there.
        """

    def compact_topic(self, topic: str, *, seal: bool = False) -> list[Compaction]:
        """Keep the last record of each key in the sealed segments of a topic; offsets stay as they are.

        Args:
            seal: Close the segment that is being written first, so that its records take part.
        """
        raise DoneByTheServer("compact a topic", self.url)

    def archive_topic(
        self, topic: str, directory: str | Path | None = None, older_than_ms: int = 0, *, seal: bool = False
    ) -> list[ArchivedFile]:
        """Move sealed segments to Parquet files, from where `read` still gives their records.

        Args:
            directory: The topic's own `archive` if left out.
            older_than_ms: Only segments whose last record was ingested so long ago.
            seal: Close the segment that is being written first, so that its records take part.
        """
        raise DoneByTheServer("archive a topic", self.url)

    @abstractmethod
    def remove_records(self, topic: str, partition: int, ranges: Sequence[tuple[int, int]]) -> int:
        """Remove the records of some offsets, as far as the log can and nobody may still need them.

        Args:
            ranges: From the first offset to the second (not included), in order, apart from each other.

        Returns:
            How many records were removed.
        """

    def maintain(self) -> None:
        """Retention, archive and compaction of all topics, where they are due; cheap where nothing is.

        Whoever runs a query calls this now and then: a log that is a library has nobody else.
        """
        self.enforce_retention()
