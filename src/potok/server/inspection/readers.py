"""Who reads and writes a topic: queries, consumer groups and queues, with their lag."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from potok.clock import now_ms
from potok.log.plain_groups import queue_standing, standing
from potok.log.queues.queue_store import queues
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_description
from potok.snapshots.tables import known_queries
from potok.statements.database import Database
from potok.statements.push.transient import is_transient


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the queries that read and write each topic, and of the groups that read it."""

    read_by: dict[str, list[str]]
    written_by: dict[str, list[str]]
    groups: dict[str, list[str]]

    def of(self, topic: str) -> dict[str, list[str]]:
        return {
            "read_by": self.read_by.get(topic, []),
            "written_by": self.written_by.get(topic, []),
            "groups": self.groups.get(topic, []),
        }


def topic_roles(database: Database) -> Roles:
    broker = database.broker
    read_by, written_by, groups = defaultdict(list), defaultdict(list), defaultdict(list)
    for query in filter(lambda name: not is_transient(name), known_queries(broker)):
        found = read_description(broker, query) or {}
        for topic in found.get("reads", ()):
            read_by[topic].append(query)
        for topic in found.get("writes", ()):
            written_by[topic].append(query)
    for group in broker.groups():
        for topic in broker.describe_group(group).topics:
            groups[topic].append(group)
    for group, topics in queues(broker).items():
        for topic in topics:
            groups[topic].append(group)
    return Roles(dict(read_by), dict(written_by), dict(groups))


def readers_of(database: Database, topic: str) -> list[dict[str, Any]]:
    """Return the queries, consumer groups and queues that read a topic, those with the greatest lag first."""
    broker, rows = database.broker, []
    ends = broker.end_offsets(topic)
    for query in known_queries(broker):
        entry = None if is_transient(query) else read_entry(broker, query)
        if entry is not None and topic in entry.offsets.topics:
            rows.append({"name": query, "kind": "query", "members": None, "lag": entry.offsets.pending({topic: ends})})
    for group in broker.groups():
        described = broker.describe_group(group)
        if topic in described.topics:
            lag = sum(row["lag"] or 0 for row in standing(broker, described) if row["topic"] == topic)
            rows.append({"name": group, "kind": "consumers", "members": len(described.members), "lag": lag})
    for group, topics in queues(broker).items():
        if topic in topics:
            parts = queue_standing(broker, group, topic, now_ms())
            lag = sum(row["ready"] + row["out"] + row["waiting"] for row in parts)
            rows.append({"name": group, "kind": "queue", "members": None, "lag": lag})
    return sorted(rows, key=lambda row: (-row["lag"], row["name"]))
