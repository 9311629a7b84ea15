"""Values of a real PostgreSQL in the encodings of Debezium."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources.cdc.kinds import NotANumber, signed_bytes
from potok.sources.cdc.postgres.texts import array_items, date_days, interval_us, timestamp_us
from potok.sources.cdc.postgres.types import PostgresType, kind_of
from potok.sources.cdc.runner import CaptureRunner
from tests.sources.cdc.changed import Database, events, rows, snapshot_landed, wait_for

VALUES: dict[str, tuple[str, str, Any]] = {
    "boolean": ("boolean", "true", True),
    "small": ("smallint", "-32768", -32768),
    "big": ("bigint", "9223372036854775807", 9223372036854775807),
    "real": ("real", "1.5", 1.5),
    "double": ("double precision", "0.1", 0.1),
    "not_a_number": ("double precision", "'NaN'", "NaN"),
    "exact": ("numeric(10,2)", "-12.34", b64encode((-1234).to_bytes(2, "big", signed=True)).decode()),
    "any_scale": ("numeric", "1.5", {"scale": 1, "value": "Dw=="}),
    "words": ("text", "E'q\"\\\\ \\n \\x01 ü 😀'", 'q"\\ \n \x01 ü 😀'),
    "empty": ("text", "''", ""),
    "nothing": ("text", "NULL", None),
    "limited": ("varchar(20)", "'a,b'", "a,b"),
    "padded": ("char(3)", "'a'", "a  "),
    "data": ("bytea", "'\\x00ff'", "AP8="),
    "id128": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "document": ("jsonb", """'{"a": [1, "x"]}'""", '{"a": [1, "x"]}'),
    "day": ("date", "'2020-01-01'", 18262),
    "early_day": ("date", "'0044-03-15 BC'", date_days("0044-03-15 BC")),
    "moment": ("timestamp", "'1969-12-31 23:59:59.5'", -500_000),
    "moment_ms": ("timestamp(3)", "'1970-01-01 00:00:01.25'", 1_250),
    "endless": ("timestamp", "'infinity'", 2**63 - 1),
    "zoned": ("timestamptz", "'2020-01-01 01:00:00.25+01'", "2020-01-01T00:00:00.25Z"),
    "clock": ("time", "'01:00:00.5'", 3_600_500_000),
    "midnight": ("time", "'24:00'", 86_400_000_000),
    "zoned_clock": ("timetz", "'01:30:00+02'", "23:30:00Z"),
    "span": ("interval", "'1 day 02:00:00.5'", 93_600_500_000),
    "bit": ("bit(1)", "B'1'", True),
    "bits": ("bit(10)", "B'1000000001'", "AQI="),
    "numbers": ("int[]", "'{1,NULL,3}'", [1, None, 3]),
    "nested": ("text[]", """'{{a,"b,\\"c"},{"NULL",NULL}}'""", [["a", 'b,"c'], ["NULL", None]]),
    "mood": ("mood", "'happy'", "happy"),
    "positive": ("positive", "7", 7),
    "network": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    "from_to": ("int4range", "'[1,5)'", "[1,5)"),
}


@pytest.mark.parametrize("with_schema", [False, True])
def test_values_of_a_snapshot_and_of_the_stream_are_the_same(
    database: Database, tmp_path: Path, with_schema: bool
) -> None:
    database.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    database.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    columns = ", ".join(f"{name} {type_}" for name, (type_, _, _) in VALUES.items())
    database.run(f"CREATE TABLE users (id int PRIMARY KEY, {columns})")
    values = ", ".join(text for _, text, _ in VALUES.values())
    database.run(f"INSERT INTO users VALUES (1, {values})")
    broker = EmbeddedBroker(tmp_path)
    capture = database.capture(with_schema=with_schema)
    with CaptureRunner(capture, broker) as runner:
        snapshot_landed(runner)
        database.run(f"INSERT INTO users VALUES (2, {values})")
        wait_for(lambda: sum(broker.end_offsets(capture.topic("users")).values()) == 2, runner)
    if not with_schema:
        first, second = rows(broker, capture.topic("users")).values()
    else:
        found = [event for event in events(broker, capture.topic("users")) if event]
        first, second = (event["payload"]["after"] for event in found)
        for event in found:
            described = event["schema"]["fields"][1]["fields"]
            assert [field["field"] for field in described] == ["id", *VALUES]
            assert {f["field"]: f.get("name") for f in described}["moment"] == "io.debezium.time.MicroTimestamp"
    expected = {name: value for name, (_, _, value) in VALUES.items()}
    assert first == {"id": 1, **expected}
    assert second == {"id": 2, **expected}


@pytest.mark.parametrize(("decimals", "expected"), [("string", '"12.30"'), ("double", "12.30"), ("precise", '"BM4="')])
def test_decimal_numbers_are_written_as_asked(decimals: Any, expected: str) -> None:
    kind = kind_of(PostgresType(1700, ((10 << 16) | 2) + 4, "numeric"), decimals)
    assert kind.render(pa.array(["12.30", None])).to_pylist() == [expected, None]


def test_a_number_that_is_none_stops_the_capture_rather_than_being_lost() -> None:
    with pytest.raises(NotANumber) as found:
        kind_of(PostgresType(1700, -1, "numeric"), "precise").render(pa.array(["NaN"]))
    assert 'decimals="string"' in found.value.hint


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63), 10**40])
def test_whole_numbers_are_written_like_java_does(number: int) -> None:
    data = signed_bytes(number)
    assert int.from_bytes(data, "big", signed=True) == number
    assert len(data) == 1 or data[0] not in (0, 255) or (data[0] >> 7) != (data[1] >> 7)
    assert b64decode(b64encode(data)) == data


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{}", []), ("{1}", ["1"]), ('{"",a}', ["", "a"]), ("[0:1]={a,b}", ["a", "b"]), ("{{},{}}", [[], []])],
)
def test_arrays_are_read(text: str, expected: list[object]) -> None:
    assert array_items(text) == expected


def test_unusual_times_are_read() -> None:
    assert date_days("0001-01-01 BC") == date_days("0001-01-01") - 366
    assert timestamp_us("10000-01-01 00:00:00") > timestamp_us("9999-12-31 23:59:59")
    assert interval_us("-1 days +02:03:04") == -86_400_000_000 + 7_384_000_000
    assert interval_us("-00:00:01.5") == -1_500_000
