"""Push queries that group or join, on Spark: started with their client, and gone with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.snapshots.tables import known_queries
from potok.statements.database import Database
from potok.statements.push.transient import PREFIX, remove_leftovers
from potok.statements.records.inserts import insert_rows
from potok.statements.results import Push, Row
from potok.statements.session import SqlSession

WAIT_S = 60.0


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    broker = EmbeddedBroker.shared(tmp_path)
    database = Database(broker, Settings(broker=f"file:{tmp_path}", shards=2))
    session = SqlSession(database)
    session.execute("CREATE STREAM orders (id VARCHAR KEY, amount INT) WITH (KAFKA_TOPIC = 'orders');")
    yield session
    database.close()
    broker.close()


def send(session: SqlSession, *ids: str) -> None:
    source = session.database.catalog.source("ORDERS")
    assert insert_rows(session.database, source, [{"id": name, "amount": 1} for name in ids]) == {}


def started(session: SqlSession, text: str, begin: str) -> Push:
    result = session.execute(text, {"auto.offset.reset": begin})[-1].result
    assert isinstance(result, Push)
    return result


def taken(push: Push, count: int) -> list[Row]:
    found: list[Row] = []
    while len(found) < count:
        rows = push.next(WAIT_S)
        assert rows, f"{found} and no more"
        found += rows
    return found


def traces(session: SqlSession) -> list[str]:
    broker = session.database.broker
    return [name for name in (*broker.topics(), *known_queries(broker)) if name.startswith(PREFIX)]


@pytest.mark.spark
def test_groups_come_as_they_change_and_nothing_is_left_behind(session: SqlSession) -> None:
    send(session, "a", "b", "a")
    text = "SELECT id, COUNT(*) AS n FROM orders GROUP BY id EMIT CHANGES"
    limited = started(session, f"{text} LIMIT 2;", "earliest")
    assert sorted(limited) == [("a", 2), ("b", 1)]
    assert traces(session) == []

    push = started(session, f"{text};", "latest")
    send(session, "a")
    assert taken(push, 1) == [("a", 1)]
    assert traces(session) != []
    remove_leftovers(session.database.broker)
    send(session, "a")
    assert taken(push, 1) == [("a", 2)]
    closer = threading.Timer(0.1, push.close)
    closer.start()
    assert push.next(WAIT_S) is None
    closer.join()
    assert traces(session) == []


def test_what_a_killed_process_has_left_is_removed(session: SqlSession) -> None:
    broker = session.database.broker
    broker.create_topic(f"{PREFIX}transient_x_1_00000000", 1)
    broker.create_topic(f"{PREFIX}transient_x_1_00000000-dead-letters", 1)
    remove_leftovers(broker)
    assert traces(session) == []
    assert broker.has_topic("orders")
