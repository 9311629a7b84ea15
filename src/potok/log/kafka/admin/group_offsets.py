"""Committed offsets of consumer groups, and the progress of queries shown as that of groups.

The admin client can fetch these offsets too, but crashes the process if a connection breaks meanwhile; so they are
fetched by a consumer that is not a member of the group.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from potok.errors import LogError
from potok.log.broker import PublishedBatch
from potok.log.errors import GroupHasMembers, InvalidName
from potok.log.kafka.admin.topics import Topics
from potok.log.kafka.clients import TIMEOUT_S, Clients

_logger = logging.getLogger(__name__)

_MOST_GROUPS = 8
_PAUSE_S = 0.5
_AT_EXIT_S = 2.0

_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.NON_EMPTY_GROUP)

Offsets = Mapping[str, Mapping[int, int]]


class GroupOffsets:
    """Reads and resets the offsets of groups. Connections of the last few groups stay open."""

    def __init__(self, clients: Clients, topics: Topics) -> None:
        self._clients, self._topics = clients, topics
        self._lock = threading.Lock()
        self._consumers: dict[str, Consumer] = {}

    def committed(self, group: str, topic: str) -> dict[int, int]:
        wanted = [TopicPartition(topic, part) for part in range(self._topics.recall(topic).partitions)]
        consumer = self._consumer(group)
        try:
            found = self._clients.retrying(lambda: self._asked(consumer, wanted, topic))
        except LogError:
            self._drop(group)
            raise
        return {
            topic_partition.partition: topic_partition.offset
            for topic_partition in found
            if topic_partition.offset >= 0
        }

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        for partition in offsets:
            self._topics.recall(topic, partition)
        if offsets or not group:
            self.commit_all(group, {topic: offsets})

    def commit_all(self, group: str, offsets: Offsets) -> None:
        topic_partitions = [TopicPartition(topic, *pair) for topic, parts in offsets.items() for pair in parts.items()]
        consumer = self._consumer(group)
        try:
            self._clients.retrying(lambda: self._commit(consumer, group, topic_partitions))
        except LogError:
            self._drop(group)
            raise

    def close(self) -> None:
        for group in list(self._consumers):
            self._drop(group)

    def _asked(self, consumer: Consumer, wanted: list[TopicPartition], topic: str) -> list[TopicPartition]:
        try:
            found = consumer.committed(wanted, timeout=TIMEOUT_S)
        except KafkaException as error:
            raise self._clients.translated(error.args[0], topic) from error
        for topic_partition in found:
            if topic_partition.error is not None:
                raise self._clients.translated(topic_partition.error, topic_partition.topic)
        return found

    def _commit(self, consumer: Consumer, group: str, topic_partitions: list[TopicPartition]) -> None:
        try:
            answered = consumer.commit(offsets=topic_partitions, asynchronous=False)
            refused = next(
                (topic_partition.error for topic_partition in answered or () if topic_partition.error is not None), None
            )
        except KafkaException as error:
            refused = error.args[0]
        if refused is not None:
            if refused.code() in _MEMBERS:
                raise GroupHasMembers(group, 1)
            raise self._clients.translated(refused, topic_partitions[0].topic)

    def _consumer(self, group: str) -> Consumer:
        if not group:
            raise InvalidName("group", group, "use at least one letter")
        with self._lock:
            found = self._consumers.pop(group, None)
            if found is None:
                found = self._clients.consumer(group_id=group, enable_auto_commit=False)
            self._consumers[group] = found
            extra = next(iter(self._consumers)) if len(self._consumers) > _MOST_GROUPS else None
        if extra is not None:
            self._drop(extra)
        return found

    def _drop(self, group: str) -> None:
        with self._lock:
            found = self._consumers.pop(group, None)
        if found is not None:
            found.close()


class GroupProgress:
    """Commits the progress of a query for the group of its name: in the background, at intervals.

    Kafka could commit these offsets in the transaction of the batch. But there the client may wait forever for a lost
    broker, and a batch would hang because of a display. Nothing depends on these offsets.
    """

    def __init__(self, offsets: GroupOffsets) -> None:
        self._offsets = offsets
        self._lock = threading.Lock()
        self._latest: dict[str, Offsets] = {}
        self._occupied: set[str] = set()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()

    def report(self, batch: PublishedBatch) -> None:
        with self._lock:
            if batch.query in self._occupied or not any(batch.offsets.values()):
                return
            self._latest[batch.query] = batch.offsets
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="potok-kafka-progress", daemon=True)
                self._thread.start()
                atexit.unregister(self.settle)
                atexit.register(self.settle, _AT_EXIT_S)

    def settle(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until all progress is committed, at most for the timeout."""
        thread = self._thread
        if thread is not None:
            self._hurry.set()
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._lock:
                latest, self._latest = self._latest, {}
                if not latest:
                    self._thread = None
                    self._hurry.clear()
                    return
            for query, offsets in latest.items():
                self._commit(query, offsets)
            self._hurry.wait(_PAUSE_S)

    def _commit(self, query: str, offsets: Offsets) -> None:
        try:
            self._offsets.commit_all(query, offsets)
        except GroupHasMembers:
            self._occupied.add(query)
            message = 'group "%s" has members, so the progress of the query of that name is not committed for it'
            _logger.warning(message, query)
        except LogError as error:
            _logger.debug('cannot report the progress of query "%s": %s', query, error)
