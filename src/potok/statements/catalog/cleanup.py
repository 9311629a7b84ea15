"""Clean up after statements: the state of queries that ended, and topics to delete.

The work is recorded in the transaction of the command that caused it, and done later by the process that runs the
queries, or by any process if none does: a query must have ended before its state can be removed, and a crash must not
lose the work.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.runtime.operations import reset_offsets
from potok.snapshots.tables import known_queries
from potok.sql.syntax import ast
from potok.statements.catalog.catalog_state import CatalogState

log = logging.getLogger(__name__)

_PREFIX = "sql/left/"


@dataclass(frozen=True, slots=True)
class Left:
    """What has to be removed after one command. Topics are identified by their ids as well, because a topic may be
    created again under the same name."""

    queries: tuple[str, ...] = ()
    topics: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return {*self.queries, *self.topics}

    def metadata_keys(self, sequence: int) -> dict[str, bytes | None]:
        """Return the metadata keys to write with the command, if any."""
        data = json.dumps({"queries": self.queries, "topics": self.topics}).encode()
        return {f"{_PREFIX}{sequence:08d}": data} if self.names else {}

    @classmethod
    def of_bytes(cls, data: bytes) -> Left:
        fields = json.loads(data)
        return cls(tuple(fields["queries"]), fields["topics"])


def left_by(statement: ast.Statement, before: CatalogState, after: CatalogState, broker: Broker) -> Left:
    """Return what has to be removed after a statement: queries that nothing refers to, and the topic to delete."""
    topics: dict[str, str] = {}
    if isinstance(statement, ast.Drop) and statement.delete_topic:
        topic = before.catalog.source(statement.name, statement.at).topic
        topics = broker.topic_ids([topic]) if broker.has_topic(topic) else {}
    return Left(tuple(sorted(before.referenced - after.referenced)), topics)


def named_by(statement: ast.Statement) -> set[str]:
    """Return the names that a statement creates; they must not be those of something still to be removed."""
    if not isinstance(statement, ast.CreateSource | ast.CreateAs | ast.InsertSelect):
        return set()
    given = {given.name: str(given.value) for given in statement.properties}
    if isinstance(statement, ast.InsertSelect):
        return {given.get("QUERY_ID", "").upper()}
    return {given.get("KAFKA_TOPIC", statement.name)}


def pending(broker: Broker) -> dict[str, Left]:
    """Return what has not been removed yet, by metadata key, the oldest first."""
    return {key: Left.of_bytes(data) for key, data in sorted(broker.list_metadata(_PREFIX).items())}


def names_left(broker: Broker) -> set[str]:
    """Return the queries and topics still to be removed."""
    return {name for left in pending(broker).values() for name in left.names}


def remove_left(broker: Broker) -> None:
    """Remove what can be removed; the rest stays recorded. The caller ensures that no other process starts queries
    meanwhile, and has stopped the ended ones."""
    for metadata_key, left in pending(broker).items():
        try:
            _remove(broker, left)
        except PotokError as error:
            log.warning("%s cannot be removed yet: %s", ", ".join(sorted(left.names)), error)
            continue
        broker.set_metadata({metadata_key: None})


def _remove(broker: Broker, left: Left) -> None:
    for query_id in set(left.queries).intersection(known_queries(broker)):
        reset_offsets.forget(broker, query_id)
    for topic, topic_id in left.topics.items():
        if broker.has_topic(topic) and broker.topic_ids([topic])[topic] == topic_id:
            broker.delete_topic(topic)
