"""What can go wrong with a log.

LogError
├── BrokerNotSupported   the URL names no broker that can be opened
├── BrokerClosed         used after `close()`
├── InvalidName          a topic, group or mark that cannot be stored under that name
├── TopicNotFound        no such topic, or no such partition in it
├── TopicExists          created twice
├── OffsetOutOfRange     a range that the log no longer holds, or does not hold yet
├── CorruptSegment       bytes on disk are not the bytes that were written
├── DiskFull             no room for an append; nothing of it is visible
├── RecordTooLarge       one record over the limit
└── MarkChanged          a mark did not hold what the caller expected; nothing was changed
"""

from __future__ import annotations

from pathlib import Path

from potok.errors import LogError


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

    def __init__(self, topic: str, partition: int | None = None, partitions: int = 0) -> None:
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


class CorruptSegment(LogError):
    """Bytes on disk are not the bytes that were written."""

    def __init__(self, path: Path, offset: int, position: int, why: str) -> None:
        super().__init__(
            f"segment {path} is damaged at byte {position} (offset {offset}): {why}",
            hint="restore the file from a backup; records before that offset can still be read",
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


class MarkChanged(LogError):
    """A mark did not hold what the caller expected, so nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'mark "{name}" was changed by someone else',
            hint="another process runs the same query; stop one of them",
        )
