"""Render topics as text and JSON: size, retention, compaction and archive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from potok.cli.output import note, print_table, show_bytes
from potok.duration import show_ms
from potok.log.plain_topics import size_of

if TYPE_CHECKING:
    from potok.log.broker import PartitionDescription, TopicConfig, TopicDescription
    from potok.log.maintenance import ArchivedFile, Compaction


def print_list(topics: Sequence[TopicDescription]) -> None:
    rows = [
        (t.name, len(t.partitions), records_of(t), show_bytes(size_of(t)), instant(t.created_at_ms)) for t in topics
    ]
    print_table(("topic", "partitions", "records", "size", "created (UTC)"), rows)


def records_of(described: TopicDescription | PartitionDescription) -> int | str:
    """Render the number of records. On Kafka it is an upper bound if counting takes too long, because offsets include
    transaction markers and aborted or compacted records."""
    return described.records if described.exact else f"at most {described.records:,}"


def print_description(topic: TopicDescription) -> None:
    config = topic.config
    dirty = f"{topic.dirty_ratio:.0%}" if config.compacted else "-"
    row = (
        topic.name,
        records_of(topic),
        show_bytes(size_of(topic)),
        retention_text(config),
        config.cleanup_policy,
        dirty,
    )
    print_table(
        ("topic", "records", "size", "kept", "cleanup", "dirty", "created (UTC)"),
        [(*row, instant(topic.created_at_ms))],
    )
    archived = any(part.earliest_offset is not None for part in topic.partitions)
    headings = ["partition", "first offset", "next offset", "records", "size", "segments"]
    print_table(
        [*headings, "archived from"] if archived else headings,
        [
            (p.partition, p.start_offset, p.end_offset, records_of(p), show_bytes(p.bytes), _or_dash(p.segments))
            + (("-" if p.earliest_offset is None else p.earliest_offset,) if archived else ())
            for p in topic.partitions
        ],
    )
    if config.archive is not None:
        note(f"old segments are archived in {config.archive}")


def retention_text(config: TopicConfig) -> str:
    """Render the retention of a topic."""
    if not config.expires:
        return "forever"
    limits = [show_ms(config.retention_ms)] if config.retention_ms is not None else []
    limits += [show_bytes(config.retention_bytes)] if config.retention_bytes is not None else []
    return ", ".join(limits)


def compaction(topic: str, done: Compaction) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": done.partition,
        "records_before": done.records_before,
        "records_after": done.records_after,
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
    }


def print_compaction(topic: TopicDescription, done: Sequence[Compaction], *, sealed: bool) -> None:
    print_table(
        ("partition", "records before", "after", "size before", "after"),
        [
            (c.partition, c.records_before, c.records_after, show_bytes(c.bytes_before), show_bytes(c.bytes_after))
            for c in done
        ],
    )
    left = topic.records - sum(c.records_after for c in done)
    if left and not sealed:
        note(f"{left:,} records were not compacted: active segment (--seal), or needed by a query")
    elif left:
        note(f"{left:,} records were not compacted: needed by a query, or younger than the lag")


def archived_file(topic: str, file: ArchivedFile) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": file.partition,
        "base_offset": file.base_offset,
        "end_offset": file.end_offset,
        "records": file.records,
        "bytes": file.size,
        "path": file.path,
    }


def print_archived(topic: str, files: Sequence[ArchivedFile], *, sealed: bool) -> None:
    if not files:
        still = "" if sealed else "; --seal includes the active segment"
        note(f'no segment of "{topic}" is old enough to archive{still}')
        return
    records, size = sum(file.records for file in files), sum(file.size for file in files)
    count = "1 segment" if len(files) == 1 else f"{len(files):,} segments"
    note(f'archived {count} of "{topic}": {records:,} records, {show_bytes(size)}')
    print_table(
        ("partition", "first offset", "next offset", "records", "size", "file"),
        [(f.partition, f.base_offset, f.end_offset, f.records, show_bytes(f.size), f.path) for f in files],
    )


def _or_dash(number: int) -> int | str:
    return number if number >= 0 else "-"


def instant(ms: int) -> str:
    if ms < 0:
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
