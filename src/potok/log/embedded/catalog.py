"""The catalog in the metadata: topics, the committed end of each partition, its segments and a sparse index.

Everything is in one key space; the first byte of a key is its kind:

```
t <topic>                               the topic
p <topic id> <partition>                start, end and active segment of a partition
s <topic id> <partition> <base offset>  a sealed segment
i <topic id> <partition> <offset>       position of the frame of that offset
c <topic id> <partition>                the offset up to which it is compacted
a <topic id> <partition> <base offset>  an archived segment
g <topic id> <group>                    offsets committed by a consumer group
r <group>                               members of a consumer group, with their partitions
h <group> 0 <member>                    the last heartbeat of a member
m <name>                                a metadata key
x <owner>                               offsets that retention must not pass
v                                       the format of the log
```
"""

from __future__ import annotations

import itertools
import re
import struct
import uuid
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import orjson

from potok.errors import LogError
from potok.log.broker import TopicConfig
from potok.log.embedded.metadata import Transaction
from potok.log.errors import InvalidName, TopicNotFound
from potok.storage.page_format import bounded

_PARTITION = struct.Struct(">I")
_OFFSET = struct.Struct(">Q")
_STATE = struct.Struct("<qqqqqqqq")
_SEGMENT = struct.Struct("<qqqq")
_COMPACTED = struct.Struct("<qqqqqqq")
_INDEX = struct.Struct("<qqq")

NEVER = -(1 << 62)
"""Earlier than every timestamp."""

FORMAT = b"1"

LATER_FORMAT = b"2"
"""A log with compacted topics or an archive, which a reader of format 1 would misread."""

ID_BYTES = 16
"""The length of a topic id."""

PER_TOPIC = (b"p", b"s", b"i", b"g", b"c", b"a")
"""The kinds of keys that belong to a topic and start with its id."""

_LATER_CONFIG = ("cleanup_policy", "delete_retention_ms", "min_compaction_lag_ms", "archive")
"""Absent in the topics of format 1, which have the defaults."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: int
    config: TopicConfig
    created_at_ms: int

    @property
    def directory(self) -> str:
        return f"{self.name}-{self.id.hex()[:12]}"


class PartitionState(NamedTuple):
    """Start and end of a partition. Bytes of the active segment after `position` are ignored."""

    start_offset: int
    end_offset: int
    segment_base: int
    position: int
    indexed_position: int
    max_timestamp: int
    last_ingested: int
    sealed_bytes: int


class Segment(NamedTuple):
    """A segment file. Each compaction writes it again, under its next `generation`.

    `records` is -1 if there is one for each offset. `tombstone_since` is when compaction first saw the oldest of its
    tombstones; 0 if there is none.
    """

    base_offset: int
    end_offset: int
    size: int
    max_timestamp: int
    last_ingested: int
    generation: int = 0
    records: int = -1
    tombstone_since: int = 0

    @property
    def held(self) -> int:
        """The number of records."""
        return self.end_offset - self.base_offset if self.records < 0 else self.records


class IndexEntry(NamedTuple):
    """`max_timestamp` is that of the segment's records before this frame."""

    offset: int
    segment_base: int
    position: int
    max_timestamp: int


EMPTY_PARTITION = PartitionState(0, 0, 0, 0, -1, NEVER, 0, 0)


def check_format(txn: Transaction) -> bool:
    """Return whether the log has a format yet; raise if it is not supported."""
    found = txn.get(b"v")
    if found not in (None, FORMAT, LATER_FORMAT):
        raise LogError(
            f"the log is in format {found.decode()}, and this version reads up to format {LATER_FORMAT.decode()}",
            hint="use the version of potok that wrote it, or a newer one",
        )
    return found is not None


def check_topic_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise InvalidName("topic", name, "use 1 to 249 letters, digits, dots, dashes and underscores")


def topic_key(name: str) -> bytes:
    return b"t" + name.encode()


def partition_key(kind: bytes, topic_id: bytes, partition: int) -> bytes:
    return kind + topic_id + _PARTITION.pack(partition)


def new_topic(name: str, partitions: int, config: TopicConfig, created_at_ms: int) -> Topic:
    return Topic(name, uuid.uuid4().bytes, partitions, config, created_at_ms)


def put_topic(txn: Transaction, topic: Topic) -> None:
    described = {
        "id": topic.id.hex(),
        "partitions": topic.partitions,
        "segment_bytes": topic.config.segment_bytes,
        "retention_ms": topic.config.retention_ms,
        "retention_bytes": topic.config.retention_bytes,
        "created_at_ms": topic.created_at_ms,
    }
    if topic.config.compacted or topic.config.archive is not None:
        described |= {name: getattr(topic.config, name) for name in _LATER_CONFIG}
        txn.put(b"v", LATER_FORMAT)
    txn.put(topic_key(topic.name), orjson.dumps(described))


@lru_cache(maxsize=1024)
def _parse_topic(name: str, raw: bytes) -> Topic:
    described = orjson.loads(raw)
    later = {field: described[field] for field in _LATER_CONFIG if field in described}
    config = TopicConfig(described["segment_bytes"], described["retention_ms"], described["retention_bytes"], **later)
    return Topic(name, bytes.fromhex(described["id"]), described["partitions"], config, described["created_at_ms"])


def find_topic(txn: Transaction, name: str) -> Topic | None:
    raw = txn.get(topic_key(name)) if _NAME.fullmatch(name) else None
    return None if raw is None else _parse_topic(name, raw)


def get_topic(txn: Transaction, name: str, partition: int | None = None) -> Topic:
    topic = find_topic(txn, name)
    if topic is None:
        raise TopicNotFound(name)
    if partition is not None and not 0 <= partition < topic.partitions:
        raise TopicNotFound(name, partition, topic.partitions)
    return topic


def all_topics(txn: Transaction) -> list[Topic]:
    return [_parse_topic(key[1:].decode(), value) for key, value in scan(txn, b"t")]


def get_state(txn: Transaction, topic: Topic, partition: int) -> PartitionState:
    raw = txn.get(partition_key(b"p", topic.id, partition))
    return EMPTY_PARTITION if raw is None else PartitionState._make(_STATE.unpack(raw))


def put_state(txn: Transaction, topic: Topic, partition: int, state: PartitionState) -> None:
    txn.put(partition_key(b"p", topic.id, partition), _STATE.pack(*state))


def put_segment(txn: Transaction, topic: Topic, partition: int, segment: Segment) -> None:
    key = partition_key(b"s", topic.id, partition) + _OFFSET.pack(segment.base_offset)
    txn.put(key, _COMPACTED.pack(*segment[1:]) if segment.generation else _SEGMENT.pack(*segment[1:5]))


def segments(txn: Transaction, topic: Topic, partition: int, since: int = 0) -> list[Segment]:
    """Return the segments with records, oldest first, from the base offset `since` on; the active one is the last."""
    prefix = partition_key(b"s", topic.id, partition)
    found = [
        Segment(_OFFSET.unpack_from(key, len(prefix))[0], *_unpack_segment(value))
        for key, value in scan(txn, prefix, prefix + _OFFSET.pack(since))
    ]
    state = get_state(txn, topic, partition)
    if state.end_offset > state.segment_base:
        found.append(active_segment(state))
    return found


def _unpack_segment(value: bytes) -> tuple[int, ...]:
    return (_SEGMENT if len(value) == _SEGMENT.size else _COMPACTED).unpack(value)


def delete_segments(txn: Transaction, topic: Topic, partition: int, gone: Sequence[Segment]) -> None:
    """Delete adjacent sealed segments and their index entries."""
    for segment in gone:
        txn.delete(partition_key(b"s", topic.id, partition) + _OFFSET.pack(segment.base_offset))
    prefix = partition_key(b"i", topic.id, partition)
    start, stop = (prefix + _OFFSET.pack(offset) for offset in (gone[0].base_offset, gone[-1].end_offset))
    for key in [key for key, _ in itertools.takewhile(lambda item: item[0] < stop, scan(txn, prefix, start))]:
        txn.delete(key)


def active_segment(state: PartitionState) -> Segment:
    return Segment(state.segment_base, state.end_offset, state.position, state.max_timestamp, state.last_ingested)


def put_index(txn: Transaction, topic: Topic, partition: int, entry: IndexEntry) -> None:
    key = partition_key(b"i", topic.id, partition) + _OFFSET.pack(entry.offset)
    txn.put(key, _INDEX.pack(*entry[1:]))


def index_at_or_before(txn: Transaction, topic: Topic, partition: int, offset: int) -> IndexEntry | None:
    prefix = partition_key(b"i", topic.id, partition)
    cursor = txn.cursor()
    found = cursor.prev() if cursor.set_range(prefix + _OFFSET.pack(offset + 1)) else cursor.last()
    if not found or not cursor.key().startswith(prefix):
        return None
    return _index_entry(prefix, cursor.key(), cursor.value())


def index_from(txn: Transaction, topic: Topic, partition: int, offset: int) -> Iterator[IndexEntry]:
    """Yield the entries at or after `offset`, in order."""
    prefix = partition_key(b"i", topic.id, partition)
    for key, value in scan(txn, prefix, prefix + _OFFSET.pack(offset)):
        yield _index_entry(prefix, key, value)


def _index_entry(prefix: bytes, key: bytes, value: bytes) -> IndexEntry:
    return IndexEntry(_OFFSET.unpack_from(key, len(prefix))[0], *_INDEX.unpack(value))


def scan(txn: Transaction, prefix: bytes, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
    cursor = txn.cursor()
    if not cursor.set_range(start or prefix):
        return
    for key, value in bounded(txn, iter(cursor)):
        if not key.startswith(prefix):
            return
        yield key, value


def delete_prefix(txn: Transaction, prefix: bytes) -> None:
    for key in [key for key, _ in scan(txn, prefix)]:
        txn.delete(key)
