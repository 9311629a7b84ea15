"""What statements leave behind: the state of queries that are over, and topics that were to be deleted.

It is written down in the transaction of the command that left it, and removed afterwards by whoever runs the queries,
or by anybody where nobody does: a query must have ended before its state can go, and a crash forgets nothing.
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
    """What one command left. Topics have their ids: one that was created again is another."""

    queries: tuple[str, ...] = ()
    topics: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return {*self.queries, *self.topics}

    def metadata_keys(self, sequence: int) -> dict[str, bytes | None]:
        """What to write down with the command; nothing if it leaves nothing."""
        told = json.dumps({"queries": self.queries, "topics": self.topics}).encode()
        return {f"{_PREFIX}{sequence:08d}": told} if self.names else {}

    @classmethod
    def of_bytes(cls, data: bytes) -> Left:
        told = json.loads(data)
        return cls(tuple(told["queries"]), told["topics"])


def left_by(statement: ast.Statement, before: CatalogState, after: CatalogState, broker: Broker) -> Left:
    """What a statement leaves: queries that nothing refers to any more, and the topic that it says to delete."""
    topics: dict[str, str] = {}
    if isinstance(statement, ast.Drop) and statement.delete_topic:
        topic = before.catalog.source(statement.name, statement.at).topic
        topics = broker.topic_ids([topic]) if broker.has_topic(topic) else {}
    return Left(tuple(sorted(before.referenced - after.referenced)), topics)


def named_by(statement: ast.Statement) -> set[str]:
    """The names that a statement gives: they must not be those of something that is still to be removed."""
    if not isinstance(statement, ast.CreateSource | ast.CreateAs | ast.InsertSelect):
        return set()
    given = {given.name: str(given.value) for given in statement.properties}
    if isinstance(statement, ast.InsertSelect):
        return {given.get("QUERY_ID", "").upper()}
    return {given.get("KAFKA_TOPIC", statement.name)}


def pending(broker: Broker) -> dict[str, Left]:
    """What is not removed yet, by its mark, the oldest first."""
    return {mark: Left.of_bytes(data) for mark, data in sorted(broker.list_metadata(_PREFIX).items())}


def names_left(broker: Broker) -> set[str]:
    """The queries and topics that are still to be removed."""
    return {name for left in pending(broker).values() for name in left.names}


def remove_left(broker: Broker) -> None:
    """Remove what was left, as far as it can be; the rest stays written down. The caller sees to it that nobody else
    begins queries meanwhile, and has ended those that are over."""
    for mark, left in pending(broker).items():
        try:
            _remove(broker, left)
        except PotokError as error:
            log.warning("%s cannot be removed yet: %s", ", ".join(sorted(left.names)), error)
            continue
        broker.set_metadata({mark: None})


def _remove(broker: Broker, left: Left) -> None:
    for query_id in set(left.queries).intersection(known_queries(broker)):
        reset_offsets.forget(broker, query_id)
    for topic, topic_id in left.topics.items():
        if broker.has_topic(topic) and broker.topic_ids([topic])[topic] == topic_id:
            broker.delete_topic(topic)
