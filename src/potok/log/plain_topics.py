"""Topics as plain data: size, retention, partitions."""

from __future__ import annotations

from typing import Any

from potok.log.broker import TopicDescription


def summary(topic: TopicDescription) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "records": topic.records,
        "exact": topic.exact,
        "bytes": _or_none(size_of(topic)),
        "created_at_ms": _or_none(topic.created_at_ms),
    }


def description(topic: TopicDescription) -> dict[str, Any]:
    config = topic.config
    return summary(topic) | {
        "dirty_ratio": round(topic.dirty_ratio, 4),
        "config": {
            "segment_bytes": config.segment_bytes,
            "retention_ms": config.retention_ms,
            "retention_bytes": config.retention_bytes,
            "cleanup_policy": config.cleanup_policy,
            "delete_retention_ms": config.delete_retention_ms,
            "min_compaction_lag_ms": config.min_compaction_lag_ms,
            "archive": config.archive,
        },
        "partition_offsets": [
            {
                "partition": p.partition,
                "start_offset": p.start_offset,
                "end_offset": p.end_offset,
                "archived_from": p.earliest_offset,
                "records": p.records,
                "exact": p.exact,
                "bytes": _or_none(p.bytes),
            }
            for p in topic.partitions
        ],
    }


def size_of(topic: TopicDescription) -> int:
    """Return the size of a topic; negative if it is unknown."""
    sizes = [part.bytes for part in topic.partitions]
    return sum(sizes) if min(sizes, default=0) >= 0 else -1


def _or_none(number: int) -> int | None:
    return number if number >= 0 else None
