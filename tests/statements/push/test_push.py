"""Push queries of one record at a time, and PRINT: no topology is run for them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from potok.records.log_record import LogRecord
from potok.sql.errors import Refused, SqlError, UnknownName
from potok.statements.errors import NotRunningHere
from potok.statements.push import push as pushing
from potok.statements.push import tail
from potok.statements.push.push import TooManyKeys
from potok.statements.push.tail import SlowReader
from potok.statements.records.inserts import insert_rows
from potok.statements.results import Push, Row
from statements.playing import Play

WAIT_S = 20.0


@pytest.fixture
def orders(play: Play) -> Play:
    play.do(
        "CREATE STREAM orders (id VARCHAR KEY, amount INT, tags ARRAY<VARCHAR>) WITH (KAFKA_TOPIC = 'orders');"
        "CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR, age INT) WITH (KAFKA_TOPIC = 'users');"
    )
    return play


def started(play: Play, text: str, begin: str = "latest") -> Push:
    result = play.session.execute(text, {"auto.offset.reset": begin})[-1].result
    assert isinstance(result, Push)
    return result


def send(play: Play, source: str, *rows: dict[str, Any]) -> None:
    assert insert_rows(play.database, play.database.catalog.source(source), list(rows)) == {}


def taken(push: Push, count: int) -> list[Row]:
    found: list[Row] = []
    while len(found) < count:
        rows = push.next(WAIT_S)
        assert rows, f"{found} and no more"
        found += rows
    return found


def test_rows_come_as_records_are_appended(orders: Play) -> None:
    send(orders, "ORDERS", {"id": "before", "amount": 1})
    with started(orders, "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 1 EMIT CHANGES;") as push:
        assert [(column.name, column.is_key) for column in push.columns] == [("ID", True), ("TWICE", False)]
        assert push.next(0) == []
        send(orders, "ORDERS", {"id": "a", "amount": 2}, {"id": "b", "amount": 1}, {"id": "c", "amount": None})
        send(orders, "ORDERS", {"id": "d", "amount": 4})
        assert taken(push, 2) == [("a", 4), ("d", 8)]


def test_from_the_beginning_nothing_is_missed_and_nothing_comes_twice(
    orders: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "BLOCK", 7)
    send(orders, "ORDERS", *({"id": str(number), "amount": number} for number in range(50)))
    with started(orders, "SELECT amount, ROWOFFSET FROM orders EMIT CHANGES;", "earliest") as push:
        first = taken(push, 10)
        send(orders, "ORDERS", *({"id": str(number), "amount": number} for number in range(50, 80)))
        assert first + taken(push, 80 - len(first)) == [(number, number) for number in range(80)]
        assert push.next(0) == []


def test_a_limit_ends_it(orders: Play) -> None:
    send(orders, "ORDERS", *({"id": str(number), "amount": number} for number in range(5)))
    push = started(orders, "SELECT amount FROM orders EMIT CHANGES LIMIT 3;", "earliest")
    assert list(push) == [(0,), (1,), (2,)]
    assert push.next(0) is None


def test_table_functions_make_rows_of_records(orders: Play) -> None:
    with started(orders, "SELECT id, EXPLODE(tags) AS tag FROM orders EMIT CHANGES;") as push:
        send(orders, "ORDERS", {"id": "a", "tags": ["x", "y"]}, {"id": "b", "tags": None}, {"id": "c", "tags": ["z"]})
        assert taken(push, 3) == [("a", "x"), ("a", "y"), ("c", "z")]


def test_a_deleted_row_has_its_key_and_null(orders: Play) -> None:
    with started(orders, "SELECT * FROM users EMIT CHANGES;") as push:
        send(orders, "USERS", {"id": "u", "name": "Ann", "age": 5}, {"id": "u"})
        assert taken(push, 2) == [("u", "Ann", 5), ("u", None, None)]


def test_a_deleted_row_is_sent_if_the_key_is_not_selected(orders: Play) -> None:
    with started(orders, "SELECT age FROM users EMIT CHANGES;") as push:
        send(orders, "USERS", {"id": "u", "name": "Ann", "age": 5}, {"id": "u"}, {"id": "v", "age": 7})
        assert taken(push, 3) == [(5,), (None,), (7,)]


def test_a_record_without_a_key_is_not_a_row_of_a_table(orders: Play) -> None:
    orders.do("CREATE TABLE latest (id VARCHAR PRIMARY KEY, amount INT) WITH (KAFKA_TOPIC = 'orders');")
    with started(orders, "SELECT amount FROM latest EMIT CHANGES;") as push:
        send(orders, "ORDERS", {"amount": 1}, {"id": "a", "amount": 2})
        assert taken(push, 1) == [(2,)]


def test_a_row_that_no_longer_matches_is_deleted_once(orders: Play) -> None:
    with started(orders, "SELECT id, name FROM users WHERE age > 10 EMIT CHANGES;") as push:
        send(
            orders,
            "USERS",
            {"id": "u", "name": "Ann", "age": 20},
            {"id": "v", "name": "Bob", "age": 5},
            {"id": "u", "name": "Ann", "age": 5},
            {"id": "u"},
            {"id": "w", "name": "Eve", "age": 11},
        )
        assert taken(push, 3) == [("u", "Ann"), ("u", None), ("w", "Eve")]


def test_the_keys_that_a_push_query_remembers_are_bounded_and_let_go(
    orders: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, query = tail.tail_of(orders.database).memory, "SELECT id FROM users WHERE age > 17 EMIT CHANGES;"
    with started(orders, query) as push:
        send(orders, "USERS", *({"id": f"u{number:05}", "age": 18} for number in range(1_000)))
        assert len(taken(push, 1_000)) == 1_000
        assert memory.used >= 1_000 * len("u00000")
        send(orders, "USERS", *({"id": f"u{number:05}", "age": 17} for number in range(1_000)))
        taken(push, 1_000)
        assert memory.used == 0
        monkeypatch.setattr(pushing, "MOST_BYTES", 50_000)
        send(orders, "USERS", *({"id": f"u{number:05}", "age": 18} for number in range(1_000)))
        with pytest.raises(TooManyKeys):
            taken(push, 1_000)
    assert memory.used == 0


def test_closing_from_another_thread_wakes_the_reader(orders: Play) -> None:
    push = started(orders, "SELECT * FROM orders EMIT CHANGES;")
    closer = threading.Timer(0.05, push.close)
    closer.start()
    assert push.next() is None
    closer.join()


def test_a_slow_reader_is_dropped_and_others_are_not(orders: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MOST_RECORDS", 3)
    slow = started(orders, "SELECT amount FROM orders EMIT CHANGES;")
    quick = started(orders, "SELECT amount FROM orders EMIT CHANGES;")
    assert slow.next(0) == []
    for number in range(8):
        send(orders, "ORDERS", {"id": "x", "amount": number})
        assert taken(quick, 1) == [(number,)]
    assert [row[0] for row in slow.next(WAIT_S) or ()] == [0, 1, 2, 3]
    with pytest.raises(SlowReader, match="too slow"):
        slow.next(WAIT_S)
    assert slow.next(WAIT_S) is None
    quick.close()


def test_the_tail_is_idle_without_readers(orders: Play) -> None:
    push = started(orders, "SELECT * FROM orders EMIT CHANGES;")
    push.next(0)
    watching = tail.tail_of(orders.database)._thread
    assert watching is not None
    push.close()
    watching.join(WAIT_S)
    assert not watching.is_alive()


def test_a_topic_that_is_deleted_ends_its_readers_with_an_error(orders: Play) -> None:
    push = started(orders, "SELECT * FROM orders EMIT CHANGES;")
    push.next(0)
    orders.broker.delete_topic("orders")
    with pytest.raises(Exception, match="orders"):
        push.next(WAIT_S)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT * FROM nowhere EMIT CHANGES;", UnknownName, "no stream or table"),
        ("SELECT nothing FROM orders EMIT CHANGES;", UnknownName, "no column"),
        ("SELECT * FROM orders ORDER BY id EMIT CHANGES;", Refused, "has no order"),
        ("SELECT COUNT(*) FROM orders EMIT CHANGES;", Refused, "needs GROUP BY"),
        ("SELECT * FROM orders EMIT FINAL;", Refused, "no window to close"),
        ("SELECT id, EXPLODE(ARRAY[1]) FROM users EMIT CHANGES;", Refused, "over a table"),
        ("SELECT id, COUNT(*) FROM orders GROUP BY id EMIT CHANGES;", NotRunningHere, "this process runs none"),
        ("PRINT nowhere;", UnknownName, "there is no topic"),
    ],
)
def test_unsupported_push_queries_are_refused_with_a_message(
    orders: Play, text: str, error: type[SqlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        orders.do(text)


def test_an_unknown_beginning_is_refused(orders: Play) -> None:
    with pytest.raises(Refused, match=r"'auto\.offset\.reset' cannot be 'sometime'"):
        started(orders, "SELECT * FROM orders EMIT CHANGES;", "sometime")


def test_print_shows_records_line_by_line(orders: Play) -> None:
    orders.broker.create_topic("raw", 1)
    records = [
        LogRecord(b"k", b'{"a": 1}', 0),
        LogRecord(None, None, 1_577_836_800_123),
        LogRecord(b"\0\0\0\7", b"\0\0\0\0\0\0\1\0", 5),
        LogRecord(b"\xff\xfe\xfd", "grün".encode(), 5),
    ]
    orders.broker.append("raw", records)
    push = orders.do("PRINT raw FROM BEGINNING LIMIT 4;")
    assert isinstance(push, Push)
    assert [row[0] for row in push] == [
        'rowtime: 1970/01/01 00:00:00.000 Z, key: k, value: {"a": 1}, partition: 0',
        "rowtime: 2020/01/01 00:00:00.123 Z, key: <null>, value: <null>, partition: 0",
        "rowtime: 1970/01/01 00:00:00.005 Z, key: 7, value: 256, partition: 0",
        "rowtime: 1970/01/01 00:00:00.005 Z, key: 0xfffefd, value: grün, partition: 0",
    ]


def test_print_reads_keys_as_the_catalog_says_and_every_so_many_records(orders: Play) -> None:
    orders.do("CREATE STREAM n (k BIGINT KEY, a INT) WITH (KAFKA_TOPIC = 'n');")
    send(orders, "N", *({"ROWTIME": 0, "k": number, "a": number} for number in range(7)))
    push = orders.do("PRINT n FROM BEGINNING INTERVAL 3 LIMIT 3;")
    assert isinstance(push, Push)
    assert [line.split(", ")[1] for (line,) in push] == ["key: 0", "key: 3", "key: 6"]
