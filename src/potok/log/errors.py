"""Errors of a log.

LogError
├── BrokerNotSupported   the URL does not name a supported broker
├── BrokerClosed         used after `close()`
├── InvalidName          an invalid name of a topic, group or metadata key
├── TopicNotFound        an unknown topic or partition
├── TopicExists          created twice
├── OffsetOutOfRange     a range that the log does not hold, or not any more
├── FellBehindError           a reader whose next records were deleted before it read them
├── PartitionsMovedError      a commit for partitions that were reassigned to another member
├── GroupHasMembers      offsets of a group cannot be reset while it has members
├── QueueAtWork          a queue cannot be reset while its workers hold records
├── CorruptSegment       a damaged segment
├── MetadataDamaged      the file that holds topics, offsets and ledgers is damaged
├── ArchiveDamaged       a missing or damaged file of the archive
├── KeylessRecord        a record without a key for a compacted topic
├── NotCompacted         a topic without the cleanup policy `compact`
├── NoArchive            a topic without an archive directory
├── DiskFull             no space for an append; nothing of it is visible
├── RecordTooLarge       a record over the size limit
└── MetadataConflict     a metadata key did not hold the expected value; nothing was changed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from potok.errors import LogError
from potok.metadata.metadata_store import MetadataConflict as MetadataConflict


class BrokerNotSupported(LogError):
    """The URL does not name a supported broker."""

    def __init__(self, url: str, hint: str) -> None:
        super().__init__(f'cannot open a broker at "{url}"', hint=hint)


class BrokerClosed(LogError):
    """The broker was closed."""

    def __init__(self, url: str) -> None:
        super().__init__(f'the broker "{url}" is closed', hint="open it again with open_broker()")


class InvalidName(LogError):
    """A name that the log cannot store."""

    def __init__(self, what: str, name: str, hint: str) -> None:
        super().__init__(f'"{name}" cannot be the name of a {what}', hint=hint)


class TopicNotFound(LogError):
    """An unknown topic or partition."""

    topic: str = ""

    def __init__(self, topic: str, partition: int | None = None, partitions: int = 0) -> None:
        self.topic = topic
        if partition is None:
            super().__init__(
                f'topic "{topic}" does not exist', hint=f"create it: potok topics create {topic} --partitions 4"
            )
        else:
            super().__init__(
                f'topic "{topic}" has no partition {partition}',
                hint=f"its partitions are 0 to {partitions - 1}",
            )


class TopicExists(LogError):
    """The topic already exists."""

    def __init__(self, topic: str) -> None:
        super().__init__(f'topic "{topic}" exists already', hint="pass exist_ok=True to keep it, or delete it first")


class OffsetOutOfRange(LogError):
    """The log does not hold the requested range."""

    def __init__(self, topic: str, partition: int, wanted: tuple[int, int], held: tuple[int, int]) -> None:
        hint = f"it holds offsets {held[0]} to {held[1]} (exclusive)"
        if wanted[0] < held[0]:
            hint += "; older records were deleted by retention: start at the first offset, or raise retention_ms="
        super().__init__(
            f'cannot read offsets {wanted[0]} to {wanted[1]} of "{topic}" partition {partition}', hint=hint
        )


class FellBehindError(LogError):
    """The next records of a reader are no longer in the log."""

    def __init__(self, reader: str, topic: str, partition: int, wanted: int, first: int, earliest: int) -> None:
        """`first` is the first offset of the log; `earliest` that of its archive, or `first` without an archive."""
        self.gone = first - wanted
        count = f"{self.gone:,} record{'' if self.gone == 1 else 's'}"
        hint = f'pass on_lost="jump" to skip them and continue at offset {first}'
        if earliest <= wanted < first:
            hint = f'its archive holds them: pass on_lost="archive"; or {hint}'
        super().__init__(
            f'{reader} fell behind: {count} of "{topic}" partition {partition} (offsets {wanted} to {first - 1})'
            " were deleted before it read them",
            hint=f"{hint}; raise retention_ms= to retain more",
        )


class PartitionsMovedError(LogError):
    """A member tried to commit for partitions that were reassigned; nothing was committed."""

    def __init__(self, group: str, topic_partitions: Sequence[tuple[str, int]]) -> None:
        listed = ", ".join(f"{topic}:{partition}" for topic, partition in topic_partitions)
        super().__init__(
            f'{listed} moved to another member of group "{group}"; nothing was committed',
            hint="continue polling: the new owner reads the records since the last commit again. "
            "Commit in on_revoke=, or more often; if processing between two polls takes long, raise "
            "lease= or max_pause=",
        )


class GroupHasMembers(LogError):
    """Offsets of a group with members can only be committed by its members."""

    def __init__(self, group: str, members: int) -> None:
        living = "a member" if members == 1 else f"{members} members"
        super().__init__(
            f'group "{group}" has {living}; its offsets cannot be reset',
            hint=f"stop its consumers first; potok groups show {group} lists them",
        )


class QueueAtWork(LogError):
    """A queue whose workers hold records cannot be reset."""

    def __init__(self, group: str, out: int) -> None:
        super().__init__(
            f'queue "{group}" has {out:,} record{"" if out == 1 else "s"} in processing',
            hint="stop its workers first; records of a killed worker are released after the visibility timeout",
        )


class CorruptSegment(LogError):
    """Damaged bytes of a segment."""

    def __init__(self, path: Path, offset: int, position: int, why: str) -> None:
        super().__init__(
            f"segment {path} is damaged at byte {position} (offset {offset}): {why}",
            hint="restore the file from a backup; records before that offset can still be read",
        )


class MetadataDamaged(LogError):
    """The file that holds topics, offsets, groups and ledgers is damaged."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the metadata of the log at {path} is damaged: {why}",
            hint="restore the whole data directory from one backup: offsets, records and state belong together; "
            "or start with an empty one (--broker file:DIRECTORY) and produce the records again",
        )


class ArchiveDamaged(LogError):
    """A missing or damaged file of the archive."""

    def __init__(self, path: Path, topic: str, start: int, end: int, why: str) -> None:
        super().__init__(
            f'offsets {start} to {end} of "{topic}" cannot be read from the archive: {path}: {why}',
            hint=f"restore the file; or start at offset {end}",
        )


class KeylessRecord(LogError):
    """A record without a key for a compacted topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" is compacted and rejects records without a key',
            hint='give every record a key, or create the topic with cleanup_policy="delete"',
        )


class NotCompacted(LogError):
    """A topic without the cleanup policy `compact` cannot be compacted."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" is not compacted: it retains every record of a key',
            hint=f"create it with potok topics create {topic} --cleanup-policy compact",
        )


class NoArchive(LogError):
    """A topic without an archive directory."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" has no archive',
            hint="name a directory (directory=, or --to DIR), or create the topic with archive=",
        )


class DiskFull(LogError):
    """No space for an append; nothing of it is visible."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"no space to write {path}: {why}",
            hint="nothing was appended; free some space, or lower retention_ms= or retention_bytes=, and append again",
        )


class RecordTooLarge(LogError):
    """A record over the size limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"a record of {size:,} bytes is over the limit of {limit:,}",
            hint="store large objects elsewhere and send a reference, or raise max_record_bytes= of the broker",
        )
