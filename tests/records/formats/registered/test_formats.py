"""The formats of a schema registry: a real one, and Confluent's own serializers on the other side."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from potok import StreamsBuilder, avro, json_schema, protobuf
from potok.testing import TestDriver
from tests.records.formats.registered import confluent

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
ORDER_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "amount": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
    },
    "definitions": {"tag": {"type": "string"}},
    "required": ["id"],
}
ORDER_MESSAGE = confluent.messages(
    {
        "id": (1, "STRING", False),
        "amount": (2, "DOUBLE", False),
        "count": (7, "SINT64", False),
        "tags": (4, "STRING", True),
    },
    package="shop",
    name="Order",
)


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


def copied(topic: str, written: list[confluent.Written], kind: Callable[..., Any]) -> list[bytes]:
    """The values that a program writes which copies those after the third."""
    builder = StreamsBuilder(topic)
    stream = builder.stream(topic, value=kind(f"{topic}-value"))
    out = kind(f"{topic}-out-value", full_name="shop.Out")
    stream.filter(lambda v: v["id"] > "o3").map_values(lambda v: {**v, "id": "x" + v["id"]}).to(
        f"{topic}-out", value=out
    )
    with TestDriver(builder) as driver:
        for data, headers in written:
            driver.send(topic, data, headers=headers)
        driver.run()
        assert driver.dead_letters() == []
        return [record.raw_value or b"" for record in driver.read(f"{topic}-out")]


@pytest.mark.parametrize("in_header", [False, True])
def test_avro_in_a_program(registry_url: str, in_header: bool) -> None:
    topic = f"avro-{in_header}"
    write = confluent.avro_writer(registry_url, topic, json.dumps(ORDER), in_header=in_header)
    found = copied(topic, [write(order(number)) for number in range(6)], avro)
    read = confluent.avro_reader(registry_url, f"{topic}-out")
    payer = {4: {"int": 7, "string": None}, 5: {"int": None, "string": "ann"}}
    assert [read(data) for data in found] == [
        {**order(number), "id": f"xo{number}", "payer": payer[number]} for number in (4, 5)
    ]


@pytest.mark.parametrize("in_header", [False, True])
def test_json_schema_in_a_program(registry_url: str, in_header: bool) -> None:
    topic = f"json-{in_header}"
    write = confluent.json_writer(registry_url, topic, json.dumps(ORDER_JSON), in_header=in_header)
    orders = [{"id": f"o{n}", "amount": n or None, "at": AT.isoformat(), "tags": ["a"]} for n in range(6)]
    found = copied(topic, [write(order) for order in orders], json_schema)
    read = confluent.json_reader(registry_url, f"{topic}-out")
    at = "2024-01-02T03:04:05.678000Z"
    assert [read(data) for data in found] == [{**orders[n], "id": f"xo{n}", "at": at} for n in (4, 5)]


@pytest.mark.parametrize("in_header", [False, True])
def test_protobuf_in_a_program(registry_url: str, in_header: bool) -> None:
    topic = f"proto-{in_header}"
    write = confluent.proto_writer(
        registry_url, topic, ORDER_MESSAGE, in_header=in_header, **{"use.deprecated.format": False}
    )
    written = [write(ORDER_MESSAGE(id=f"o{n}", amount=n * 1.5, count=-n, tags=["a"])) for n in range(6)]

    def kind(subject: str, **options: Any) -> Any:
        return protobuf(subject, **{"full_name": "shop.Order", **options})

    found = copied(topic, written, kind)
    out = {"id": (1, "STRING", False), "amount": (2, "DOUBLE", False), "count": (3, "INT64", False)}
    made = confluent.messages({**out, "tags": (4, "STRING", True)}, package="shop", name="Out")
    read = confluent.proto_reader(f"{topic}-out", made)
    assert [read(data) for data in found] == [made(id=f"xo{n}", amount=n * 1.5, count=-n, tags=["a"]) for n in (4, 5)]


def test_statements_read_and_write_avro(registry_url: str) -> None:
    write = confluent.avro_writer(registry_url, "statements-in", json.dumps(ORDER))
    written = [write(order(number))[0] for number in range(3)]
    script = """
    CREATE STREAM orders (k VARCHAR KEY) WITH (KAFKA_TOPIC = 'statements-in', VALUE_FORMAT = 'AVRO');
    CREATE STREAM large WITH (KAFKA_TOPIC = 'statements-out') AS
      SELECT k, id, amount, at, price, payer->`STRING` AS payer FROM orders WHERE amount > 1;
    """
    with TestDriver(sql=script) as driver:
        for data in written:
            driver.send("statements-in", data, "k")
        driver.run()
        found = [record.raw_value or b"" for record in driver.read("statements-out")]
    read = confluent.avro_reader(registry_url, "statements-out")
    first = {"ID": "o1", "AMOUNT": 1.5, "AT": AT, "PRICE": Decimal("1.25"), "PAYER": None}
    assert [read(data) for data in found] == [first, {**first, "ID": "o2", "AMOUNT": 3.0, "PAYER": "ann"}]


def test_an_unknown_id_is_a_dead_letter_and_the_other_records_are_read(registry_url: str) -> None:
    write = confluent.avro_writer(registry_url, "unknown", json.dumps(ORDER))
    values = [write(order(0))[0], b"\0\x7f\0\0\x01\0", write(order(1))[0]]
    builder = StreamsBuilder("unknown")
    builder.stream("unknown", value=avro("unknown-value")).map_values(lambda v: v["id"]).to("unknown-out")
    with TestDriver(builder) as driver:
        for data in values:
            driver.send("unknown", data)
        driver.run()
        (letter,) = driver.dead_letters()
        assert [record.value for record in driver.read("unknown-out")] == ["o0", "o1"]
    assert (letter.reason, letter.offset) == ("decode", 1)
    assert "no schema 2130706433" in letter.error
