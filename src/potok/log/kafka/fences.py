"""The fence of a query: the last batch in Kafka, written in the same transaction as the output of that batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import IsolationLevel, TopicPartition

from potok.log.broker import PublishedBatch, TopicConfig
from potok.log.kafka.admin.offsets import LATEST, Positions
from potok.log.kafka.admin.topics import Topics
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.kafka.errors import KafkaUnreachable, PublishedOtherwise
from potok.log.kafka.read import Readers
from potok.log.maintenance import COMPACT

_logger = logging.getLogger(__name__)

TOPIC = "potok-fences"
PARTITION = 0
"""All fences are in one partition: if they were distributed by key, an added partition would hide existing ones."""

SLOTS = 16
"""How many transactions the tasks of a batch divide its output into. Never changes: a new driver ends the open
transactions of all slots, also those of an earlier version."""

_SEGMENT_BYTES = 16 << 20
_SLOT = "\n"
"""Separates query and slot; the name of a query has no line breaks."""

_OTHERS_S = 90.0
"""Longer than any transaction of ours stays open."""

_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Fence:
    """The last published batch. `life` changes if the ledger was lost and the query started over."""

    life: str
    number: int
    offsets: Mapping[str, Mapping[int, int]]

    def to_bytes(self) -> bytes:
        offsets = {topic: {str(part): at for part, at in parts.items()} for topic, parts in self.offsets.items()}
        return orjson.dumps({"life": self.life, "batch": self.number, "offsets": offsets}, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def of_bytes(cls, data: bytes) -> Fence:
        found = orjson.loads(data)
        offsets = {topic: {int(p): at for p, at in parts.items()} for topic, parts in found["offsets"].items()}
        return cls(found["life"], found["batch"], offsets)


def fence_of(batch: PublishedBatch, life: str) -> Fence:
    return Fence(life, batch.number, {topic: dict(parts) for topic, parts in batch.offsets.items()})


def slot_of(topic: str, partition: int) -> int:
    """Return the slot of a topic partition, the same in every process and version."""
    return crc32(f"{topic}:{partition}".encode()) % SLOTS


def fence_key(query: str, slot: int | None) -> str:
    """Return the key of the fence of a batch as a whole, or of one slot."""
    return query if slot is None else f"{query}{_SLOT}{slot}"


def is_published(found: Fence | None, wanted: Fence, query: str) -> bool:
    """Return whether Kafka already holds the output of a batch, so that only the ledger must be written.

    A fence of another life is ignored: that ledger was deleted, so the output is wanted again. So is one that is
    further ahead than a crash can explain: then an older ledger was restored.
    """
    if found is None or found.life != wanted.life or found.number < wanted.number:
        return False
    if found.number > wanted.number:
        message = 'query "%s" was reset to batch %d, but batch %d is already published: output may be duplicated'
        _logger.warning(message, query, wanted.number, found.number)
        return False
    if found.offsets != wanted.offsets:
        raise PublishedOtherwise(query, wanted.number)
    return True


class Fences:
    """Reads fences. Call after `init_transactions`, which ends open transactions of earlier producers."""

    def __init__(self, clients: Clients, topics: Topics, positions: Positions, readers: Readers) -> None:
        self._clients, self._topics, self._positions, self._readers = clients, topics, positions, readers

    def prepare(self) -> None:
        config = TopicConfig(_SEGMENT_BYTES, cleanup_policy=COMPACT)
        if not self._topics.exists(TOPIC):
            self._topics.create(TOPIC, 1, config, exist_ok=True)

    def read(self, query: str) -> dict[int | None, Fence]:
        """Return the fences of a query by slot; that of its batches as a whole has no slot."""
        topic = self._topics.recall(TOPIC)
        start = self._positions.starts(TOPIC)[PARTITION]
        end = self._wait_for_others()
        slots = {fence_key(query, slot).encode(): slot for slot in (None, *range(SLOTS))}
        keys = pa.array(slots, pa.binary())
        last: dict[int | None, bytes] = {}
        for batch in self._readers.read(topic, PARTITION, start, end):
            mine = batch.filter(pc.is_in(batch.column("key"), keys))
            last |= zip(map(slots.get, mine.column("key").to_pylist()), mine.column("value").to_pylist(), strict=True)
        return {slot: Fence.of_bytes(data) for slot, data in last.items()}

    def _wait_for_others(self) -> int:
        """Return the end of the topic, once all of it can be read.

        Uncommitted records of another query hide everything after them, which may include ours.
        """
        topic_partition = TopicPartition(TOPIC, PARTITION)
        future = self._clients.admin().list_offsets(
            {topic_partition: LATEST()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=TIMEOUT_S,
        )[topic_partition]
        written: int = self._clients.answer(future, TOPIC).offset
        deadline = time.monotonic() + _OTHERS_S
        while (stable := self._positions.ends([TOPIC])[TOPIC][PARTITION]) < written:
            if time.monotonic() > deadline:
                raise KafkaUnreachable(self._clients.options.bootstrap, f'a transaction on "{TOPIC}" does not end')
            time.sleep(_LOOK_S)
        return stable
