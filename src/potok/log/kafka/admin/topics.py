"""Topics of a cluster: list, describe, create and delete them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigEntry, ConfigResource, NewTopic, ResourceType

from potok.errors import LogError
from potok.log.broker import DEFAULT_SEGMENT_BYTES, TopicConfig
from potok.log.embedded.catalog import check_topic_name
from potok.log.errors import InvalidName, TopicExists, TopicNotFound
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.maintenance import DAY_MS, DELETE, policy_of
from potok.log.ranges import Ranges, inside

_FRESH_S = 1.0
"""How long the partition count of a topic is cached where a request would cost more than the work itself."""

_INTERNAL = "__"
_WAIT_S = 0.01


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """`id` is Kafka's own, new each time a topic is created."""

    name: str
    id: str
    partitions: int
    leaderless: bool = False


class Topics:
    """Requests topics from the cluster, with a short cache."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._known: dict[str, tuple[float, KnownTopic]] = {}

    def names(self) -> list[str]:
        """Return the topics, without Kafka's internal ones."""
        listed = self._clients.listed_topics()
        return sorted(name for name in listed if not name.startswith(_INTERNAL))

    def look(self, name: str) -> KnownTopic:
        """Fetch the topic."""
        return self.look_all([name])[name]

    def look_all(self, names: Sequence[str]) -> dict[str, KnownTopic]:
        if not names:
            return {}
        for name in names:
            if not is_topic_name(name):
                raise TopicNotFound(name)
        futures = self._clients.admin().describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT_S)
        found: dict[str, KnownTopic] = {}
        for name, described in self._clients.results_of(futures).items():
            leaderless = any(part.leader is None for part in described.partitions)
            found[name] = KnownTopic(name, str(described.topic_id), len(described.partitions), leaderless)
        now = time.monotonic()
        self._known.update({name: (now, topic) for name, topic in found.items()})
        return found

    def recall(self, name: str, partition: int | None = None) -> KnownTopic:
        """Return the topic, possibly cached; raise if it has no such partition."""
        known = self._known.get(name)
        if known is None or time.monotonic() - known[0] > _FRESH_S or (partition or 0) >= known[1].partitions:
            topic = self.look(name)
        else:
            topic = known[1]
        if partition is not None and not 0 <= partition < topic.partitions:
            raise TopicNotFound(name, partition, topic.partitions)
        return topic

    def recall_all(self, names: Sequence[str]) -> dict[str, KnownTopic]:
        now = time.monotonic()
        stale = [name for name in names if name not in self._known or now - self._known[name][0] > _FRESH_S]
        self.look_all(stale)
        return {name: self._known[name][1] for name in names}

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def exists(self, name: str) -> bool:
        try:
            self.look(name)
        except TopicNotFound:
            return False
        return True

    def create(self, name: str, partitions: int, config: TopicConfig, *, exist_ok: bool) -> None:
        if partitions < 1:
            raise LogError(f'topic "{name}" cannot have {partitions} partitions', hint="use 1 or more")
        check_topic_name(name)
        if exist_ok and self.exists(name):
            # A user who may read and write a topic may lack the right to create one.
            return
        # The cluster decides the number of replicas.
        wanted = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=written(name, config))
        future = self._clients.admin().create_topics([wanted], request_timeout=TIMEOUT_S)[name]
        try:
            self._clients.answer(future, name)
        except TopicExists:
            if not exist_ok:
                raise
            return
        self._wait_until_usable(name)

    def delete(self, name: str) -> None:
        self.look(name)
        future = self._clients.admin().delete_topics([name], request_timeout=TIMEOUT_S)[name]
        self._clients.answer(future, name)
        self.forget(name)
        deadline = time.monotonic() + TIMEOUT_S
        while self.exists(name) and time.monotonic() < deadline:
            time.sleep(_WAIT_S)
        self.forget(name)

    def config(self, name: str) -> TopicConfig:
        return read_config(self.entries(name))

    def entries(self, name: str) -> Mapping[str, ConfigEntry]:
        """Return the configuration of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        future = self._clients.admin().describe_configs([resource], request_timeout=TIMEOUT_S)[resource]
        return self._clients.answer(future, name)

    def _wait_until_usable(self, name: str) -> None:
        """Wait until the topic is known to the brokers and has leaders, shortly after its creation."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if not self.look(name).leaderless:
                    return
            except TopicNotFound:
                pass
            time.sleep(_WAIT_S)


def is_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except InvalidName:
        return False
    return True


def written(name: str, config: TopicConfig) -> dict[str, str]:
    """Return the configuration of a topic. Retention without a limit is set explicitly, because Kafka's default
    differs."""
    if config.archive is not None:
        raise LogError(
            f'topic "{name}" cannot have an archive on Kafka',
            hint="use Kafka's tiered storage, or a query that writes the topic to files",
        )
    options = {
        "cleanup.policy": policy_of(name, config.cleanup_policy),
        "retention.ms": str(-1 if config.retention_ms is None else config.retention_ms),
        "retention.bytes": str(-1 if config.retention_bytes is None else config.retention_bytes),
    }
    if config.segment_bytes != DEFAULT_SEGMENT_BYTES:
        options["segment.bytes"] = str(config.segment_bytes)
    if config.delete_retention_ms != DAY_MS:
        options["delete.retention.ms"] = str(config.delete_retention_ms)
    if config.min_compaction_lag_ms:
        options["min.compaction.lag.ms"] = str(config.min_compaction_lag_ms)
    return options


def read_config(entries: Mapping[str, ConfigEntry]) -> TopicConfig:
    def number(name: str, otherwise: int) -> int:
        entry = entries.get(name)
        return otherwise if entry is None or entry.value is None else int(entry.value)

    policy = entries.get("cleanup.policy")
    words = {word.strip() for word in (policy.value or DELETE).split(",")} if policy is not None else {DELETE}
    retention_ms, retention_bytes = number("retention.ms", -1), number("retention.bytes", -1)
    return TopicConfig(
        number("segment.bytes", DEFAULT_SEGMENT_BYTES),
        None if retention_ms < 0 else retention_ms,
        None if retention_bytes < 0 else retention_bytes,
        ",".join(sorted(words)),
        number("delete.retention.ms", DAY_MS),
        number("min.compaction.lag.ms", 0),
    )


def beginning(batches: Iterable[pa.RecordBatch], ranges: Ranges) -> tuple[int, int]:
    """Return the offset up to which there are only records of the ranges, and their number.

    `batches` start with the partition. Gaps between the ranges, left by control records, do not matter.
    """
    count = 0
    for batch in batches:
        offsets = batch.column("offset").to_numpy()
        others = np.flatnonzero(~inside(ranges, offsets))
        if len(others):
            return int(offsets[others[0]]), count + int(others[0])
        count += len(offsets)
    return ranges[-1][1], count


def delete_before(clients: Clients, topic: str, partition: int, offset: int) -> None:
    topic_partition = TopicPartition(topic, partition, offset)
    future = clients.admin().delete_records([topic_partition], request_timeout=TIMEOUT_S)[topic_partition]
    clients.answer(future, topic)
