"""Every type, from the snapshot and from the binary log, as Debezium encodes it."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.mysql import columns, texts
from potok.sources.cdc.runner import CaptureRunner
from tests.sources.cdc.changed import MysqlDatabase, events, records, snapshot_landed, wait_for


def bytes_of(number: int, length: int) -> str:
    return b64encode(number.to_bytes(length, "big", signed=True)).decode()


WKB = "AQEAAAAAAAAAAADwPwAAAAAAAABA"
COLUMNS: list[tuple[str, str, Any]] = [
    ("tinyint", "-128", -128),
    ("tinyint unsigned", "255", 255),
    ("smallint", "-32768", -32768),
    ("smallint unsigned", "65535", 65535),
    ("mediumint", "-8388608", -8388608),
    ("mediumint unsigned", "16777215", 16777215),
    ("int", "-2147483648", -2147483648),
    ("int unsigned", "4294967295", 4294967295),
    ("int(8) unsigned zerofill", "42", 42),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint unsigned", "18446744073709551615", 2**64 - 1),
    ("decimal(10,2)", "-1234567.89", bytes_of(-123456789, 4)),
    ("decimal(30,10)", "12345678901234567890.0123456789", bytes_of(123456789012345678900123456789, 13)),
    ("decimal(5,0)", "-123", bytes_of(-123, 1)),
    ("decimal(4,4)", "0.0009", bytes_of(9, 1)),
    ("float", "0.1", 0.1),
    ("float", "-3.5", -3.5),
    ("double", "1e300", 1e300),
    ("bit(1)", "1", True),
    ("bit(12)", "b'101010101010'", b64encode(bytes([0b10101010, 0b1010])).decode()),
    ("char(5)", "'héllo'", "héllo"),
    ("varchar(300)", "'a\"b\\nc,d\\\\'", 'a"b\nc,d\\'),
    ("varchar(20) character set latin1", "'ä€ü'", "ä€ü"),
    ("varchar(20) character set utf16", "'ä€ü'", "ä€ü"),
    ("binary(4)", "x'0102'", b64encode(b"\1\2\0\0").decode()),
    ("varbinary(300)", "x'00ff'", b64encode(b"\0\xff").decode()),
    ("tinytext", "''", ""),
    ("text", "'te\\txt \x01\"'", 'te\txt \x01"'),
    ("longblob", "REPEAT('x', 100)", b64encode(b"x" * 100).decode()),
    ("enum('a','b c','it''s')", "'it''s'", "it's"),
    ("enum('ä','ö') character set latin1", "'ö'", "ö"),
    ("set('x','y','z')", "'z,x'", "x,z"),
    ("set('x','y')", "''", ""),
    ("date", "'1999-12-31'", 10956),
    ("date", "'0000-00-00'", None),
    ("date NOT NULL DEFAULT '2000-01-01'", "'0000-00-00'", 0),
    ("time", "'-12:34:56'", -45_296_000_000),
    ("time(3)", "'838:59:58.999'", 3_020_398_999_000),
    ("time(6)", "'-00:00:00.5'", -500_000),
    ("datetime", "'2024-02-29 12:34:56'", 1_709_210_096_000),
    ("datetime(3)", "'1969-12-31 23:59:59.5'", -500),
    ("datetime(6)", "'9999-12-31 23:59:59.999999'", 253_402_300_799_999_999),
    ("datetime(1)", "'2024-02-29 12:34:56.7'", 1_709_210_096_700),
    ("timestamp NULL", "'2024-01-01 00:00:00'", "2023-12-31T21:00:00Z"),
    ("timestamp(1) NULL", "'2024-01-01 00:00:00.5'", "2023-12-31T21:00:00.5Z"),
    ("timestamp(6) NULL", "'2024-01-01 00:00:00.000001'", "2023-12-31T21:00:00.000001Z"),
    ("year", "2024", 2024),
    ("year", "0", 0),
    ("json", "'{\"a\": [1, null]}'", '{"a": [1, null]}'),
    ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "123e4567-e89b-12d3-a456-426614174000"),
    ("inet6", "'::ffff:1.2.3.4'", "::ffff:1.2.3.4"),
    ("point", "POINT(1, 2)", {"wkb": WKB, "srid": None}),
    ("int", "NULL", None),
    ("varchar(9)", "NULL", None),
]


def test_each_type_is_encoded_as_by_debezium_and_the_same_from_snapshot_and_log(
    database: MysqlDatabase, tmp_path: Path
) -> None:
    broker = EmbeddedBroker(tmp_path)
    database.run("SET SESSION sql_mode = '', time_zone = '+03:00'")
    names = [f"c{number}" for number in range(len(COLUMNS))]
    listed = ", ".join(f"{name} {type_}" for name, (type_, _, _) in zip(names, COLUMNS, strict=True))
    database.run(f"CREATE TABLE users (id int PRIMARY KEY, {listed}, made int AS (id + 1) VIRTUAL)")
    values = ", ".join(value for _, value, _ in COLUMNS)
    insert = f"INSERT INTO users (id, {', '.join(names)}) VALUES (KEY, {values})"
    database.run(insert.replace("KEY", "1"))
    with CaptureRunner(database.capture(), broker) as runner:
        snapshot_landed(runner)
        database.run(insert.replace("KEY", "2"))
        wait_for(lambda: len(records(broker, database.topic())) == 2, runner)
    wanted = dict(zip(names, [value for _, _, value in COLUMNS], strict=True))
    read, streamed = events(broker, database.topic())
    assert read is not None and streamed is not None
    assert read["after"] == {"id": 1, **wanted, "made": 2}
    assert streamed["after"] == {"id": 2, **wanted, "made": 3}
    # The columns of the log are those of the catalog, so nothing but the first reading is recorded.
    assert len(records(broker, database.name)) == 1


def test_schemas_name_the_types_of_debezium(database: MysqlDatabase, tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    database.run("CREATE TABLE users (id int PRIMARY KEY, e enum('a','b'), d decimal(9,2), t timestamp NULL, y year)")
    database.run("INSERT INTO users VALUES (1, 'b', 1.5, NULL, 2024)")
    with CaptureRunner(database.capture(with_schema=True), broker) as runner:
        snapshot_landed(runner)
    (record,) = records(broker, database.topic())
    value, key = orjson.loads(record["value"]), orjson.loads(record["key"])
    assert key["payload"] == {"id": 1} and value["payload"]["after"]["e"] == "b"
    _, after, source, *_ = value["schema"]["fields"]
    assert {each["field"]: (each["type"], each.get("name")) for each in after["fields"]} == {
        "id": ("int32", None),
        "e": ("string", "io.debezium.data.Enum"),
        "d": ("bytes", "org.apache.kafka.connect.data.Decimal"),
        "t": ("string", "io.debezium.time.ZonedTimestamp"),
        "y": ("int32", "io.debezium.time.Year"),
    }
    assert source["name"] == "io.debezium.connector.mariadb.Source"
    assert [each["field"] for each in source["fields"]] == list(value["payload"]["source"])


@pytest.mark.parametrize("decimals", ["string", "double"])
def test_decimals_are_written_as_asked(database: MysqlDatabase, tmp_path: Path, decimals: str) -> None:
    broker = EmbeddedBroker(tmp_path)
    database.run("CREATE TABLE users (id int PRIMARY KEY, d decimal(9,2))")
    database.run("INSERT INTO users VALUES (1, -1.50)")
    with CaptureRunner(database.capture(decimals=decimals), broker) as runner:
        snapshot_landed(runner)
    (event,) = events(broker, database.topic())
    assert event is not None and event["after"]["d"] == ("-1.50" if decimals == "string" else -1.5)


@pytest.mark.parametrize(
    ("precision", "scale", "data", "text"),
    [
        (4, 2, b"\x80\x05", "0.05"),
        # The example in the documentation of the format.
        (14, 4, bytes.fromhex("810dfb38d204d2"), "1234567890.1234"),
        (14, 4, bytes.fromhex("7ef204c72dfb2d"), "-1234567890.1234"),
    ],
)
def test_decimals_are_read_from_groups_of_digits(precision: int, scale: int, data: bytes, text: str) -> None:
    assert texts.decimal_size(precision, scale) == len(data)
    assert texts.decimal(precision, scale)(data) == text


def test_latin1_has_control_characters_where_windows_has_nothing() -> None:
    found = columns.characters("cp1252")([b"\x81\xe4", None, b"plain"])
    assert found.to_pylist() == ["\x81ä", None, "plain"]


@pytest.mark.parametrize("scale", range(7))
def test_instants_have_the_digits_that_the_server_prints(scale: int) -> None:
    micros = 123_456 // 10 ** (6 - scale) * 10 ** (6 - scale)
    size = (scale + 1) // 2
    fraction = (micros // 10 ** (6 - 2 * size)).to_bytes(size, "big") if size else b""
    shown = "2009-02-13 23:31:30" + (f".{123_456:06d}"[: scale + 1] if scale else "")
    (text,) = columns.timestamp(scale)([(1_234_567_890).to_bytes(4, "big") + fraction]).to_pylist()
    assert text == shown
    packed = ((2009 * 13 + 2) << 22 | 13 << 17 | 23 << 12 | 31 << 6 | 30) + 0x8000000000
    values = [packed.to_bytes(5, "big") + fraction, None, (0x8000000000).to_bytes(5, "big") + bytes(size)]
    zero = "0000-00-00 00:00:00" + (f".{'0' * scale}" if scale else "")
    assert columns.date_time(scale)(values).to_pylist() == [shown, None, zero]
