"""What can go wrong with a log.

LogError
├── BrokerNotSupported   the URL names no broker that can be opened
├── BrokerClosed         used after `close()`
├── InvalidName          a topic, group or mark that cannot be stored under that name
├── TopicNotFound        no such topic, or no such partition in it
├── TopicExists          created twice
├── OffsetOutOfRange     a range that the log no longer holds, or does not hold yet
├── FellBehind           a reader whose next records were deleted before it came to them
├── PartitionsMoved      a commit for partitions that another member of the group reads
├── GroupHasMembers      offsets of a group cannot be set from outside while it is at work
├── QueueAtWork          a queue cannot be set elsewhere while its workers hold records
├── CorruptSegment       bytes on disk are not the bytes that were written
├── MetadataDamaged      the file that holds topics, offsets and ledgers is damaged
├── ArchiveDamaged       a file of the archive is missing, or is not what was written
├── KeylessRecord        a record without a key for a compacted topic
├── NotCompacted         a topic that keeps all records of a key was to be compacted
├── NoArchive            a topic was to be archived, and nobody has said where to
├── DiskFull             no room for an append; nothing of it is visible
├── RecordTooLarge       one record over the limit
└── MetadataConflict          a mark did not hold what the caller expected; nothing was changed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from potok.errors import LogError
from potok.metadata.metadata_store import MetadataConflict as MetadataConflict


class BrokerNotSupported(LogError):
    """The URL names no broker that can be opened."""

    def __init__(self, url: str, hint: str) -> None:
        super().__init__(f'cannot open a broker at "{url}"', hint=hint)


class BrokerClosed(LogError):
    """The broker was closed and cannot be used any more."""

    def __init__(self, url: str) -> None:
        super().__init__(f'the broker "{url}" is closed', hint="open it again with open_broker()")


class InvalidName(LogError):
    """A name that the log cannot store."""

    def __init__(self, what: str, name: str, hint: str) -> None:
        super().__init__(f'"{name}" cannot be the name of a {what}', hint=hint)


class TopicNotFound(LogError):
    """No such topic, or no such partition."""

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
    """The topic is there already."""

    def __init__(self, topic: str) -> None:
        super().__init__(f'topic "{topic}" exists already', hint="pass exist_ok=True to keep it, or delete it first")


class OffsetOutOfRange(LogError):
    """The log does not hold all of the range asked for."""

    def __init__(self, topic: str, partition: int, wanted: tuple[int, int], held: tuple[int, int]) -> None:
        hint = f"it holds offsets {held[0]} to {held[1]} (not included)"
        if wanted[0] < held[0]:
            hint += "; older records were deleted by retention: start at the first, or keep more with retention_ms="
        super().__init__(
            f'cannot read offsets {wanted[0]} to {wanted[1]} of "{topic}" partition {partition}', hint=hint
        )


class FellBehind(LogError):
    """The records that a reader was to go on with are no longer in the log."""

    def __init__(self, reader: str, topic: str, partition: int, wanted: int, first: int, earliest: int) -> None:
        """`first` is the log's first offset; `earliest` that of its archive, or `first` too where there is none."""
        self.gone = first - wanted
        count = f"{self.gone:,} record{'' if self.gone == 1 else 's'}"
        hint = f'pass on_lost="jump" to go on at offset {first} without them'
        if earliest <= wanted < first:
            hint = f'its archive holds them: pass on_lost="archive"; or {hint}'
        super().__init__(
            f'{reader} fell behind: {count} of "{topic}" partition {partition} (offsets {wanted} to {first - 1})'
            " were deleted before it came to them",
            hint=f"{hint}; keep more with retention_ms=",
        )


class PartitionsMoved(LogError):
    """A member tried to commit for partitions that the group gave to somebody else; nothing was committed."""

    def __init__(self, group: str, places: Sequence[tuple[str, int]]) -> None:
        listed = ", ".join(f"{topic}:{partition}" for topic, partition in places)
        super().__init__(
            f'group "{group}" has given {listed} to another member; nothing was committed',
            hint="go on: the next poll tells what this member reads; records since its last commit are read again by "
            "their new owner. Commit in on_revoke=, or more often; if work between two polls takes long, raise "
            "lease= or max_pause=",
        )


class GroupHasMembers(LogError):
    """Offsets of a group are set by its members as long as it has any."""

    def __init__(self, group: str, members: int) -> None:
        living = "a living member" if members == 1 else f"{members} living members"
        super().__init__(
            f'group "{group}" has {living}; its offsets cannot be set from outside',
            hint=f"stop its consumers first; potok groups show {group} lists them",
        )


class QueueAtWork(LogError):
    """A queue whose workers hold records cannot be set elsewhere."""

    def __init__(self, group: str, out: int) -> None:
        super().__init__(
            f'queue "{group}" has {out:,} record{"" if out == 1 else "s"} out',
            hint="stop its workers first; what a killed one held is free again when its time is over",
        )


class CorruptSegment(LogError):
    """Bytes on disk are not the bytes that were written."""

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
    """A file of the archive is missing, or its bytes are not those that were written."""

    def __init__(self, path: Path, topic: str, start: int, end: int, why: str) -> None:
        super().__init__(
            f'offsets {start} to {end} of "{topic}" cannot be read from the archive: {path}: {why}',
            hint=f"put the file back where it was; or start at offset {end}",
        )


class KeylessRecord(LogError):
    """A compacted topic keeps the last record of each key, so a record without a key has no place in it."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" is compacted and takes no record without a key',
            hint='give every record a key, or create the topic with cleanup_policy="delete"',
        )


class NotCompacted(LogError):
    """A topic that was not created for it keeps every record of a key."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" is not compacted: it keeps every record of a key',
            hint=f"create it so: potok topics create {topic} --cleanup-policy compact",
        )


class NoArchive(LogError):
    """Nobody has said where the archive of a topic is to be."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" has no archive',
            hint="name a directory (directory=, or --to DIR), or create the topic with archive=",
        )


class DiskFull(LogError):
    """No room for an append; nothing of it is visible."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"no room to write {path}: {why}",
            hint="nothing was appended; free some space, or lower retention_ms= or retention_bytes=, and append again",
        )


class RecordTooLarge(LogError):
    """One record is over the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"a record of {size:,} bytes is over the limit of {limit:,}",
            hint="keep large objects elsewhere and send a reference, or open the broker with more max_record_bytes=",
        )
