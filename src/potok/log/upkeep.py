"""What a log does to its old records: which kinds of topic there are, and what a clean-up reports."""

from __future__ import annotations

from dataclasses import dataclass

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
