"""Publish to a real RabbitMQ."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aio_pika
import numpy as np
import pyarrow as pa
import pytest

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.rabbitmq import RabbitMqTarget
from potok.sinks.sink_spec import Batch, Rows, SinkWriter, Types
from potok.testing import TestDriver
from tests.servers import rabbitmq_server
from tests.sinks.load import Load
from tests.sinks.rows import deliver, opening, rows_of, typed

TEXTS = Types(typed("string"), typed("string"))
NUMBERS = Types(typed("string"), typed("bigint"))
RESTARTS = int(os.environ.get("POTOK_RESTARTS", "1"))
"""How often a server is restarted under load; `POTOK_RESTARTS=5` takes longer."""


def target_of(url: str, **options: Any) -> RabbitMqTarget:
    given: dict[str, Any] = {
        "queue": None,
        "exchange": None,
        "routing_key": "",
        "declare": True,
        "persistent": True,
        "give_up_after_ms": 2_000,
        "with_key": False,
    }
    return RabbitMqTarget(url, **given | options)


@contextmanager
def publishing(
    target: RabbitMqTarget, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE, *, query: str = "q"
) -> Iterator[SinkWriter]:
    found = target.open(opening(NUMBERS, guarantee, query=query))
    try:
        yield found  # type: ignore[misc]
    finally:
        found.close()


def taken_from(url: str, queue: str) -> list[Any]:
    """Take all messages of a queue."""

    async def run() -> list[Any]:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            found = await channel.declare_queue(queue, passive=True)
            messages: list[Any] = []
            all_there = asyncio.Event()
            count = found.declaration_result.message_count or 0

            async def take(message: Any) -> None:
                messages.append(message)
                if len(messages) >= count:
                    all_there.set()

            if count:
                await found.consume(take, no_ack=True)
                await asyncio.wait_for(all_there.wait(), 60)
            return messages

    return asyncio.run(run())


def administer(url: str, work: Callable[[Any], Any]) -> None:
    async def run() -> None:
        async with await aio_pika.connect(url) as connection:
            await work(await connection.channel())

    asyncio.run(run())


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


def numbered(count: int) -> Rows:
    return rows_of([(f"k{number % 3}", number) for number in range(count)], NUMBERS)


def test_a_record_is_a_message_with_an_id_and_its_headers(rabbitmq_url: str, queue: str) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders", value="n bigint").to_rabbitmq(rabbitmq_url, queue=queue, name="out")
    with TestDriver(builder) as driver:
        driver.send("orders", key="a", value={"n": 1}, headers={"tenant": b"acme"})
        driver.send("orders", key="b", value={"n": 2})
        driver.run()
    first, second = taken_from(rabbitmq_url, queue)
    assert (first.body, second.body) == (b'{"n":1}', b'{"n":2}')
    assert (first.headers["tenant"], first.delivery_mode.value) == ("acme", 2)
    assert first.message_id != second.message_id


def test_a_repeated_batch_has_the_same_ids_and_another_query_has_others(rabbitmq_url: str, queue: str) -> None:
    target = target_of(rabbitmq_url, queue=queue)
    ids: list[set[str]] = []
    for query, batch in (("q", Batch(1, 1)), ("q", Batch(2, 1)), ("q", Batch(2, 2)), ("other", Batch(1, 1))):
        with publishing(target, query=query) as writer:
            assert deliver(target, writer, numbered(2_500), NUMBERS, batch) == {}
        found = taken_from(rabbitmq_url, queue)
        assert [int(message.body) for message in found] == list(range(2_500))
        ids.append({message.message_id for message in found})
    assert ids[0] == ids[1] and all(len(each) == 2_500 for each in ids)
    assert not ids[0] & ids[2] and not ids[0] & ids[3]


def test_the_routing_key_contains_the_key_and_what_no_queue_takes_becomes_a_dead_letter(
    rabbitmq_url: str, queue: str
) -> None:
    exchange = f"exchange-{uuid.uuid4().hex}"

    async def bind(channel: Any) -> None:
        declared = await channel.declare_exchange(exchange, "topic", durable=True)
        await (await channel.declare_queue(queue, durable=True)).bind(declared, "orders.k1")

    administer(rabbitmq_url, bind)
    target = target_of(rabbitmq_url, exchange=exchange, routing_key="orders.{key}")
    records = [("k1", 1), ("k2", 2), ("k1", 3), (None, 4), ("k" * 300, 5), ("k1", None)]
    with publishing(target) as writer:
        failures = deliver(target, writer, rows_of(records, NUMBERS), NUMBERS, Batch(1, 1))
    assert [(each.routing_key, each.body) for each in taken_from(rabbitmq_url, queue)] == [
        ("orders.k1", b"1"),
        ("orders.k1", b"3"),
    ]
    # The second of those that were delivered: the others were refused before.
    assert failures[1] == "no queue takes it: NO_ROUTE"
    assert failures[3] == "the record has no key: set one with select_key"
    assert failures[4] == "the routing key is longer than 255 bytes"
    assert "pass with_key=True" in failures[5]


def test_an_exchange_that_does_not_exist_and_a_wrong_password_are_found_before_there_are_records(
    rabbitmq_url: str, queue: str
) -> None:
    with pytest.raises(DeliveryFailed, match="no exchange 'missing'"):
        target_of(rabbitmq_url, exchange="missing").open(opening(NUMBERS, Guarantee.AT_LEAST_ONCE))
    with pytest.raises(DeliveryFailed, match=f"no queue '{queue}'"):
        target_of(rabbitmq_url, queue=queue, declare=False).open(opening(NUMBERS, Guarantee.AT_LEAST_ONCE))
    wrong = rabbitmq_url.replace("guest:guest", "guest:s3cret-password")
    with pytest.raises(DeliveryFailed, match="ACCESS_REFUSED") as raised:
        target_of(wrong, queue=queue).open(opening(NUMBERS, Guarantee.AT_LEAST_ONCE))
    assert "s3cret-password" not in str(raised.value)


def test_a_queue_that_is_full_is_waited_for(rabbitmq_url: str, queue: str) -> None:
    async def declare(channel: Any) -> None:
        arguments = {"x-max-length": 3, "x-overflow": "reject-publish"}
        await channel.declare_queue(queue, durable=True, arguments=arguments)

    administer(rabbitmq_url, declare)
    target = target_of(rabbitmq_url, queue=queue, declare=False, give_up_after_ms=300)
    with publishing(target) as writer:
        with pytest.raises(DeliveryFailed, match="a queue is full"):
            deliver(target, writer, numbered(5), NUMBERS, Batch(1, 1))
        assert len(taken_from(rabbitmq_url, queue)) >= 3


def test_a_queue_that_was_deleted_is_declared_again(rabbitmq_url: str, queue: str) -> None:
    target = target_of(rabbitmq_url, queue=queue)
    with publishing(target) as writer:
        administer(rabbitmq_url, lambda channel: channel.queue_delete(queue))
        assert deliver(target, writer, numbered(2), NUMBERS, Batch(1, 1)) == {}
    assert len(taken_from(rabbitmq_url, queue)) == 2


def test_headers_that_amqp_cannot_carry_make_a_dead_letter_of_their_record_alone(rabbitmq_url: str, queue: str) -> None:
    target = target_of(rabbitmq_url, queue=queue)
    kind = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"name": "n" * 300, "value": b"x"}], [{"name": "bytes", "value": b"\xff"}], None], kind)
    rows = Rows(pa.array([queue] * 3), pa.array([b"1", b"2", b"3"]), np.arange(3), headers)
    with publishing(target) as writer:
        failures = writer.deliver(Batch(1, 1), rows)
    assert list(failures) == [0]
    assert [message.body for message in taken_from(rabbitmq_url, queue)] == [b"2", b"3"]


@pytest.mark.timeout(200)
def test_a_server_that_restarts_under_load_gets_everything_and_repeats_have_the_same_id() -> None:
    with rabbitmq_server("max_message_size = 1000") as server:
        loads = [
            Load(target_of(server.url, queue=guarantee.value, give_up_after_ms=60_000), NUMBERS, guarantee)
            for guarantee in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)
        ]
        for _ in range(RESTARTS):
            for load in loads:
                load.wait_for_batches(2)
            server.stop()
            server.start()
        for load in loads:
            load.end()
        repeated, single = (taken_from(server.url, str(load.target.queue)) for load in loads)
        with publishing(loads[0].target) as writer:
            large = rows_of([("k", "fits"), ("k", "x" * 2_000), ("k", "fits too")], TEXTS)
            failures = deliver(loads[0].target, writer, large, TEXTS, Batch(2, 999))
        assert failures == {1: "the message is larger than 1000 bytes, the most that RabbitMQ takes"}
        assert {each.body for each in taken_from(server.url, "at_least_once")} == {b'"fits"', b'"fits too"'}
    assert not loads[0].failures
    assert sorted({each.message_id: int(each.body) for each in repeated}.values()) == loads[0].sent
    numbers = [int(each.body) for each in single]
    assert len(numbers) == len(set(numbers)), "nothing is published twice"
    assert sorted({*numbers, *loads[1].failures}) == loads[1].sent, "what did not arrive is a dead letter"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://localhost", "queue": "q"}, "this is not a RabbitMQ server"),
        ({}, "a message goes to a queue or to an exchange"),
        ({"queue": "q", "exchange": "e"}, "a message goes to a queue or to an exchange"),
        ({"queue": "q", "routing_key": "r"}, "a queue has no routing key"),
        ({"queue": "q-{key}"}, "only a routing key can contain {key}"),
        ({"exchange": ""}, "does not have 1 to 255 bytes"),
        ({"queue": "q", "guarantee": "exactly_once"}, "RabbitMQ cannot promise exactly_once"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders").to_rabbitmq(**{"url": "amqp://localhost/"} | options)
    with pytest.raises(TopologyError, match=message), TestDriver(builder):
        pass
