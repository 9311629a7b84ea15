"""Statements with a schema registry: what is inferred, registered, refused, and kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from potok.sql.errors import Refused
from potok.statements.records.print_records import shown_values
from potok.testing import TestDriver

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "Amount", "type": ["null", "float"], "default": None},
        {"name": "nothing", "type": "null"},
        {"name": "made", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}},
    ],
}
ORDER_PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Other { int32 x = 1; }
/* what is paid */
message Order {
  enum State { OPEN = 0; PAID = 1; }
  string id = 1;
  optional float amount = 2;
  uint32 count = 3;
  State state = 4;
  google.protobuf.Timestamp at = 5;
  oneof payer { string name = 6; int64 number = 7; }
  map<string, Item> items = 8;
  map<int32, string> numbered = 9;
  message Item { repeated bytes parts = 1 [deprecated = true]; }
}
"""
ORDER_JSON = {
    "type": "object",
    "properties": {
        "b": {"type": ["integer", "null"]},
        "a": {"anyOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]},
        "m": {"type": "object", "additionalProperties": {"type": "number"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "$defs": {"text": {"type": "string", "format": "date"}},
}


def register(url: str, subject: str, schema: Any, kind: str = "AVRO") -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return int(SchemaRegistryClient({"url": url}).register_schema(subject, Schema(text, kind)))


def latest(url: str, subject: str) -> Any:
    return SchemaRegistryClient({"url": url}).get_latest_version(subject)


def columns(script: str, name: str) -> str:
    """The columns of a stream, as a statement declares them."""
    with TestDriver(sql=script) as driver:
        source = driver.database.catalog.source(name)
        return source.statement.partition(" (")[2].rpartition(") WITH")[0]


@pytest.mark.parametrize(
    ("kind", "format_", "schema", "expected"),
    [
        (
            "AVRO",
            "AVRO",
            ORDER,
            "ID VARCHAR, AMOUNT DOUBLE, MADE BIGINT, AT TIMESTAMP, INNER STRUCT<A INTEGER>",
        ),
        (
            "PROTOBUF",
            "PROTOBUF",
            ORDER_PROTO.replace("message Other { int32 x = 1; }", ""),
            "PAYER_0 STRUCT<NAME VARCHAR, NUMBER BIGINT>, ID VARCHAR, AMOUNT DOUBLE, COUNT BIGINT, STATE VARCHAR, "
            "AT TIMESTAMP, ITEMS MAP<VARCHAR, STRUCT<PARTS ARRAY<BYTES>>>",
        ),
        ("JSON", "JSON_SR", ORDER_JSON, "B BIGINT, A VARCHAR, M MAP<VARCHAR, DOUBLE>"),
    ],
)
def test_columns_are_inferred_in_upper_case(
    registry_url: str, kind: str, format_: str, schema: Any, expected: str
) -> None:
    topic = f"inferred-{kind.lower()}"
    register(registry_url, f"{topic}-value", schema, kind)
    found = columns(f"CREATE STREAM s WITH (KAFKA_TOPIC = '{topic}', VALUE_FORMAT = '{format_}', PARTITIONS = 1);", "S")
    assert found.replace("`", "") == expected


def test_columns_of_a_schema_by_its_id_keep_their_names_and_the_columns_of_a_key_may_be_declared(
    registry_url: str,
) -> None:
    number = register(registry_url, "by-id", ORDER)
    script = f"""CREATE TABLE t (k INT PRIMARY KEY) WITH (KAFKA_TOPIC = 'by-id', VALUE_FORMAT = 'AVRO', PARTITIONS = 1,
      VALUE_SCHEMA_ID = {number});"""
    found = columns(script, "T")
    assert found.startswith("K INT PRIMARY KEY, `id` VARCHAR, `Amount` DOUBLE, `made` BIGINT")
    # The schema is also registered for the topic.
    assert json.loads(latest(registry_url, "by-id-value").schema.schema_str) == ORDER


def test_a_key_is_inferred_as_one_column(registry_url: str) -> None:
    register(registry_url, "keyed-key", {"type": "record", "name": "K", "fields": [{"name": "a", "type": "int"}]})
    register(registry_url, "keyed-value", '"int"')
    script = """CREATE STREAM s WITH (KAFKA_TOPIC = 'keyed', FORMAT = 'AVRO', WRAP_SINGLE_VALUE = false,
      PARTITIONS = 1);"""
    assert columns(script, "S") == "ROWKEY STRUCT<A INTEGER> KEY, ROWVAL INTEGER"


def test_a_message_is_chosen_by_its_full_name(registry_url: str) -> None:
    number = register(registry_url, "chosen", ORDER_PROTO, "PROTOBUF")
    script = f"""CREATE STREAM s WITH (KAFKA_TOPIC = 'chosen', VALUE_FORMAT = 'PROTOBUF', PARTITIONS = 1,
      VALUE_SCHEMA_ID = {number}, VALUE_SCHEMA_FULL_NAME = 'shop.Order.Item');"""
    assert columns(script, "S") == "`parts` ARRAY<BYTES>"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 'nowhere', VALUE_FORMAT = 'AVRO')", 'no subject "nowhere-value"'),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 'nowhere', VALUE_FORMAT = 'JSON')", "has no columns"),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 'n', VALUE_FORMAT = 'AVRO', VALUE_SCHEMA_ID = 1)",
            "VALUE_SCHEMA_ID and columns exclude each other",
        ),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 'n', VALUE_FORMAT = 'JSON', VALUE_SCHEMA_ID = 1)",
            "VALUE_SCHEMA_ID",
        ),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 'n', VALUE_FORMAT = 'AVRO', VALUE_SCHEMA_ID = 99999)", "no schema 99999"),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 'keyed', VALUE_FORMAT = 'AVRO')", "which has no columns"),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 'n', VALUE_FORMAT = 'JSON_SR', VALUE_SCHEMA_FULL_NAME = 'B')",
            "VALUE_SCHEMA_FULL_NAME is for AVRO and PROTOBUF",
        ),
    ],
)
def test_what_cannot_be_inferred_is_refused(registry_url: str, script: str, reason: str) -> None:
    register(registry_url, "keyed-value", '"int"')
    with pytest.raises(Refused, match=reason):
        TestDriver(sql=f"{script};")


def test_a_declared_stream_registers_its_schema_only_if_the_subject_has_none(registry_url: str) -> None:
    with TestDriver(
        sql="""CREATE STREAM a (id INT KEY, v DECIMAL(4, 2)) WITH (KAFKA_TOPIC = 'declared', VALUE_FORMAT = 'AVRO',
          VALUE_SCHEMA_FULL_NAME = 'shop.Price', PARTITIONS = 1);
        CREATE STREAM b (id INT KEY, w INT) WITH (KAFKA_TOPIC = 'declared', VALUE_FORMAT = 'AVRO');"""
    ):
        pass
    found = latest(registry_url, "declared-value")
    assert found.version == 1
    schema = json.loads(found.schema.schema_str)
    assert (schema["namespace"], schema["name"]) == ("shop", "Price")
    assert [field["name"] for field in schema["fields"]] == ["V"]


def test_an_incompatible_result_is_refused_with_the_message_of_the_registry(registry_url: str) -> None:
    register(
        registry_url, "OUT-value", {"type": "record", "name": "Other", "fields": [{"name": "V", "type": "string"}]}
    )
    SchemaRegistryClient({"url": registry_url}).set_compatibility("OUT-value", "BACKWARD")
    with TestDriver(
        sql="CREATE STREAM a (v INT) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
    ) as d:
        with pytest.raises(Refused, match=r"answers 409: .*[Ii]ncompatible"):
            d.execute("CREATE STREAM out WITH (VALUE_FORMAT = 'AVRO') AS SELECT * FROM a;")
        assert list(d.database.catalog.sources) == ["A"]


def test_a_result_is_written_with_the_schema_of_an_id_which_must_hold_its_columns(registry_url: str) -> None:
    fields = [
        {"name": "ID", "type": "string"},
        {"name": "N", "type": "int"},
        {"name": "title", "type": "string", "default": "none"},
    ]
    number = register(registry_url, "wide", {"type": "record", "name": "Wide", "fields": fields})
    given = """CREATE STREAM a (id VARCHAR, n INT, s VARCHAR)
      WITH (KAFKA_TOPIC = 'wide-in', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"""
    out = f"CREATE STREAM {{}} WITH (VALUE_FORMAT = 'AVRO', VALUE_SCHEMA_ID = {number}) AS SELECT {{}} FROM a;"
    with TestDriver(sql=given + out.format("w", "id, n")) as driver:
        with pytest.raises(Refused, match=r"N is VARCHAR in the query, and INTEGER in schema"):
            driver.execute(out.format("x", "id, s AS n"))
        with pytest.raises(Refused, match=r"S is VARCHAR in the query, and no such field in schema"):
            driver.execute(out.format("x", "id, s"))
        driver.send("wide-in", {"id": "a", "n": 1})
        driver.send("wide-in", {"id": None, "n": 1})
        driver.run()
        (found,) = driver.read("W")
        (letter,) = driver.dead_letters()
    assert found.raw_value == b"\0" + number.to_bytes(4, "big") + b"\x02a\x02\x08none"
    assert letter.reason == "encode" and f"does not fit schema {number}" in letter.error


def test_a_statement_keeps_its_columns_when_the_schema_changes(registry_url: str, tmp_path: Any) -> None:
    register(registry_url, "kept-value", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    script = "CREATE STREAM s WITH (KAFKA_TOPIC = 'kept', VALUE_FORMAT = 'AVRO', PARTITIONS = 1);"
    with TestDriver(sql=script, directory=tmp_path) as driver:
        assert [column.name for column in driver.database.catalog.source("S").columns] == ["A"]
        ((_, _, key_format, value_format, *_),) = driver.execute("SHOW STREAMS;")[-1].result.rows
        assert (key_format, value_format) == ("KAFKA", "AVRO")
    register(registry_url, "kept-value", {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]})
    with TestDriver(sql="", directory=tmp_path) as driver:
        assert [column.name for column in driver.database.catalog.source("S").columns] == ["A"]


@pytest.mark.parametrize("format_", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_keys_and_values_of_each_format_are_written_and_read_by_statements(registry_url: str, format_: str) -> None:
    script = f"""
    CREATE STREAM o (id VARCHAR KEY, n INT, d DECIMAL(5, 2), t TIMESTAMP, a ARRAY<INT>, m MAP<VARCHAR, DOUBLE>,
      s STRUCT<x INT, y VARCHAR>) WITH (KAFKA_TOPIC = 'o-{format_}', FORMAT = '{format_}', PARTITIONS = 1);
    CREATE TABLE counts WITH (KAFKA_TOPIC = 'counts-{format_}') AS SELECT id, COUNT(*) AS c FROM o GROUP BY id;
    CREATE TABLE hours WITH (KAFKA_TOPIC = 'hours-{format_}') AS
      SELECT id, COUNT(*) AS c FROM o WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;
    CREATE STREAM by_struct WITH (KAFKA_TOPIC = 'by-struct-{format_}') AS SELECT s, id FROM o PARTITION BY s;
    CREATE STREAM plain WITH (KAFKA_TOPIC = 'plain-{format_}', WRAP_SINGLE_VALUE = false) AS SELECT id, n FROM o;
    INSERT INTO o VALUES ('a', 1, 1.25, '2024-01-01T00:00:00', ARRAY[1, 2], MAP('k' := 1.5), STRUCT(x := 1, y := 'z'));
    INSERT INTO o (id, n) VALUES ('a', 2);
    """
    with TestDriver(sql=script) as driver:
        driver.run()
        assert driver.dead_letters() == []
        assert driver.query("SELECT * FROM counts;") == [{"ID": "a", "C": 2}]
        assert [row["C"] for row in driver.query("SELECT * FROM hours;")] == [2]
        first, second = driver.query("SELECT * FROM o;")
        assert [str(first["D"]), first["A"], first["M"], first["S"]] == ["1.25", [1, 2], {"k": 1.5}, {"X": 1, "Y": "z"}]
        assert (second["N"], second["D"], second["S"]) == (2, None, None)
        assert [row["N"] for row in driver.query("SELECT n FROM plain;")] == [1, 2]
        assert [row["S"] for row in driver.query("SELECT s FROM by_struct;")] == [{"X": 1, "Y": "z"}, None]
    for topic in ("o", "counts", "hours", "by-struct", "plain"):
        assert {latest(registry_url, f"{topic}-{format_}-{side}").version for side in ("key", "value")} == {1}


def test_ids_in_headers_are_read_by_pull_queries_and_print(registry_url: str) -> None:
    number = register(
        registry_url, "heads-value", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    )
    headers = {"__value_schema_id": b"\0" + number.to_bytes(4, "big")}
    script = "CREATE STREAM s WITH (KAFKA_TOPIC = 'heads', KEY_FORMAT = 'NONE', VALUE_FORMAT = 'AVRO', PARTITIONS = 1);"
    with TestDriver(sql=script) as driver:
        driver.send("heads", b"\x0a", headers=headers)
        assert driver.query("SELECT a FROM s;") == [{"A": 5}]
        batches = driver.broker.read("heads", 0, 0, 1)
        assert [line for b in batches for line in shown_values(b, driver.database.catalog.source("S"))] == ['{"A": 5}']
