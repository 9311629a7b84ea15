"""SHOW TOPICS and ASSERT TOPIC."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from potok.duration import show_ms
from potok.log.broker import Broker, TopicDescription
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sql.budget import check_time
from potok.sql.errors import Refused, SqlError
from potok.sql.syntax import ast
from potok.sql.with_clause import Options
from potok.statements.inspect.listing import listed, show_time, texts
from potok.statements.results import Done, Row, Rows

if TYPE_CHECKING:
    from potok.statements.database import Database

DEFAULT_TIMEOUT_MS = 1_000
"""The timeout of ASSERT if it has none, as in ksqlDB."""

_LOOK_S = 0.05
_BACK = 64
"""How many offsets to search backwards for the last record: compaction and transactions leave gaps."""


class AssertionNotMet(SqlError):
    """A topic does not match an ASSERT statement."""


def show_topics(database: Database, *, everything: bool, extended: bool) -> Rows:
    """List all topics; internal topics only with `everything`."""
    names = [name for name in sorted(database.broker.topics()) if everything or not _is_internal(name)]
    described = database.broker.describe_topics(names)
    warnings = tuple(
        f"the number of records of {topic.name} is an upper bound" for topic in described if not topic.exact
    )
    plain = ("Kafka Topic", "Partitions", "Partition Replicas", "Records")
    if not extended:
        rows: list[Row] = [_plain(database.broker, topic) for topic in described]
        return replace(listed("topics", texts(*plain, numbers=("Partitions", "Records")), rows), warnings=warnings)
    more = ("Cleanup", "Retention", "Last Record", "Consumer Groups", "Queries Reading", "Queries Writing")
    rows = [(*_plain(database.broker, topic), *_more(database, topic)) for topic in described]
    listing = listed("topics", texts(*plain, *more, numbers=("Partitions", "Records")), rows)
    return replace(listing, warnings=warnings)


def _is_internal(topic: str) -> bool:
    return topic.startswith("_") or topic.endswith("-dead-letters")


def _plain(broker: Broker, topic: TopicDescription) -> Row:
    replicas = "1" if isinstance(broker, EmbeddedBroker) else ""
    return (topic.name, len(topic.partitions), replicas, topic.records)


def _more(database: Database, topic: TopicDescription) -> Row:
    broker, queries = database.broker, database.queries()
    groups = [group for group in broker.groups() if broker.committed(group, topic.name)]
    last = last_record_ms(broker, topic)
    return (
        topic.config.cleanup_policy,
        retention_of(topic),
        "" if last is None else show_time(last),
        ", ".join(groups),
        ", ".join(query.query_id for query in queries if topic.name in query.reads),
        ", ".join(query.query_id for query in queries if topic.name in query.writes),
    )


def retention_of(topic: TopicDescription) -> str:
    kept = topic.config.retention_ms
    return "forever" if kept is None else show_ms(kept)


def last_record_ms(broker: Broker, topic: TopicDescription) -> int | None:
    """Return the latest timestamp among the last records of the partitions; None if there is none."""
    found: list[int] = []
    for part in topic.partitions:
        start = max(part.start_offset, part.end_offset - _BACK)
        for batch in broker.read(topic.name, part.partition, start, part.end_offset):
            if batch.num_rows:
                found.append(batch.column("timestamp")[batch.num_rows - 1].as_py())
    return max(found, default=None)


def assert_topic(database: Database, statement: ast.AssertTopic) -> Done:
    """Wait until a topic exists and matches, or does not exist; raises `AssertionNotMet` after the timeout."""
    check = _absent(statement) if not statement.exists else _present(statement)
    timeout_ms = DEFAULT_TIMEOUT_MS if statement.timeout_ms is None else statement.timeout_ms
    end = time.monotonic() + timeout_ms / 1_000
    while (wrong := check(database.broker)) is not None:
        check_time()
        if time.monotonic() >= end:
            raise wrong
        time.sleep(_LOOK_S)
    return Done(f"Topic {statement.topic} {'exists' if statement.exists else 'does not exist'}")


def _absent(statement: ast.AssertTopic) -> Callable[[Broker], AssertionNotMet | None]:
    def check(broker: Broker) -> AssertionNotMet | None:
        if not broker.has_topic(statement.topic):
            return None
        hint = "delete it, or write ASSERT TOPIC"
        return AssertionNotMet(f'topic "{statement.topic}" exists', hint=hint, location=statement.at)

    return check


def _present(statement: ast.AssertTopic) -> Callable[[Broker], AssertionNotMet | None]:
    options = Options.of(statement.properties, statement.at, ("PARTITIONS", "REPLICAS"))
    partitions, replicas = options.partitions(), options.count("REPLICAS")

    def check(broker: Broker) -> AssertionNotMet | None:
        if not broker.has_topic(statement.topic):
            hint = "SHOW TOPICS lists all topics; CREATE STREAM ... WITH (KAFKA_TOPIC = ...) creates one"
            return AssertionNotMet(f'there is no topic "{statement.topic}"', hint=hint, location=statement.at)
        there = broker.partitions(statement.topic)
        if partitions is not None and there != partitions:
            return _differs(statement, "PARTITIONS", partitions, there)
        if replicas is not None and not isinstance(broker, EmbeddedBroker):
            raise Refused("the number of REPLICAS of a topic is unknown", hint="leave it out", location=statement.at)
        return None if replicas in (None, 1) else _differs(statement, "REPLICAS", replicas or 0, 1)

    return check


def _differs(statement: ast.AssertTopic, what: str, wanted: int, there: int) -> AssertionNotMet:
    hint = f"it has {what} = {there}"
    return AssertionNotMet(
        f'topic "{statement.topic}" does not have {what} = {wanted}', hint=hint, location=statement.at
    )
