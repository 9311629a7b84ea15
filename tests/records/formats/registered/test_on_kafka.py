"""A schema registry next to a real Kafka, with Confluent's serializers as the other clients; and tasks on Spark."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from potok import StreamsBuilder, avro, open_broker
from potok.testing import TestDriver
from runtime.queries.by_hand import ByHand
from tests.records.formats.registered import confluent

if TYPE_CHECKING:
    from pyspark import SparkContext

    from potok.log.kafka.development.server import ServerStatus

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}],
}


def program(topic: str) -> StreamsBuilder:
    builder = StreamsBuilder(topic)
    orders = builder.stream(topic, value=avro(f"{topic}-value"))
    orders.map_values(lambda v: {"id": v["id"], "twice": v["n"] * 2}).to(f"{topic}-out", value=avro())
    return builder


@pytest.mark.parametrize("in_header", [False, True])
def test_records_of_kafka_are_read_and_written(
    kafka: ServerStatus, registry_url: str, tmp_path: Path, in_header: bool
) -> None:
    topic = f"registered-{uuid.uuid4().hex[:8]}"
    write = confluent.avro_writer(registry_url, topic, json.dumps(ORDER), in_header=in_header)
    written = [write({"id": f"o{n}", "n": n}) for n in range(3)]
    broker = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for data, headers in written:
        producer.produce(topic, data, headers=list(headers.items()))
    producer.flush(30)
    group = ByHand(tmp_path, broker=broker)
    try:
        group.add(program(topic).build())
        group.settle()
    finally:
        group.stop()
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    try:
        consumer.subscribe([f"{topic}-out"])
        found = consumer.consume(3, timeout=60)
    finally:
        consumer.close()
    read = confluent.avro_reader(registry_url, f"{topic}-out")
    assert [read(message.value() or b"") for message in found] == [{"id": f"o{n}", "twice": 2 * n} for n in range(3)]


def test_workers_of_spark_use_the_registry_of_the_query(spark: SparkContext, registry_url: str) -> None:
    topic = f"workers-{uuid.uuid4().hex[:8]}"
    write = confluent.avro_writer(registry_url, topic, json.dumps(ORDER))
    data = write({"id": "a", "n": 4})[0]
    with TestDriver(program(topic), spark=True) as driver:
        driver.send(topic, data)
        driver.run()
        assert driver.dead_letters() == []
        (found,) = driver.read(f"{topic}-out")
    read = confluent.avro_reader(registry_url, f"{topic}-out")
    assert read(found.raw_value or b"") == {"id": "a", "twice": 8}
