"""Producer and consumer of asyncio programs on a real Kafka."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from potok.log.clients.async_consumer import AsyncConsumer
from potok.log.clients.async_producer import AsyncProducer
from potok.log.kafka.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


def test_a_group_consumes_produced_records_and_resumes_at_its_committed_offset(
    kafka: ServerStatus, tmp_path: Path
) -> None:
    broker = KafkaBroker.at(f"{kafka.url}?home={tmp_path / 'home'}")
    topic, group = f"async-{uuid.uuid4().hex}", f"group-{uuid.uuid4().hex}"

    async def work() -> None:
        async with AsyncProducer(broker) as producer:
            await asyncio.gather(*(producer.send(topic, n) for n in range(5)))
        async with AsyncConsumer(broker, topic, group=group) as consumer:
            first = [record.json() for record in await consumer.poll("30 s", max_records=2)]
            await consumer.commit()
        async with AsyncConsumer(broker, topic, group=group, until_end=True) as consumer:
            rest = [record.json() async for record in consumer]
        assert (first, rest) == ([0, 1], [2, 3, 4])

    async def limited() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(limited())
    broker.close()
