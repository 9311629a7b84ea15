"""The sealed segments of a partition: which of them may be changed, and how the active one is sealed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from potok.log.embedded import catalog
from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.locks import partition_locks
from potok.log.embedded.maintenance import retention
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments.segment import segment_path, sweep
from potok.log.errors import TopicNotFound

_CLEAN = struct.Struct("<q")
_EVER = 1 << 62


def clean_until(txn: Transaction, topic: Topic, partition: int) -> int:
    """Return the offset below which everything is compacted."""
    raw = txn.get(catalog.partition_key(b"c", topic.id, partition))
    return 0 if raw is None else int(_CLEAN.unpack(raw)[0])


def put_clean_until(txn: Transaction, topic: Topic, partition: int, offset: int) -> None:
    _check_there(txn, topic)
    txn.put(catalog.partition_key(b"c", topic.id, partition), _CLEAN.pack(offset))


def sealed_segments(txn: Transaction, topic: Topic, partition: int) -> list[Segment]:
    state = catalog.get_state(txn, topic, partition)
    found = catalog.segments(txn, topic, partition)
    return [segment for segment in found if segment.base_offset < state.segment_base]


def settled_segments(txn: Transaction, topic: Topic, partition: int, ingested_before: int) -> list[Segment]:
    """Return the oldest sealed segments, up to the first with a later record or a protected one.

    A batch that was not committed is read again, and must find the same records.
    """
    keep_from = retention.protected(txn).get((topic.name, partition))
    return list(
        takewhile(
            lambda segment: (
                segment.last_ingested <= ingested_before and (keep_from is None or segment.end_offset <= keep_from)
            ),
            sealed_segments(txn, topic, partition),
        )
    )


def still_there(txn: Transaction, topic: Topic, partition: int, group: Sequence[Segment]) -> bool:
    """Return whether adjacent segments are unchanged and still unprotected."""
    _check_there(txn, topic)
    settled = settled_segments(txn, topic, partition, _EVER)
    within = [part for part in settled if group[0].base_offset <= part.base_offset < group[-1].end_offset]
    return within == list(group)


def _check_there(txn: Transaction, topic: Topic) -> None:
    """Raise if a topic was deleted or recreated."""
    found = catalog.find_topic(txn, topic.name)
    if found is None or found.id != topic.id:
        raise TopicNotFound(topic.name)


def replace_segments(
    txn: Transaction, topic: Topic, partition: int, gone: Sequence[Segment], instead: Segment | None
) -> None:
    """Remove adjacent sealed segments from the metadata; without a replacement, they were the oldest."""
    catalog.delete_segments(txn, topic, partition, gone)
    state = catalog.get_state(txn, topic, partition)
    size = state.sealed_bytes - sum(segment.size for segment in gone)
    if instead is None:
        state = state._replace(start_offset=gone[-1].end_offset, sealed_bytes=size)
    else:
        catalog.put_segment(txn, topic, partition, instead)
        state = state._replace(sealed_bytes=size + instead.size)
    catalog.put_state(txn, topic, partition, state)


def known_paths(txn: Transaction, topic: Topic, partition: int, directory: Path) -> set[Path]:
    held = catalog.segments(txn, topic, partition)
    return {segment_path(directory, segment.base_offset, segment.generation) for segment in held}


def sweep_unknown(metadata: Metadata, directory: Path, topic: Topic, partition: int) -> None:
    """Delete segment files of a killed process."""
    with partition_locks([directory]):
        sweep(directory, metadata.read(lambda txn: known_paths(txn, topic, partition, directory)))


def seal(metadata: Metadata, directory: Path, topic: Topic, partition: int) -> None:
    """Seal the active segment, so that it can be compacted and archived; the next append starts another."""

    def close(txn: Transaction) -> None:
        found = catalog.get_topic(txn, topic.name, partition)
        state = catalog.get_state(txn, found, partition)
        if found.id == topic.id and state.end_offset > state.segment_base:
            catalog.put_segment(txn, topic, partition, catalog.active_segment(state))
            after = state._replace(
                segment_base=state.end_offset,
                position=0,
                indexed_position=-1,
                max_timestamp=catalog.NEVER,
                sealed_bytes=state.sealed_bytes + state.position,
            )
            catalog.put_state(txn, topic, partition, after)

    with partition_locks([directory]):
        metadata.write(close)
