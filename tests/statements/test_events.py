"""`VALUE_FORMAT = 'CLOUDEVENTS'`: attributes and data as columns, in sources, sinks, INSERT, PRINT and queries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.oracle.events import event_id

from potok.records.log_record import LogRecord
from potok.sql.errors import Refused
from potok.statements.results import Push
from potok.testing import TestDriver
from statements.playing import Play

EVENTS = """
CREATE STREAM events (
  k VARCHAR KEY, id VARCHAR, type VARCHAR, source VARCHAR, time TIMESTAMP, subject VARCHAR, retries INT, urgent BOOLEAN,
  data STRUCT<user_id VARCHAR, amount DECIMAL(20, 2)>
) WITH (KAFKA_TOPIC = 'events', VALUE_FORMAT = 'CLOUDEVENTS', PARTITIONS = 1);
"""
STRUCTURED = (("content-type", b"application/cloudevents+json"),)
ATTRIBUTES = {"id": "1", "source": "/shop", "type": "order.paid", "time": "2024-01-15T10:00:00.5Z", "subject": "o1"}


def structured(**more: Any) -> LogRecord:
    value = json.dumps({"specversion": "1.0", **ATTRIBUTES, **more}).encode()
    return LogRecord(b"k", value, 1000, STRUCTURED)


def binary(value: bytes | None, kind: str = "application/json", **more: str) -> LogRecord:
    named = {"specversion": "1.0", **ATTRIBUTES, **more}
    headers = tuple((f"ce_{name}", text.encode()) for name, text in named.items())
    return LogRecord(b"k", value, 1000, (("content-type", kind.encode()), *headers))


def rows(driver: Any, name: str) -> list[dict[str, Any]]:
    return [dict(row) for row in driver.rows(name)]


@pytest.fixture
def events(play: Play) -> Play:
    play.do(EVENTS)
    return play


def selected(play: Play, columns: str, *records: LogRecord) -> list[tuple[Any, ...]]:
    play.broker.append("events", list(records), 0)
    return play.rows(f"SELECT {columns} FROM events;")


def test_attributes_and_data_are_columns_in_both_modes(events: Play) -> None:
    big = structured(id="1", retries=3, urgent=True, data={"USER_ID": "ann", "amount": 5})
    exact = LogRecord(b"k", big.value.replace(b"5}", b"123456789012345678.91}"), 1000, STRUCTURED)  # type: ignore[union-attr]
    small = binary(b'{"user_id": "bob", "amount": 1.50}', id="2", retries="7", urgent="false")
    found = selected(events, "id, type, retries, urgent, data->user_id, CAST(data->amount AS VARCHAR)", exact, small)
    assert found == [
        ("1", "order.paid", 3, True, "ann", "123456789012345678.91"),
        ("2", "order.paid", 7, False, "bob", "1.50"),
    ]
    assert str(events.rows("SELECT time FROM events LIMIT 1;")[0][0]).startswith("2024-01-15 10:00:00.5")


def test_an_event_without_data_is_a_row_and_a_record_without_anything_is_none(events: Play) -> None:
    found = selected(events, "id, data->user_id", binary(None), LogRecord(b"k", None, 1000), structured(id="3"))
    assert found == [("1", None), ("3", None)]


def test_data_in_other_formats_is_text_or_bytes(play: Play) -> None:
    play.do("CREATE STREAM t (id VARCHAR, data VARCHAR) WITH (KAFKA_TOPIC = 'events', VALUE_FORMAT = 'CLOUDEVENTS');")
    play.do("CREATE STREAM b (id VARCHAR, data BYTES) WITH (KAFKA_TOPIC = 'events', VALUE_FORMAT = 'CLOUDEVENTS');")
    xml = binary(b"<a/>", "text/xml")
    based = structured(id="2", datacontenttype="text/plain", data_base64="aGk=")
    play.broker.append("events", [xml, based, structured(id="3", data={"a": 1})])
    assert play.rows("SELECT id, data FROM t;") == [("1", "<a/>"), ("2", "hi"), ("3", '{"a":1}')]
    assert play.rows("SELECT id, FROM_BYTES(data, 'utf8') FROM b;") == [("1", "<a/>"), ("2", "hi"), ("3", '{"a":1}')]


def test_a_push_query_shows_events_as_they_come(events: Play) -> None:
    push = events.do("SELECT id, retries, data->user_id FROM events EMIT CHANGES LIMIT 2;")
    assert isinstance(push, Push)
    bad = LogRecord(b"k", b"not an event", 1000)
    events.broker.append("events", [binary(b'{"user_id": "ann"}', retries="4"), bad, structured(id="2")])
    assert list(push) == [("1", 4, "ann"), ("2", None, None)]


def test_a_row_that_is_inserted_is_an_event_in_structured_mode(events: Play) -> None:
    events.do(
        "INSERT INTO events (ROWTIME, k, id, type, data) "
        "VALUES (0, 'k', 'i', 'order.paid', STRUCT(user_id := 'ann', amount := 1.25));"
    )
    events.do("INSERT INTO events (k, type) VALUES ('k', 'order.paid');")
    (first, second) = [row for batch in events.broker.read("events", 0, 0, 2) for row in batch.to_pylist()]
    assert json.loads(first["value"]) == {
        "specversion": "1.0",
        "source": "/potok/sql",
        "id": "i",
        "type": "order.paid",
        "time": "1970-01-01T00:00:00.000Z",
        "datacontenttype": "application/json",
        "data": {"USER_ID": "ann", "AMOUNT": 1.25},
    }
    assert first["headers"] == [{"name": "content-type", "value": b"application/cloudevents+json"}]
    assert len(json.loads(second["value"])["id"]) == 36 and "data" not in json.loads(second["value"])
    assert events.rows("SELECT data->amount FROM events LIMIT 1;")[0][0] is not None


def test_a_row_that_is_not_an_event_is_not_inserted(events: Play) -> None:
    with pytest.raises(Refused, match='the row is not an event: attribute "type" is missing or empty'):
        events.do("INSERT INTO events (k, id) VALUES ('k', '1');")
    with pytest.raises(Refused, match='attribute "source" is not a URI'):
        events.do("INSERT INTO events (k, type, source) VALUES ('k', 't', 'a b');")
    assert events.broker.end_offsets("events") == {0: 0}


def test_print_shows_the_row_of_an_event(events: Play) -> None:
    events.broker.append("events", [binary(b'{"user_id": "ann"}'), LogRecord(b"k", b"not an event", 1000)])
    push = events.do("PRINT events FROM BEGINNING LIMIT 2;")
    assert isinstance(push, Push)
    rendered = [row[0] for row in push]
    assert '"ID": "1"' in rendered[0] and '"USER_ID": "ann"' in rendered[0]
    assert "not an event" in rendered[1]


SCRIPT = (
    EVENTS
    + """
CREATE STREAM paid WITH (KAFKA_TOPIC = 'paid') AS
  SELECT k, 'invoice.sent' AS type, subject, STRUCT(user_id := data->user_id, amount := data->amount) AS data
  FROM events WHERE type = 'order.paid';
CREATE STREAM copied WITH (KAFKA_TOPIC = 'copied') AS SELECT * FROM events;
CREATE TABLE totals AS SELECT data->user_id AS user_id, COUNT(*) AS n FROM events GROUP BY data->user_id;
"""
)


def script() -> str:
    return SCRIPT.replace("CREATE TABLE totals", "CREATE TABLE totals WITH (VALUE_FORMAT = 'JSON')")


def test_queries_read_and_write_events_and_bad_ones_are_dead_letters() -> None:
    with TestDriver(sql=script()) as driver:
        good = [structured(id=str(n), data={"user_id": "ann", "amount": n}) for n in range(2)]
        odd = [structured(type=""), LogRecord(b"k", b'{"specversion":"1.0"}'), binary(b"{", id="9")]
        driver.broker.append("events", [*good, *odd, binary(b'{"user_id": "bob"}', type="order.lost")], 0)
        driver.run()
        assert {letter.offset for letter in driver.dead_letters()} == {2, 3, 4}
        sent = [record.value for record in driver.read("paid")]
        assert [event["data"]["AMOUNT"] for event in sent] == [0, 1]
        assert [(event["type"], event["subject"]) for event in sent] == [("invoice.sent", "o1")] * 2
        assert {name for event in sent for name in event} == {
            "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data",
        }  # fmt: skip
        assert [(r.value["id"], r.value["type"]) for r in driver.read("copied")] == [
            ("0", "order.paid"),
            ("1", "order.paid"),
            ("1", "order.lost"),
        ]
        assert {row["USER_ID"]: row["N"] for row in driver.query("SELECT * FROM totals;")} == {"ann": 2, "bob": 1}


def test_ids_of_a_query_come_from_positions() -> None:
    made = []
    for one_by_one in (True, False):
        with TestDriver(sql=script()) as driver:
            for number in range(3):
                driver.broker.append("events", [structured(id=str(number), data={"user_id": "ann"})], 0)
                if one_by_one:
                    driver.run()
            driver.run()
            made.append([(record.value["id"], record.value["source"]) for record in driver.read("paid")])
    assert made[0] == made[1]
    query = made[0][0][1].removeprefix("/potok/")
    assert [id_ for id_, _ in made[0]] == [event_id(query, "paid", "events", 0, n, b"k", 0) for n in range(3)]


def test_a_table_of_events_deletes_rows_by_records_without_a_value(play: Play) -> None:
    play.do(
        "CREATE SOURCE TABLE latest (k VARCHAR PRIMARY KEY, id VARCHAR, type VARCHAR) "
        "WITH (KAFKA_TOPIC = 'latest', VALUE_FORMAT = 'CLOUDEVENTS', PARTITIONS = 1);"
    )
    play.broker.append("latest", [structured(id="1")], 0)
    play.run()
    assert play.rows("SELECT k, id FROM latest;") == [("k", "1")]
    play.broker.append("latest", [LogRecord(b"k", None, 2000, binary(None).headers)], 0)
    play.run()
    assert play.rows("SELECT k, id FROM latest;") == []


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("user_id VARCHAR", "USER_ID cannot be an attribute of an event"),
        ("amount DOUBLE", "the attribute AMOUNT of an event cannot be DOUBLE"),
        ("time BIGINT", "the attribute TIME of an event cannot be BIGINT"),
        ("type INT", "the attribute TYPE of an event cannot be INTEGER"),
    ],
)
def test_columns_that_are_not_attributes_are_refused(play: Play, columns: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        play.do(f"CREATE STREAM s ({columns}) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'CLOUDEVENTS');")


def test_a_result_without_a_type_and_keys_in_this_format_are_refused(events: Play) -> None:
    with pytest.raises(Refused, match="an event needs a TYPE"):
        events.do("CREATE STREAM x AS SELECT k, id, data FROM events;")
    with pytest.raises(Refused, match="CLOUDEVENTS is a format of values"):
        events.do("CREATE STREAM s (k INT KEY, type VARCHAR) WITH (KAFKA_TOPIC = 's', FORMAT = 'CLOUDEVENTS');")
