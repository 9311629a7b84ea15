"""Change events as tables and streams of a topology."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.topology.nodes.sources import TRUNCATED, UNAVAILABLE

URL = "postgresql://reader@db/shop"
TOPIC = "shop.public.users"
MISSING = "__debezium_unavailable_value"


def users(key: Any = int, value: Any = "name string, note string") -> StreamsBuilder:
    builder = StreamsBuilder("q")
    shop = builder.cdc(URL, tables=["users"])
    shop.table("users", key=key, value=value).to_stream(changes=True).to("out")
    return builder


def event(op: str, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"table": "users"}, "op": op, "ts_ms": 1, "transaction": None}


def with_schema(payload: object) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": []}, "payload": payload}


def row(number: int, name: str, note: str) -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("batch_records", [None, 1])
def test_change_events_are_rows_of_a_table(schema: bool, batch_records: int | None) -> None:
    wrapped: Any = with_schema if schema else lambda payload: payload
    with InProcess(users()) as driver:
        for value, number in (
            (event("r", row(1, "Ann", "a")), 1),
            (event("c", row(2, "Bob", "b")), 2),
            (event("u", row(1, "Ann", "c")), 1),
            (event("d", None, {"id": 2}), 2),
            (None, 2),
        ):
            driver.send(TOPIC, None if value is None else wrapped(value), wrapped({"id": number}))
        driver.run(batch_records)
        assert driver.table("users").all() == {1: {"name": "Ann", "note": "c"}}
        assert driver.reasons() == []


@pytest.mark.parametrize("value", ["name string, note string", None], ids=["typed", "dynamic"])
@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_a_value_that_was_not_sent_is_that_of_the_row_before(value: Any, batch_records: int | None) -> None:
    with InProcess(users(value=value)) as driver:
        for number, after in (
            (1, row(1, "Ann", "long text")),
            (1, row(1, "Ann2", MISSING)),
            (2, row(2, "Bob", MISSING)),
            (1, row(1, "Ann3", MISSING)),
            (1, row(1, MISSING, "short")),
        ):
            driver.send(TOPIC, event("u", after), {"id": number})
        driver.run(batch_records)
        found = driver.table("users").all()
        assert (found[1]["name"], found[1]["note"]) == ("Ann3", "short")
        assert (found[2]["name"], found[2]["note"]) == ("Bob", None)
        assert all(UNAVAILABLE not in dict(each.headers) for each in driver.read("out"))
        if batch_records == 1:
            changes = [each.value for each in driver.read("out") if str(each.key) == "1"]
            assert changes[1]["before"]["name"] == "Ann" and changes[1]["after"]["note"] == "long text"


def test_a_truncate_of_a_capture_is_the_records_behind_it() -> None:
    with InProcess(users()) as driver:
        driver.send(TOPIC, event("r", row(1, "Ann", "a")), {"id": 1})
        driver.send(TOPIC, event("t", None), None, headers={TRUNCATED: None})
        driver.send(TOPIC, None, {"id": 1})
        driver.run()
        assert driver.table("users").all() == {}
        assert driver.reasons() == []


def test_a_truncate_of_debezium_and_other_documents_are_dead_letters() -> None:
    with InProcess(users()) as driver:
        driver.send(TOPIC, event("t", None), {"id": 1})
        driver.send(TOPIC, {"name": "flat"}, {"id": 2})
        driver.send(TOPIC, event("c", None), {"id": 3})
        driver.run()
        rendered = [letter.error for letter in driver.dead_letters()]
        assert ["truncated" in rendered[0], "no op" in rendered[1], "no row" in rendered[2]] == [True] * 3


def test_the_types_of_debezium_become_those_of_the_table() -> None:
    builder = StreamsBuilder("q")
    shop = builder.cdc(URL, tables=["sales.orders"])
    columns = "price decimal(10,2), at timestamp_ntz, seen timestamp, day date, tags array<string>, data binary"
    shop.table("sales.orders", key="order_id int, line int", value=columns)
    after = {
        "price": "+y4=",
        "at": 1577836800500000,
        "seen": "2020-01-01T00:00:00.5Z",
        "day": 18262,
        "tags": ["a", None],
        "data": "AAE=",
    }
    with InProcess(builder) as driver:
        driver.send("shop.sales.orders", event("c", after), {"order_id": 1, "line": 2})
        driver.run()
        (found,) = driver.table("orders").all().values()
        assert (found["price"], found["day"].isoformat()) == (Decimal("-12.34"), "2020-01-01")
        assert found["at"] == datetime(2020, 1, 1, 0, 0, 0, 500_000)
        assert (found["seen"].timestamp(), found["tags"], found["data"]) == (1577836800.5, ["a", None], b"\x00\x01")


def test_the_changes_are_a_stream() -> None:
    builder = StreamsBuilder("q")
    shop = builder.cdc(URL, tables=["users"])
    changes = shop.stream("users", key=int, value="name string, note string not null")
    changes.map_values(lambda v: {"op": v["op"], "name": v["after"]["name"], "was": v["before"]["name"]}).to("out")
    with InProcess(builder) as driver:
        driver.send(TOPIC, event("u", row(1, "Ann2", "n"), row(1, "Ann", "n")), {"id": 1})
        driver.send(TOPIC, None, {"id": 1})
        driver.run()
        assert [each.value for each in driver.read("out")] == [{"op": "u", "name": "Ann2", "was": "Ann"}]


def test_a_captured_table_joins_like_any_other() -> None:
    builder = StreamsBuilder("q")
    shop = builder.cdc(URL, tables=["users"])
    people = shop.table("users", key=int, value="name string")
    clicks = builder.stream("clicks", key=int, value="page string")
    clicks.join(people, lambda click, user: {"page": click["page"], "name": user["name"]}).to("out")
    with InProcess(builder) as driver:
        driver.send(TOPIC, event("r", row(1, "Ann", "a")), {"id": 1}, timestamp=1)
        driver.send("clicks", {"page": "/"}, 1, timestamp=2)
        driver.run()
        assert [each.value for each in driver.read("out")] == [{"page": "/", "name": "Ann"}]


def test_mistakes_are_found_when_the_topology_is_built() -> None:
    builder = StreamsBuilder("q")
    with pytest.raises(TopologyError, match="does not name a database that can be captured"):
        builder.cdc("oracle://db/shop", tables=["users"])
    with pytest.raises(TopologyError, match="has no tables"):
        builder.cdc(URL, tables=[])
    shop = builder.cdc(URL, tables=["users"])
    with pytest.raises(TopologyError, match='table "user" is not captured'):
        shop.table("user")
    with pytest.raises(TopologyError, match='two captures are called "shop"'):
        builder.cdc(URL, tables=["orders"])
    shop.table("users").to_stream().to("out")
    assert [capture.name for capture in builder.build().captures] == ["shop"]
    assert "reader" not in repr(builder.build())
