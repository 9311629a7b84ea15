"""Columns as Python values, dates beyond Python's calendar among them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from potok.statements.frames import python_values
from statements.playing import Play

DAYS = pa.array([5_000_000, 1, None, -900_000], pa.int32()).cast(pa.date32())
SHOWN = ["+15659-07-15", dt.date(1970, 1, 2), None, "-0495-11-20"]


def test_dates_beyond_the_calendar_are_text() -> None:
    assert python_values(DAYS) == SHOWN


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_instants_beyond_the_calendar_are_text(unit: str) -> None:
    per_ms = {"ms": 1, "us": 1_000}[unit]
    column = pa.array([400_000_000_000_123 * per_ms, 0, None]).cast(pa.timestamp(unit, "UTC"))
    far, near, none = python_values(column)
    assert (far, none) == ("+14645-06-30T15:06:40.123", None)
    assert near == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def test_they_are_found_at_any_depth() -> None:
    structs = pa.StructArray.from_arrays([DAYS, pa.array(range(4))], ["x", "y"])
    assert python_values(structs)[0] == {"x": SHOWN[0], "y": 0}
    assert python_values(pa.ListArray.from_arrays([0, 1, 4], DAYS)) == [SHOWN[:1], SHOWN[1:]]
    assert python_values(pa.MapArray.from_arrays([0, 1], pa.array(["k"]), DAYS[:1])) == [{"k": SHOWN[0]}]


def test_queries_show_them_and_what_is_kept_is_null(play: Play) -> None:
    play.do(
        """CREATE STREAM s (id VARCHAR KEY, d INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
        SET 'auto.offset.reset' = 'earliest';
        CREATE STREAM json AS SELECT id, FROM_DAYS(d) AS day, ARRAY[FROM_DAYS(d)] AS days FROM s;
        CREATE STREAM avro WITH (VALUE_FORMAT = 'AVRO') AS SELECT id, FROM_DAYS(d) AS day FROM s;
        CREATE TABLE by_day WITH (KEY_FORMAT = 'JSON') AS
          SELECT FROM_DAYS(d) AS day, COUNT(*) AS n FROM s GROUP BY FROM_DAYS(d);
        INSERT INTO s VALUES ('a', 5000000);
        INSERT INTO s VALUES ('b', 1);"""
    )
    play.run()
    day = dt.date(1970, 1, 2)
    assert play.rows("SELECT id, FROM_DAYS(d) AS day FROM s;") == [("a", "+15659-07-15"), ("b", day)]
    assert play.rows("SELECT id FROM s WHERE FROM_DAYS(d) > FROM_DAYS(2932897);") == [("a",)]
    push = play.do("SELECT FROM_DAYS(d) AS day FROM s EMIT CHANGES LIMIT 2;")
    assert list(push) == [("+15659-07-15",), (day,)]  # type: ignore[arg-type]
    assert play.rows("SELECT * FROM json;") == [("a", None, None), ("b", day, [day])]
    assert play.rows("SELECT * FROM avro;") == [("a", None), ("b", day)]
    assert play.rows("SELECT * FROM by_day;") == [(day, 1)]
    reported = play.rows("SELECT expression, message FROM KSQL_PROCESSING_LOG WHERE query_id = 'CSAS_AVRO_2';")
    assert reported == [("FROM_DAYS(D)", "a date outside of the years 1 to 9999 cannot be kept")]
