"""Aggregates whose commands, events and results are topics of Kafka."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import potok
from patterns.aggregates.orders import CreateOrder, Note, Order, PayOrder, program
from patterns.aggregates.test_personal import SECRET, Member
from patterns.aggregates.test_rebuild import CountedOrder, changed
from potok.errors import TopologyError
from potok.events.personal.key_store import open_key_store
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
from potok.patterns.aggregates.messages import Result, command_record, read_result
from potok.records.log_record import LogRecord
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations.forget_subject import forget_subject
from potok.runtime.operations.shadow import catch_up, start_shadow, swap, topics_read_ahead
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query_group import QueryGroup
from potok.server.server import Server
from potok.settings import Settings
from potok.snapshots.patterns.aggregates import Aggregates
from potok.snapshots.tables import Tables
from potok.statements.queries.query_tables import QueryTables
from runtime.one_query import group_of, process_all

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)

TOPICS = ("orders-commands", "order-events", "orders-results", "members-commands", "member-events", "members-results")


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    for topic in TOPICS:
        if opened.has_topic(topic):
            opened.delete_topic(topic)
    opened.close()


def started(broker: Broker, builder: potok.StreamsBuilder, keys: str = "") -> QueryGroup:
    settings = Settings(broker=broker.url, shards=2, personal_keys=keys)
    return group_of(prepare(builder, broker, settings), settings)


def run(group: QueryGroup) -> None:
    process_all(group, lambda error: pytest.fail(str(error)))


def send(broker: Broker, command: object, **options: Any) -> None:
    record = command_record("o1", type(command).__name__, vars(command), **options)
    broker.append("orders-commands", [record])


def results(broker: Broker) -> list[Result]:
    with Consumer(broker, "orders-results", start="earliest", until_end=True) as consumer:
        return [read_result(record.value or b"") for record in consumer]


def test_commands_on_kafka_are_decided_by_one_writer_and_their_events_are_kept_for_ever(broker: Broker) -> None:
    group = started(broker, program(partitions=2))
    send(broker, CreateOrder("o1", 5.0), command_id="k1", expected_version="none")
    send(broker, CreateOrder("o1", 5.0), command_id="k1")
    send(broker, PayOrder("o1"), expected_version=1)
    send(broker, Note("o1", "late"), expected_version=1)
    foreign = b'{"event_id":"f","event_type":"order.noted","data":{"order_id":"o1","note":"foreign"}}'
    run(group)
    broker.append("order-events", [LogRecord(b"o1", foreign)])
    run(group)
    send(broker, Note("o1", "n"), expected_version=3)
    run(group)
    group.stop()
    found = [(one.status, one.version) for one in results(broker)]
    assert found == [("accepted", 1), ("accepted", 1), ("accepted", 2), ("wrong_version", 2), ("accepted", 4)]
    orders = Aggregates(broker, Order, "shop")
    assert orders.get("o1") == Order("paid", 5.0, [], ["foreign", "n1"])
    assert orders.get("o1", as_of=2) == Order("paid", 5.0)
    assert [(one.version, one.own) for one in orders.history("o1")] == [(1, True), (2, True), (3, False), (4, True)]
    config = broker.describe_topic("order-events").config
    assert not config.expires and not config.compacted


def test_a_compacted_topic_of_kafka_is_refused(broker: Broker) -> None:
    broker.create_topic("order-events", 1, cleanup_policy="compact")
    with pytest.raises(TopologyError, match='topic "order-events" is compacted'):
        started(broker, program())


def test_personal_fields_of_aggregates_are_encrypted_on_kafka_and_forgotten(broker: Broker, tmp_path: Path) -> None:
    builder = potok.StreamsBuilder("club")
    builder.aggregate(Member)
    keys = str(tmp_path / "keys")
    group = started(broker, builder, keys)
    broker.append("members-commands", [command_record("ann", "SignUp", {"user_id": "ann", "email": SECRET})])
    run(group)
    with Consumer(broker, "member-events", start="earliest", until_end=True) as consumer:
        assert [SECRET.encode() in (record.value or b"") for record in consumer] == [False]
    members = Aggregates(broker, Member, "club", open_key_store(keys))
    assert [one.event.email for one in members.history("ann")] == [SECRET]
    assert forget_subject(broker, open_key_store(keys), "ann") == ["member-events"]
    run(group)
    group.stop()
    assert [one.event.email for one in members.history("ann")] == [None]
    assert Tables(broker, "club")["members"].get("ann")["version"] == 1
    assert broker.end_offsets("club-dead-letters") == {0: 0}


def test_commands_over_http_are_answered_and_their_positions_are_waited_for_on_kafka(broker: Broker) -> None:
    group, ended = started(broker, program()), threading.Event()

    def decide() -> None:
        while not ended.wait(0.01):
            run(group)

    thread = threading.Thread(target=decide)
    thread.start()
    try:
        with QueryTables(broker, Settings(broker=broker.url), ["shop"]) as database, Server(database, port=0) as server:
            path, body = f"{server.url}/commands/orders/o1/CreateOrder", {"order_id": "o1", "amount": 5.0}
            first = httpx.post(path, json=body, headers={"Idempotency-Key": "k1"}, timeout=60)
            again = httpx.post(path, json=body, headers={"Idempotency-Key": "k1"}, timeout=60)
            assert (first.status_code, first.headers["ETag"], again.json()["repeated"]) == (200, '"1"', True)
            refused = httpx.post(path, json=body, headers={"If-Match": '"7"'}, timeout=60)
            assert (refused.status_code, refused.headers["ETag"]) == (412, '"1"')
            waits = {"Potok-Wait-For": first.headers["Potok-Position"], "Prefer": "wait=60"}
            row = httpx.get(f"{server.url}/tables/orders/o1", headers=waits, timeout=60)
            assert row.json()["VALUE"]["state"]["status"] == "created"
    finally:
        ended.set()
        thread.join()
        group.stop()


@pytest.mark.parametrize("reads_back", [True, False])
def test_a_changed_fold_is_rebuilt_and_promoted_on_kafka(broker: Broker, reads_back: bool) -> None:
    group = started(broker, program())
    send(broker, CreateOrder("o1", 5.0), command_id="k1")
    run(group)
    send(broker, Note("o1", "n", 2))
    group.step()
    if reads_back:
        run(group)
    group.stop()
    topology, settings = changed().build(), Settings(broker=broker.url, shards=2)
    start_shadow(topology, broker, settings, lambda _: InProcessExecutor(), until_end=True).wait()
    catch_up(topology, broker, settings, lambda _: InProcessExecutor()).wait()
    swap(broker, "shop", topics_read_ahead(topology))
    group = started(broker, changed())
    send(broker, Note("o1", "n"), expected_version=3)
    send(broker, CreateOrder("o1", 5.0), command_id="k1")
    run(group)
    group.stop()
    orders = Aggregates(broker, CountedOrder, "shop")
    assert orders.get("o1") == CountedOrder(3, "created") and orders.version("o1") == 4
    assert [(one.status, one.version) for one in results(broker)][-2:] == [("accepted", 4), ("accepted", 1)]
    assert broker.end_offsets("shop-dead-letters") == {0: 0}
