"""Avro with a schema registry: a real one, and Confluent's own serializers on the other side."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from potok import StreamsBuilder, avro
from potok.testing import TestDriver
from tests.records.formats.registered.confluent import avro_reader, avro_writer

pytestmark = pytest.mark.usefixtures("registry_url")

AT = dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "payer", "type": ["null", "int", "string"], "default": None},
    ],
}


def order(number: int) -> dict[str, Any]:
    payers: list[Any] = [None, 7, "ann"]
    return {
        "id": f"o{number}",
        "amount": None if number == 3 else number * 1.5,
        "at": AT,
        "price": Decimal("1.25"),
        "tags": ["a", "b"],
        "state": "PAID",
        "payer": payers[number % 3],
    }


def test_a_program_reads_and_writes_what_confluents_serializers_write_and_read(registry_url: str) -> None:
    write = avro_writer(registry_url, "thread-in", json.dumps(ORDER))
    written = [write(order(number)) for number in range(6)]
    builder = StreamsBuilder("thread")
    orders = builder.stream("thread-in", value=avro("thread-in-value"))
    orders.filter(lambda v: v["id"] > "o3").to("thread-out", value=avro("thread-out-value", full_name="shop.Out"))
    with TestDriver(builder) as driver:
        for data in written:
            driver.send("thread-in", data)
        driver.run()
        found = [record.raw_value for record in driver.read("thread-out")]
        assert driver.dead_letters() == []
    read = avro_reader(registry_url, "thread-out")
    payer = {4: {"int": 7, "string": None}, 5: {"int": None, "string": "ann"}}
    assert [read(data) for data in found] == [{**order(number), "payer": payer[number]} for number in (4, 5)]


def test_statements_read_and_write_what_confluents_serializers_write_and_read(registry_url: str) -> None:
    write = avro_writer(registry_url, "statements-in", json.dumps(ORDER))
    written = [write(order(number)) for number in range(3)]
    script = """
    CREATE STREAM orders (k VARCHAR KEY) WITH (KAFKA_TOPIC = 'statements-in', VALUE_FORMAT = 'AVRO');
    CREATE STREAM large WITH (KAFKA_TOPIC = 'statements-out') AS
      SELECT k, id, amount, at, price, payer->`STRING` AS payer FROM orders WHERE amount > 1;
    """
    with TestDriver(sql=script) as driver:
        for data in written:
            driver.send("statements-in", data, "k")
        driver.run()
        found = [record.raw_value for record in driver.read("statements-out")]
    read = avro_reader(registry_url, "statements-out")
    first = {"ID": "o1", "AMOUNT": 1.5, "AT": AT, "PRICE": Decimal("1.25"), "PAYER": None}
    assert [read(data) for data in found] == [first, {**first, "ID": "o2", "AMOUNT": 3.0, "PAYER": "ann"}]
