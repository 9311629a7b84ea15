"""Consumer groups on Kafka, with its own group protocol. Records are read by the broker."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from potok.log.consumer_groups import GroupDescription, GroupMember, Membership, PartitionId, PartitionListener
from potok.log.errors import InvalidName, PartitionsMovedError
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.kafka.errors import KafkaNotReady, KafkaRefused
from potok.retry_policy import Retry

_LOOK_SECONDS = 0.1
_LONGEST_PAUSE_S = 0.2

_MOVED = (
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._STATE,
)
_MOVING = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION)

_logger = logging.getLogger("potok.log")


class KafkaMembership(Membership):
    """A client that joins the group and fetches nothing: all assigned partitions are paused at once.

    Partitions move one by one ("cooperative-sticky"), and callbacks run inside `poll`, so inside `refresh`.
    """

    def __init__(
        self,
        clients: Clients,
        group: str,
        topics: Sequence[str],
        listener: PartitionListener,
        lease_ms: int,
        max_pause_ms: int,
    ) -> None:
        if not group:
            raise InvalidName("group", group, "use at least one letter")
        self.group = group
        self._clients = clients
        self._listener = listener
        self._lease = lease_ms / 1000
        self._held: set[PartitionId] = set()
        self._gained: list[PartitionId] = []
        self._member_of_held = ""
        self._failed: BaseException | None = None
        self._heard = False
        self._closed = False
        self._refreshed_at = 0.0
        self._consumer = clients.consumer(
            group_id=group,
            client_id=clients.options.values.get("client.id", f"potok-{socket.gethostname()}-{os.getpid()}"),
            session_timeout_ms=lease_ms,
            heartbeat_interval_ms=max(lease_ms // 3, 1),
            max_poll_interval_ms=max(max_pause_ms, lease_ms),
            partition_assignment_strategy="cooperative-sticky",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
        )
        try:
            self._consumer.subscribe(
                list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
        except KafkaException as error:
            raise clients.translated(error.args[0]) from error

    @property
    def member(self) -> str:
        return self._consumer.memberid() or ""

    @property
    def settled(self) -> bool:
        return self._heard and not self._gained

    def changed(self) -> bool:
        return time.monotonic() > self._refreshed_at + _LOOK_SECONDS

    def refresh(self) -> None:
        try:
            message = self._consumer.poll(0)
        except KafkaException as failure:
            raise self._clients.translated(failure.args[0]) from failure
        self._refreshed_at = time.monotonic()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        gained, self._gained = self._gained, []
        if gained:
            self._held.update(gained)
            self._listener.assigned(sorted(gained))
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._MAX_POLL_EXCEEDED:
            _logger.warning(
                'a consumer of group "%s" did not poll for too long; its partitions were reassigned (max_pause=)',
                self.group,
            )
        elif error is not None:
            raise self._clients.translated(error, message.topic() or "" if message is not None else "")

    def assignment(self) -> frozenset[PartitionId]:
        return frozenset(self._held)

    def commit(self, offsets: Mapping[PartitionId, int]) -> None:
        """Commit. No member can commit during a rebalance, but the partitions of this one stay its own."""
        retry = Retry(round(self._lease * 1000), most_s=_LONGEST_PAUSE_S)
        while offsets:
            strangers = [topic_partition for topic_partition in offsets if topic_partition not in self._held]
            if strangers or self.member != self._member_of_held:
                self._moved(strangers or list(offsets))
            error = self._refusal(
                [TopicPartition(*topic_partition, offset) for topic_partition, offset in offsets.items()]
            )
            if error is None:
                return
            passes = isinstance(self._clients.translated(error), KafkaNotReady)
            if error.code() not in (*_MOVED, *_MOVING) and not passes:
                raise self._clients.translated(error)
            if error.code() in _MOVED or not retry.wait():
                self._moved(list(offsets))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._held = set()
            self._consumer.close()

    def _moved(self, topic_partitions: list[PartitionId]) -> NoReturn:
        self._refreshed_at = 0.0
        raise PartitionsMovedError(self.group, topic_partitions)

    def _refusal(self, offsets: list[TopicPartition]) -> KafkaError | None:
        try:
            answered = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            refused: KafkaError = error.args[0]
            return refused
        return next(
            (topic_partition.error for topic_partition in answered or () if topic_partition.error is not None), None
        )

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._heard = True
        if partitions:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)
        self._member_of_held = consumer.memberid() or ""
        self._gained += ((partition.topic, partition.partition) for partition in partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Keep an error of the listener for `refresh` to raise: it would get lost in the client."""
        topic_partitions = [(partition.topic, partition.partition) for partition in partitions]
        self._gained = [topic_partition for topic_partition in self._gained if topic_partition not in topic_partitions]
        revoked = sorted(topic_partition for topic_partition in topic_partitions if topic_partition in self._held)
        try:
            if revoked and not self._closed:
                self._listener.revoked(revoked)
        except BaseException as error:  # noqa: BLE001 - user code
            self._failed = error
        finally:
            self._held.difference_update(topic_partitions)
        if partitions:
            consumer.incremental_unassign(partitions)


def list_groups(clients: Clients) -> list[str]:
    found = clients.retrying(lambda: clients.answer(clients.admin().list_consumer_groups(request_timeout=TIMEOUT_S)))
    for error in found.errors:
        raise clients.translated(error.args[0])
    return sorted(group.group_id for group in found.valid)


def describe_group(clients: Clients, group: str) -> GroupDescription:
    if not group:
        raise InvalidName("group", group, "use at least one letter")
    try:
        found = clients.retrying(lambda: _members(clients, group))
        return GroupDescription(group, found, clients.retrying(lambda: _committed(clients, group)))
    except KafkaRefused as error:
        if "GROUP_ID_NOT_FOUND" not in error.message:
            raise
        return GroupDescription(group, (), {})


def _members(clients: Clients, group: str) -> tuple[GroupMember, ...]:
    future = clients.admin().describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group]
    members = []
    for member in sorted(clients.answer(future).members, key=lambda found: found.member_id):
        assigned = member.assignment.topic_partitions if member.assignment is not None else []
        topic_partitions = tuple(
            sorted((topic_partition.topic, topic_partition.partition) for topic_partition in assigned)
        )
        topics = tuple(sorted({topic for topic, _ in topic_partitions}))
        members.append(
            GroupMember(member.member_id, f"{member.client_id} at {member.host.strip('/')}", topics, topic_partitions)
        )
    return tuple(members)


def _committed(clients: Clients, group: str) -> dict[str, dict[int, int]]:
    request = [ConsumerGroupTopicPartitions(group)]
    future = clients.admin().list_consumer_group_offsets(request, request_timeout=TIMEOUT_S)[group]
    committed: dict[str, dict[int, int]] = {}
    for topic_partition in clients.answer(future).topic_partitions:
        if topic_partition.offset >= 0:
            committed.setdefault(topic_partition.topic, {})[topic_partition.partition] = topic_partition.offset
    return committed
