"""Producer and consumer of asyncio programs, on the embedded log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from potok.errors import LogError
from potok.log.broker import AppendResult, Broker
from potok.log.clients import async_consumer
from potok.log.clients.async_consumer import AsyncConsumer
from potok.log.clients.async_producer import AsyncProducer
from potok.log.clients.producer import Producer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import BrokerClosed, RecordTooLarge


def play(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(limited())


def fill(broker: Broker, *values: object, topic: str = "t") -> None:
    with Producer(broker) as producer:
        for value in values:
            producer.send(topic, value)


def test_a_record_is_durable_when_send_returns(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with AsyncProducer(broker) as producer:
            await producer.send("t", {"n": 1}, key="k")
            assert broker.end_offsets("t") == {0: 1}

    play(work)


def test_sends_that_wait_are_appended_together_in_order(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    append = EmbeddedBroker.append

    def counted(self: EmbeddedBroker, topic: str, records: Any, partition: int | None = None) -> list[AppendResult]:
        sizes.append(len(records))
        return append(self, topic, records, partition)

    monkeypatch.setattr(EmbeddedBroker, "append", counted)

    async def work() -> None:
        async with AsyncProducer(broker) as producer:
            await asyncio.gather(*(producer.send("t", n) for n in range(100)))
        async with AsyncConsumer(broker, "t", start="earliest", until_end=True) as consumer:
            assert [record.json() async for record in consumer] == [*range(100)]

    play(work)
    assert sum(sizes) == 100
    assert len(sizes) < 10


def test_a_record_that_cannot_be_appended_fails_alone(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with AsyncProducer(broker) as producer:
            large = bytes(broker.max_record_bytes + 1)
            good, bad = await asyncio.gather(producer.send("t", "x"), producer.send("t", large), return_exceptions=True)
            assert good is None
            assert isinstance(bad, RecordTooLarge)
        with pytest.raises(BrokerClosed):
            await producer.send("t", "y")

    play(work)
    assert broker.end_offsets("t") == {0: 1}


def test_a_send_that_is_cancelled_in_time_writes_nothing(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with AsyncProducer(broker) as producer:
            sending = asyncio.create_task(producer.send("t", "unwanted"))
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await producer.send("t", "wanted")
        async with AsyncConsumer(broker, "t", start="earliest", until_end=True) as consumer:
            assert [record.text() async for record in consumer] == ["wanted"]

    play(work)


def test_a_consumer_waits_for_records(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        broker.create_topic("t")
        async with AsyncConsumer(broker, "t", start="latest") as consumer, AsyncProducer(broker) as producer:
            waiting = asyncio.create_task(anext(aiter(consumer)))
            await producer.send("t", "late")
            assert (await waiting).text() == "late"

    play(work)


def test_waiting_consumers_occupy_no_threads(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        broker.create_topic("t")
        consumers = [AsyncConsumer(broker, "t") for _ in range(50)]
        await asyncio.gather(*(consumer.assignment() for consumer in consumers))
        waiting = [asyncio.create_task(consumer.poll("30 s")) for consumer in consumers]
        async with AsyncProducer(broker) as producer:
            await producer.send("t", "x")
        assert [[record.text() for record in found] for found in await asyncio.gather(*waiting)] == [["x"]] * 50
        names = [thread.name for thread in threading.enumerate() if thread.name.startswith("potok-async")]
        assert len(names) <= async_consumer.THREADS

    play(work)


def test_poll_takes_what_is_there(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        fill(broker, 1, 2, 3)
        async with AsyncConsumer(broker, "t", start="earliest") as consumer:
            assert [record.json() for record in await consumer.poll(max_records=2)] == [1, 2]
            assert [record.json() for record in await consumer.poll()] == [3]
            assert await consumer.poll("10 ms") == []

    play(work)


def test_a_cancelled_poll_loses_no_record(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        broker.create_topic("t")
        async with AsyncConsumer(broker, "t", start="latest") as consumer, AsyncProducer(broker) as producer:
            found: list[object] = []
            for n in range(20):
                polling = asyncio.create_task(consumer.poll("1 s"))
                await producer.send("t", n)
                polling.cancel()
                found += await asyncio.gather(polling, return_exceptions=True)
            read = [record.json() for part in found if isinstance(part, list) for record in part]
            while len(read) < 20:
                read += [record.json() for record in await consumer.poll("1 s")]
            assert read == [*range(20)]

    play(work)


def test_only_what_was_handed_out_is_committed(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        fill(broker, 1, 2, 3)
        async with AsyncConsumer(broker, "t", group="g", start="earliest") as consumer:
            async for record in consumer:
                assert record.json() == 1
                break
            await consumer.commit()
        assert broker.committed("g", "t") == {0: 1}
        async with AsyncConsumer(broker, "t", group="g", until_end=True) as consumer:
            assert [record.json() async for record in consumer] == [2, 3]

    play(work)


def test_a_seek_takes_effect_with_the_next_record(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        fill(broker, 1, 2, 3)
        async with AsyncConsumer(broker, "t", start="earliest") as consumer:
            records = aiter(consumer)
            assert (await anext(records)).json() == 1
            await consumer.seek("t", 0, 2)
            assert (await anext(records)).json() == 3
            assert await consumer.positions() == {("t", 0): 3}

    play(work)


def test_consumers_of_a_group_share_the_partitions_and_commit_before_they_go(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        broker.create_topic("t", partitions=2)
        with Producer(broker) as producer:
            for n in range(6):
                producer.send("t", n, partition=n % 2)

        async def commit(_: object) -> None:
            await first.commit()

        first = AsyncConsumer(broker, "t", group="g", start="earliest", on_revoke=commit)
        async with first, AsyncConsumer(broker, "t", group="g", start="earliest") as second:
            taken = [record.json() for record in await first.poll("5 s")]
            while not await second.assignment():
                taken += [record.json() for record in await first.poll()]
            assert len(await first.assignment()) == 1
            taken += [record.json() for record in await second.poll()]
            while len(taken) < 6:
                taken += [record.json() for record in await first.poll()]
                taken += [record.json() for record in await second.poll()]
        assert sorted(taken) == [*range(6)]

    play(work)


def test_a_closed_consumer_says_so(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        fill(broker, 1)
        async with AsyncConsumer(broker, "t", group="g", start="earliest") as consumer:
            await consumer.poll()
        with pytest.raises(LogError, match="closed"):
            await consumer.commit()

    play(work)


def test_an_error_of_the_log_reaches_the_caller(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        with pytest.raises(LogError):
            async with AsyncConsumer(broker, "nowhere"):
                pass

    play(work)
