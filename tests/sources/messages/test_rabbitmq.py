"""A queue of a real RabbitMQ."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Overload, RabbitMq
from tests.log.waiting import until
from tests.servers import rabbitmq_server
from tests.sources.test_appender import AwayBroker, values

RESTARTS = int(os.environ.get("POTOK_RESTARTS", "2"))
"""How often a server is restarted under load; `POTOK_RESTARTS=5` takes longer."""


def publish(url: str, queue: str, messages: Iterable[tuple[str, bytes]], **properties: Any) -> None:
    """Publish persistent messages with their ids, and wait until RabbitMQ has them."""

    async def run() -> None:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            arguments = properties.pop("arguments", None)
            await channel.declare_queue(queue, durable=True, arguments=arguments)
            made = [
                aio_pika.Message(body, message_id=name, delivery_mode=aio_pika.DeliveryMode.PERSISTENT, **properties)
                for name, body in messages
            ]
            await asyncio.gather(*(channel.default_exchange.publish(each, queue) for each in made))

    asyncio.run(run())


def waiting_in(url: str, queue: str) -> int:
    """Return how many messages RabbitMQ still has."""

    async def run() -> int:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            declared = await channel.declare_queue(queue, passive=True)
            return declared.declaration_result.message_count or 0

    return asyncio.run(run())


@contextmanager
def consuming(broker: EmbeddedBroker, url: str, queue: str, **options: Any) -> Iterator[Gateway]:
    spec = RabbitMq(**{"name": "q", "topic": "t", "url": url, "queue": queue} | options)
    with Gateway(broker, [spec], stop_timeout_s=0.2) as gateway:
        yield gateway


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


def numbered(first: int, last: int) -> list[tuple[str, bytes]]:
    return [(f"m-{number}", b"%d" % number) for number in range(first, last)]


def test_a_message_becomes_a_record_with_its_headers_and_is_acknowledged(
    tmp_path: Path, rabbitmq_url: str, queue: str
) -> None:
    publish(rabbitmq_url, queue, [("m-1", b'{"user":{"name":"ann"}}')], headers={"tenant": "acme", "tries": 3})
    with consuming(EmbeddedBroker(tmp_path), rabbitmq_url, queue, key="body:user.name", id="message_id") as gateway:
        until(lambda: gateway.counts("q").landed == 1)
        [batch] = gateway.broker.read("t", 0, 0, 1)
    [row] = batch.to_pylist()
    headers = {each["name"]: each["value"] for each in row["headers"]}
    assert (row["key"], row["value"]) == (b"ann", b'{"user":{"name":"ann"}}')
    assert (headers["tenant"], headers["tries"], headers["potok-message-id"]) == (b"acme", b"3", b"m-1")
    assert waiting_in(rabbitmq_url, queue) == 0


def test_what_is_not_in_the_log_stays_in_the_queue(tmp_path: Path, rabbitmq_url: str, queue: str) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    publish(rabbitmq_url, queue, numbered(0, 50))
    with consuming(broker, rabbitmq_url, queue, id="message_id"):
        assert broker.tried.wait(10)
    assert waiting_in(rabbitmq_url, queue) == 50
    broker.there.set()
    with consuming(broker, rabbitmq_url, queue, id="message_id") as gateway:
        until(lambda: gateway.counts("q").landed == 50)
    assert waiting_in(rabbitmq_url, queue) == 0
    assert Counter(values(broker)) == Counter(b"%d" % number for number in range(50))


def test_a_message_with_an_id_lands_once_and_another_one_under_its_id_becomes_a_dead_letter(
    tmp_path: Path, rabbitmq_url: str, queue: str
) -> None:
    publish(rabbitmq_url, queue, [("a", b"1"), ("a", b"1"), ("b", b"2"), ("b", b"other")])
    with consuming(EmbeddedBroker(tmp_path), rabbitmq_url, queue, id="message_id", dead_letters="dead") as gateway:
        until(lambda: gateway.counts("q").received == 4 and not gateway.counts("q").buffered)
        counts = gateway.counts("q")
        assert (counts.landed, counts.duplicates, dict(counts.lost)) == (2, 1, {"conflict": 1})
    publish(rabbitmq_url, queue, [("a", b"1"), ("c", b"3")])
    with consuming(EmbeddedBroker(tmp_path), rabbitmq_url, queue, id="message_id") as gateway:
        until(lambda: gateway.counts("q").landed == 1)
        assert gateway.counts("q").duplicates == 1
    assert values(EmbeddedBroker(tmp_path)) == [b"1", b"2", b"3"]
    assert values(EmbeddedBroker(tmp_path), "dead") == [b"other"]


def test_a_full_buffer_withholds_acknowledgements(tmp_path: Path, rabbitmq_url: str, queue: str) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    publish(rabbitmq_url, queue, numbered(0, 3_000))
    with consuming(broker, rabbitmq_url, queue, prefetch=500, overload=Overload(max_records=100)) as gateway:
        assert broker.tried.wait(10)
        assert gateway.counts("q").buffered <= 500
        broker.there.set()
        until(lambda: gateway.counts("q").landed == 3_000)
        assert gateway.counts("q").lost == {}
    assert waiting_in(rabbitmq_url, queue) == 0
    assert values(broker) == [b"%d" % number for number in range(3_000)]


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "reject"])
def test_under_a_flood_everything_has_landed_or_is_counted(
    tmp_path: Path, rabbitmq_url: str, queue: str, policy: Any
) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{queue}-dead"}
    publish(rabbitmq_url, f"{queue}-dead", [])
    publish(rabbitmq_url, queue, numbered(0, 3_000), arguments=arguments)
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    overload = Overload(max_records=50, when_full=policy)
    with consuming(broker, rabbitmq_url, queue, declare=False, prefetch=100, overload=overload) as gateway:
        assert broker.tried.wait(10)
        threading.Timer(0.05, broker.there.set).start()

        def all_arrived() -> bool:
            """Messages that were delivered are not in the queue, and may not have arrived yet."""
            counts = gateway.counts("q")
            return counts.received + sum(counts.refused.values()) >= 3_000 and not counts.buffered

        until(all_arrived)
        counts = gateway.counts("q")
        assert counts.received == counts.landed + sum(counts.lost.values())
        assert counts.received + sum(counts.refused.values()) == 3_000
        assert counts.landed == len(values(broker)) >= 50
        gone = sum(counts.lost.values()) + sum(counts.refused.values())
    # What was not accepted is in the dead-letter queue that its owner chose.
    until(lambda: waiting_in(rabbitmq_url, f"{queue}-dead") == gone)


def test_messages_without_the_parts_that_options_name_land_without_them(
    tmp_path: Path, rabbitmq_url: str, queue: str
) -> None:
    bodies = [b"\xff\xfe", b"", b"{", b'{"user":{"name":["ann"]}}', b'"text"', b"x" * 1_000_000, b"[" * 100_000]
    nested = {
        "deep": {"a": [1, {"b": bytearray(b"\xff")}]},
        "raw": bytearray(b"\xff"),
        "none": None,
        "long": "y" * 100_000,
    }
    publish(rabbitmq_url, queue, [("same", b"1"), ("same", b"1")])
    publish(rabbitmq_url, queue, [("", body) for body in bodies], headers=nested)
    options: dict[str, Any] = {"key": "body:user.name", "id": "header:request", "dead_letters": "dead"}
    with consuming(EmbeddedBroker(tmp_path), rabbitmq_url, queue, **options) as gateway:
        until(lambda: gateway.counts("q").landed == len(bodies) + 2)
        counts = gateway.counts("q")
        assert (counts.duplicates, counts.lost) == (0, {}), "without an id there are no duplicates"
        [batch] = gateway.broker.read("t", 0, 2, 3)
    headers = {each["name"]: each["value"] for each in batch["headers"].to_pylist()[0]}
    assert headers == {
        "deep": '{"a":[1,{"b":"\ufffd"}]}'.encode(),
        "raw": b"\xff",
        "none": None,
        "long": b"y" * 100_000,
    }
    assert values(EmbeddedBroker(tmp_path)) == [b"1", b"1", *bodies]
    assert waiting_in(rabbitmq_url, queue) == 0


@pytest.mark.parametrize("identifier", [None, "header:request"])
@pytest.mark.parametrize("depth", [260, 320])
def test_headers_nested_too_deeply_make_a_dead_letter_that_is_durable_before_it_is_acknowledged(
    tmp_path: Path, rabbitmq_url: str, queue: str, identifier: str | None, depth: int
) -> None:
    deep: Any = "end"
    for _ in range(depth):
        deep = {"a": deep}
    publish(rabbitmq_url, queue, [("", b"hostile")], headers={"deep": deep, "request": "1"})
    publish(rabbitmq_url, queue, [("", b"good")], headers={"request": "2"})
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    with consuming(broker, rabbitmq_url, queue, id=identifier, dead_letters="dead"):
        assert broker.tried.wait(10)
    assert waiting_in(rabbitmq_url, queue) == 2
    broker.there.set()
    with consuming(broker, rabbitmq_url, queue, id=identifier, dead_letters="dead") as gateway:
        until(lambda: gateway.counts("q").received == 2 and not gateway.counts("q").buffered)
        until(lambda: waiting_in(rabbitmq_url, queue) == 0)
        assert dict(gateway.counts("q").lost) == {"malformed": 1}
        assert gateway.status()[0].problem is None
        [batch] = gateway.broker.read("dead", 0, 0, 1)
    assert values(broker) == [b"good"] and batch["value"].to_pylist() == [b"hostile"]
    reason = {each["name"]: each["value"] for each in batch["headers"].to_pylist()[0]}["potok-reason"]
    assert reason.startswith(b"malformed: its header")


def test_a_queue_that_does_not_exist_is_reported_and_consumed_once_it_does(
    tmp_path: Path, rabbitmq_url: str, queue: str
) -> None:
    with consuming(EmbeddedBroker(tmp_path), rabbitmq_url, queue, declare=False) as gateway:
        until(lambda: "no queue" in (gateway.status()[0].problem or ""))
        publish(rabbitmq_url, queue, numbered(0, 1))
        until(lambda: gateway.counts("q").landed == 1)
        assert gateway.status()[0].problem is None


@pytest.mark.timeout(200)
def test_a_server_that_restarts_under_load_loses_nothing_and_ids_keep_duplicates_out(tmp_path: Path) -> None:
    total, rounds = 5_000, RESTARTS
    with rabbitmq_server() as server:
        publish(server.url, "q", [])
        with consuming(EmbeddedBroker(tmp_path), server.url, "q", id="message_id", prefetch=300) as gateway:
            for number in range(rounds):
                first = number * total // rounds
                publish(server.url, "q", numbered(first, first + total // rounds))
                until(lambda first=first: gateway.counts("q").landed > first)  # type: ignore[misc]
                server.stop()
                server.start()
            until(lambda: gateway.counts("q").landed == total, 60)
            counts = gateway.counts("q")
            assert counts.received == counts.landed + counts.duplicates
            until(lambda: gateway.status()[0].state["connections"] > rounds)
    assert Counter(values(EmbeddedBroker(tmp_path))) == Counter(b"%d" % number for number in range(total))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://localhost"}, "the url is not one of AMQP"),
        ({"queue": ""}, "the queue has no name"),
        ({"prefetch": 0}, "prefetch = 0 is out of range"),
        ({"key": "name"}, 'key = "name" names no part of a message'),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        RabbitMq(**{"name": "q", "topic": "t", "url": "amqp://localhost/", "queue": "q"} | options).check()
