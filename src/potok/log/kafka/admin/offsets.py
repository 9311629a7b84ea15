"""Start and end offsets of partitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from potok.log.errors import TopicNotFound
from potok.log.kafka.admin.topics import Topics
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.kafka.errors import KafkaUnreachable

Ends = dict[str, dict[int, int]]

_NONE = -1
"""Kafka's response if there is no such offset."""

_VISIBLE_S = 5.0
"""An open transaction of another producer on the same partition may hide ours for longer."""

_LOOK_S = 0.002

EARLIEST: Callable[[], OffsetSpec] = OffsetSpec.earliest
LATEST: Callable[[], OffsetSpec] = OffsetSpec.latest


class Positions:
    """Fetches offsets: one request per broker, whatever the number of topics and partitions."""

    def __init__(self, clients: Clients, topics: Topics) -> None:
        self._clients, self._topics = clients, topics

    def starts(self, topic: str) -> dict[int, int]:
        return self._of([topic], EARLIEST)[topic]

    def ends(self, topics: Sequence[str]) -> Ends:
        """Return the last stable offsets: records of open transactions are after them."""
        return self._of(topics, LATEST)

    def at(self, partitions: Sequence[tuple[str, int]], timestamp_ms: int) -> dict[tuple[str, int], int]:
        """Return the first offset of each partition at or after a timestamp; the end if there is none."""
        for topic, partition in partitions:
            self._topics.recall(topic, partition)
        topic_partitions = [TopicPartition(*topic_partition) for topic_partition in partitions]
        found = self._ask(
            {topic_partition: OffsetSpec.for_timestamp(max(0, timestamp_ms)) for topic_partition in topic_partitions}
        )
        return found | self._ask(
            {
                topic_partition: LATEST()
                for topic_partition in topic_partitions
                if found[topic_partition.topic, topic_partition.partition] == _NONE
            }
        )

    def wait_until_visible(self, last: Mapping[tuple[str, int], int]) -> None:
        """Return when these offsets can be read: records become visible shortly after the commit of their
        transaction."""
        deadline = time.monotonic() + _VISIBLE_S
        waiting = {topic_partition: offset for topic_partition, offset in last.items() if offset >= 0}
        while waiting and time.monotonic() < deadline:
            try:
                ends = self._request({TopicPartition(*topic_partition): LATEST() for topic_partition in waiting})
            except KafkaUnreachable:
                # It is committed, whichever broker becomes the leader.
                self._clients.look_around()
                ends = {}
            waiting = {
                topic_partition: offset
                for topic_partition, offset in waiting.items()
                if ends.get(topic_partition, 0) <= offset
            }
            if waiting:
                time.sleep(_LOOK_S)

    def _of(self, topics: Sequence[str], spec: Callable[[], OffsetSpec]) -> Ends:
        try:
            return self._asked(topics, spec)
        except TopicNotFound:
            # Fewer partitions than before: the topic was deleted, and possibly recreated.
            for topic in topics:
                self._topics.forget(topic)
            return self._asked(topics, spec)

    def _asked(self, topics: Sequence[str], spec: Callable[[], OffsetSpec]) -> Ends:
        known = self._topics.recall_all(topics)
        topic_partitions = [(topic, part) for topic in topics for part in range(known[topic].partitions)]
        found = self._ask({TopicPartition(*topic_partition): spec() for topic_partition in topic_partitions})
        return {topic: {part: found[topic, part] for part in range(known[topic].partitions)} for topic in topics}

    def _ask(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[tuple[str, int], int]:
        return self._clients.retrying(lambda: self._request(wanted)) if wanted else {}

    def _request(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[tuple[str, int], int]:
        futures = self._clients.admin().list_offsets(
            dict(wanted), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S
        )
        return {
            (topic_partition.topic, topic_partition.partition): self._clients.answer(
                future, topic_partition.topic
            ).offset
            for topic_partition, future in futures.items()
        }
