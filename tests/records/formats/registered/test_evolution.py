"""Schemas that change, refer to others, or are not those of the columns: with a real registry."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from potok import SchemaError
from potok.records.formats.registered.declare import avro, json_schema, protobuf, registered_format
from potok.records.formats.registry import format_named
from potok.records.schema_registry.wire import framed
from potok.records.schemas.ddl import parse_ddl
from tests.records.formats.registered import confluent

pytestmark = pytest.mark.usefixtures("registry_url")


def record(*fields: tuple[str, Any, Any] | tuple[str, Any], name: str = "R") -> dict[str, Any]:
    made = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return {"type": "record", "name": name, "namespace": "shop", "fields": made}


def register(url: str, subject: str, schema: Any, kind: str = "AVRO", *references: SchemaReference) -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return int(confluent.client(url).register_schema(subject, Schema(text, kind, list(references))))


def written(number: int, schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return framed(number) + stream.getvalue()


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def test_values_of_all_versions_are_read_with_the_schema_of_the_reader(registry_url: str) -> None:
    first = record(("id", "int"), ("gone", "string"), ("name", "string"))
    second = record(("id", "long"), ("label", "string"), ("extra", ["null", "int"], None))
    broken = record(("id", "string"), ("label", "string"))
    second["fields"][1]["aliases"] = ["name"]
    reader = record(("id", "double"), ("label", "string"), ("extra", "int", 7))
    reader["fields"][1]["aliases"] = ["name"]
    numbers = [register(registry_url, f"versions-{n}", schema) for n, schema in enumerate((first, second, broken))]
    register(registry_url, "versions-value", reader)
    name, schema = avro("versions-value").read("versions", "value")
    assert str(schema) == "id double, label string, extra int"
    values = binary(
        written(numbers[0], first, {"id": 1, "gone": "x", "name": "a"}),
        written(numbers[1], second, {"id": 2, "label": "b", "extra": 3}),
        written(numbers[2], broken, {"id": "3", "label": "c"}),
    )
    found = format_named(name).decode(values, schema)
    assert found.column.to_pylist() == [
        {"id": 1.0, "label": "a", "extra": 7},
        {"id": 2.0, "label": "b", "extra": 3},
        None,
    ]
    assert "cannot be read with the schema of the reader" in found.errors[2]


def test_values_of_all_versions_are_read_into_declared_columns(registry_url: str) -> None:
    first, second = record(("ID", "int"), ("at", "long")), record(("id", "long"), ("b", "string"))
    numbers = [register(registry_url, f"columns-{n}", schema) for n, schema in enumerate((first, second))]
    values = binary(
        written(numbers[1], second, {"id": 2, "b": "x"}), None, written(numbers[0], first, {"ID": 1, "at": 5})
    )
    found = format_named("avro_sr;names=fold").decode(values, parse_ddl("ID bigint, AT bigint, B string"), ["ID", "B"])
    assert found.column.to_pylist() == [{"ID": 2, "B": "x"}, None, {"ID": 1, "B": None}]


def test_avro_refers_to_types_of_other_subjects(registry_url: str) -> None:
    money = record(("amount", "int"), name="Money")
    register(registry_url, "shop.Money", money)
    item = record(("price", "Money"), name="Item")
    of_money = SchemaReference("shop.Money", "shop.Money", 1)
    register(registry_url, "shop.Item", item, "AVRO", of_money)
    order = record(("items", {"type": "array", "items": "shop.Item"}), ("total", ["null", "shop.Money"]), name="Order")
    of_item = SchemaReference("shop.Item", "shop.Item", 1)
    number = register(registry_url, "refers-value", order, "AVRO", of_item, of_money)
    name, schema = avro("refers-value").read("refers", "value")
    assert str(schema) == "items array<struct<price: struct<amount: int>>>, total struct<amount: int>"
    whole = record(
        ("items", {"type": "array", "items": record(("price", money), name="Item")}),
        ("total", ["null", "shop.Money"]),
        name="Order",
    )
    value = {"items": [{"price": {"amount": 1}}], "total": None}
    data = written(number, whole, value)
    found = format_named(name).decode(binary(data), schema)
    assert found.column.to_pylist() == [value]
    assert format_named(f"avro_sr;id={number}").encode(found.column, schema).values.to_pylist() == [data]


def test_protobuf_and_json_schema_refer_to_other_subjects(registry_url: str) -> None:
    money = 'syntax = "proto3"; package shop; message Money { int64 amount = 1; }'
    register(registry_url, "money.proto", money, "PROTOBUF")
    order = 'syntax = "proto3"; package shop; import "money.proto"; message Order { Money total = 1; }'
    register(registry_url, "proto-refers-value", order, "PROTOBUF", SchemaReference("money.proto", "money.proto", 1))
    name, schema = protobuf("proto-refers-value").read("proto-refers", "value")
    assert str(schema) == "total struct<amount: bigint>"
    column = pa.array([{"total": {"amount": 5}}], schema.arrow)
    found = format_named(name).encode(column, schema)
    assert format_named(name).decode(found.values, schema).column == column

    register(registry_url, "money.json", {"type": "object", "properties": {"amount": {"type": "integer"}}}, "JSON")
    total = {"type": "object", "properties": {"total": {"$ref": "money.json"}}}
    register(registry_url, "json-refers-value", total, "JSON", SchemaReference("money.json", "money.json", 1))
    assert str(json_schema("json-refers-value").read("json-refers", "value")[1]) == "total struct<amount: bigint>"


def test_without_registration_values_are_written_with_the_latest_schema(
    registry_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = record(("id", "string"), ("note", ["null", "string"], None), name="Kept")
    number = register(registry_url, "latest-value", kept)
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_URL", f"{registry_url}/")
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_AUTO_REGISTER_SCHEMAS", "false")
    schema = parse_ddl("id string")
    form = registered_format("avro_sr;subject=latest-value")
    encoded = form.encode(pa.array([{"id": "a"}], schema.arrow), schema)
    assert encoded.values.to_pylist() == [written(number, kept, {"id": "a", "note": None})]
    assert form.encode([{"id": "b", "note": "c"}, {"note": 1}], None).errors.keys() == {1}
    with pytest.raises(SchemaError, match='has no field for the column "other"'):
        form.announce(parse_ddl("id string, other int"))
    with pytest.raises(SchemaError, match='no subject "never-value"'):
        registered_format("avro_sr;subject=never-value").announce(schema)


def test_types_are_written_and_inferred_again(registry_url: str) -> None:
    declared = "id string, n int, b bigint, d double, f boolean, raw binary, at timestamp, day date, t time, "
    declared += "price decimal(9,2), tags array<string>, m map<string, int>, inner struct<a: int, b: string>"
    schema = parse_ddl(declared)
    for kind, name in ((avro, "avro"), (protobuf, "proto"), (json_schema, "json")):
        form = registered_format(kind(f"types-{name}", full_name="shop.Types").write("types", "value"))
        form.announce(schema)
        _, found = kind(f"types-{name}").read("types", "value")
        assert str(found) == str(schema)
