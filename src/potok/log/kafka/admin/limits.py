"""The limits beyond which Kafka rejects records: those of the client, and those of a topic, which only the brokers
know."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka.admin import ConfigEntry

from potok.log.kafka.admin.topics import Topics, read_config
from potok.log.kafka.errors import KafkaRefused, TimeBefore1970, TimeRefused
from potok.log.kafka.options import KafkaOptions
from potok.log.record_limits import Misfits, keyless, oversized

PER_RECORD = 36
PER_HEADER = 10
"""The overhead of a record, and of a header, as estimated by Kafka's client."""

_PER_BATCH = 61
"""What brokers also count: the header of the record batch."""

_EVER = 1 << 62
_FRESH_S = 30.0
"""How long the limits of a topic are cached: they seldom change, and each request takes a round trip."""


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """`before_ms` and `after_ms` limit the distance between the time of a record and the current time."""

    record_bytes: int = _EVER
    keyed: bool = False
    before_ms: int = _EVER
    after_ms: int = _EVER

    def unfit(self, topic: str, batch: pa.RecordBatch, largest: int, now_ms: int) -> Misfits:
        """Return the rows over a limit; `largest` is the limit of the client."""
        if len(batch) == 0:
            return {}
        found = oversized(batch, min(largest, self.record_bytes), PER_RECORD, PER_HEADER)
        if self.keyed:
            found |= keyless(topic, batch.column("key"))
        return found | self._out_of_time(topic, batch.column("timestamp"), now_ms)

    def _out_of_time(self, topic: str, times: pa.Array, now_ms: int) -> Misfits:
        earliest, latest = max(0, now_ms - self.before_ms), now_ms + self.after_ms
        span = pc.min_max(times)
        if not times.is_valid().true_count or (span["min"].as_py() >= earliest and span["max"].as_py() <= latest):
            return {}
        at = pc.fill_null(times, now_ms).to_numpy()
        return {
            row: (TimeBefore1970 if at[row] < 0 else TimeRefused)(topic, int(at[row])).message
            for row in np.flatnonzero((at < earliest) | (at > latest)).tolist()
        }


class Limits:
    """Fetches the limits of topics and caches them."""

    def __init__(self, options: KafkaOptions, topics: Topics) -> None:
        self._topics = topics
        compression = options.values.get("compression.type") or options.values.get("compression.codec") or "none"
        self._compressed = compression != "none"
        self._known: dict[str, tuple[float, TopicLimits]] = {}

    def of(self, topic: str) -> TopicLimits:
        known = self._known.get(topic)
        if known is None or time.monotonic() - known[0] > _FRESH_S:
            known = self._known[topic] = time.monotonic(), self._ask(topic)
        return known[1]

    def _ask(self, topic: str) -> TopicLimits:
        try:
            entries = self._topics.entries(topic)
        except KafkaRefused:
            # A user with write access to a topic may lack the right to describe its configuration.
            return TopicLimits()
        # The size of a compressed record is unknown before it is sent.
        largest = _EVER if self._compressed else _number(entries, "max.message.bytes", _EVER) - _PER_BATCH
        return TopicLimits(largest, read_config(entries).compacted, *_distances(entries))


def _distances(entries: Mapping[str, ConfigEntry]) -> tuple[int, int]:
    """Return how far back and ahead times may be; a topic with LogAppendTime accepts any."""
    stamped = entries.get("message.timestamp.type")
    if stamped is not None and stamped.value == "LogAppendTime":
        return _EVER, _EVER
    both = _number(entries, "message.timestamp.difference.max.ms", _EVER)
    before = _number(entries, "message.timestamp.before.max.ms", _EVER)
    after = _number(entries, "message.timestamp.after.max.ms", _EVER)
    return min(before, both), min(after, both)


def _number(entries: Mapping[str, ConfigEntry], name: str, otherwise: int) -> int:
    entry = entries.get(name)
    return otherwise if entry is None or entry.value is None else min(int(entry.value), otherwise)
