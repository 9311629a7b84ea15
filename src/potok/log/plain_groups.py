"""Consumer groups and queues as plain data: partitions, owners and lag."""

from __future__ import annotations

from typing import Any

from potok.log.broker import Broker
from potok.log.consumer_groups import GroupDescription
from potok.log.queues.queue_store import QueueStore


def standing(log: Broker, group: GroupDescription) -> list[dict[str, Any]]:
    """Return one row per partition of the topics of a group; the lag is None if nothing is committed."""
    rows: list[dict[str, Any]] = []
    for topic in filter(log.has_topic, group.topics):
        committed = group.committed.get(topic, {})
        for partition, end in sorted(log.end_offsets(topic).items()):
            owner, offset = group.owner((topic, partition)), committed.get(partition)
            rows.append(
                {
                    "topic": topic,
                    "partition": partition,
                    "committed": offset,
                    "end": end,
                    "lag": None if offset is None else max(0, end - offset),
                    "member": None if owner is None else owner.client,
                }
            )
    return rows


def queue_standing(log: Broker, group: str, topic: str, now: int) -> list[dict[str, Any]]:
    """Return how many records of each partition are ready, out with a worker, and waiting for another attempt."""
    ends = log.end_offsets(topic)
    states = QueueStore(log, topic, group, "", "earliest").states()
    found = ((part, state.counts(now, ends[part])) for part, state in sorted(states.items()))
    return [{"partition": part, "ready": c.ready, "out": c.out, "waiting": c.waiting} for part, c in found]


def members(group: GroupDescription) -> list[dict[str, Any]]:
    return [
        {"member": one.member, "client": one.client, "partitions": [f"{t}:{p}" for t, p in one.topic_partitions]}
        for one in group.members
    ]
