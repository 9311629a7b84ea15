from __future__ import annotations

from typing import Any

import httpx
import pytest

from potok.records.log_record import LogRecord
from potok.server.inspection import browse
from server.conftest import sell
from statements.playing import Play


def fill(shop: Play, count: int, *, topic: str = "plain", partitions: int = 3) -> None:
    """Records 0 to count - 1, whose times are seconds, spread by key."""
    shop.broker.create_topic(topic, partitions)
    for number in range(count):
        record = LogRecord(b"k%d" % (number % 10), b'{"n": %d}' % number, number * 1_000)
        shop.broker.append(topic, [record], partition=number % partitions)


def numbers(page: dict[str, Any]) -> list[int]:
    return [record["timestamp"] // 1_000 for record in page["records"]]


def test_topics_are_listed_with_sizes_and_readers(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    found = client.get("/topics", params={"sizes": True}).json()
    orders = {topic["topic"]: topic for topic in found["described"]}["orders"]
    assert orders["records"] == 1 and orders["partitions"] == 2 and orders["bytes"] > 0
    assert orders["read_by"] == ["CTAS_HOURLY_2", "CTAS_TOTALS_1"]
    assert orders["retention"]["cleanup_policy"] == "delete"
    assert found["topics"] == client.get("/topics").json()["topics"]


def test_a_topic_shows_its_partitions_and_the_lag_of_its_readers(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    shop.do("INSERT INTO orders (id, user_id, amount) VALUES ('o2', 'bob', 1.0);")
    shop.broker.commit("billing", "orders", {0: 0, 1: 0})
    found = client.get("/topics/orders").json()
    assert sum(part["records"] for part in found["partition_offsets"]) == 2
    readers = {reader["name"]: (reader["kind"], reader["lag"]) for reader in found["readers"]}
    assert readers == {"billing": ("consumers", 2), "CTAS_HOURLY_2": ("query", 1), "CTAS_TOTALS_1": ("query", 1)}
    assert found["sources"] == [{"name": "ORDERS", "kind": "stream", "value_format": "sql_json"}]
    assert client.get("/topics/nothing").status_code == 404


def test_the_latest_records_come_first_and_pages_go_back_to_the_beginning(client: httpx.Client, shop: Play) -> None:
    fill(shop, 25)
    page = client.get("/topics/plain/records", params={"limit": 10}).json()
    seen = numbers(page)
    assert seen == list(range(15, 25)) and not page["at_end"]
    while not page["at_end"]:
        page = client.get("/topics/plain/records", params={"limit": 10, "before": page["previous"]}).json()
        seen = numbers(page) + seen
    assert seen == list(range(25))


def test_records_from_a_time_on_come_in_order_over_all_pages(client: httpx.Client, shop: Play) -> None:
    fill(shop, 25)
    page = client.get("/topics/plain/records", params={"limit": 4, "at": "12000"}).json()
    seen = numbers(page)
    assert seen == [12, 13, 14, 15]
    while not page["at_end"]:
        page = client.get("/topics/plain/records", params={"limit": 4, "after": page["next"]}).json()
        seen += numbers(page)
    assert seen == list(range(12, 25))
    assert numbers(client.get("/topics/plain/records", params={"at": "1970-01-01T00:00:24Z"}).json()) == [24]
    assert numbers(client.get("/topics/plain/records", params={"at": "99000000"}).json()) == []


@pytest.mark.parametrize("page_bytes", [1, 3_000, 20_000])
def test_a_page_of_long_records_is_short_and_pages_have_no_gaps(
    client: httpx.Client, shop: Play, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(browse, "PAGE_BYTES", page_bytes)
    shop.broker.create_topic("plain", 3)
    for number in range(150):
        record = LogRecord(b"k", b"x" * 100, number * 1_000)
        shop.broker.append("plain", [record], partition=number % 3 if number < 60 else 0)
    for asked, end in (({"after": "0:0,1:0,2:0"}, "next"), (dict[str, str](), "previous")):
        seen, pages, step = list[int](), 0, "after" if end == "next" else "before"
        page = client.get("/topics/plain/records", params={"limit": 1_000, **asked}).json()
        assert 0 < len(page["records"]) < 150
        while True:
            seen = seen + numbers(page) if end == "next" else numbers(page) + seen
            pages += 1
            if page["at_end"] or pages > 150:
                break
            page = client.get("/topics/plain/records", params={"limit": 1_000, step: page[end]}).json()
        assert seen == list(range(150))


def test_records_of_a_key_are_searched_in_its_partition_or_in_one_that_is_named(
    client: httpx.Client, shop: Play
) -> None:
    fill(shop, 40, partitions=1)
    page = client.get("/topics/plain/records", params={"key": "k3"}).json()
    assert (numbers(page), page["at_end"], page["searched"]) == ([3, 13, 23, 33], True, 40)
    assert numbers(client.get("/topics/plain/records", params={"key": "k3", "partition": 0}).json()) == [3, 13, 23, 33]
    assert client.get("/topics/plain/records", params={"key": "no"}).json()["records"] == []
    seen, params = list[int](), {"key": "k3", "limit": "1"}
    for _ in range(4):
        page = client.get("/topics/plain/records", params=params).json()
        seen, params = numbers(page) + seen, {**params, "before": page["previous"]}
    assert seen == [3, 13, 23, 33]


def test_one_record_can_be_read_whole(client: httpx.Client, shop: Play) -> None:
    shop.broker.create_topic("plain")
    long, headers = b"x" * 10_000, (("trace", b"1"), ("raw", b"\xff"), ("none", None))
    shop.broker.append("plain", [LogRecord(b"\x00\xff", long, 5, headers), LogRecord(None, None, 6)])  # type: ignore[arg-type]
    first, second = client.get("/topics/plain/records").json()["records"]
    assert len(first["value"]) < 5_000 and first["value_bytes"] == 10_000
    assert first["headers"] == [["trace", "1"], ["raw", "0xff"], ["none", None]]
    assert (second["key"], second["value"]) == (None, None)
    params: dict[str, Any] = {"after": "0:0", "limit": 1, "whole": True}
    (whole,) = client.get("/topics/plain/records", params=params).json()["records"]
    assert whole["value"] == "x" * 10_000 and whole["key_base64"] == "AP8="


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"partition": 9}, 404), ({"after": "x"}, 400), ({"after": "0:99"}, 400), ({"at": "noon"}, 400),
        ({"limit": 0}, 400), ({"limit": 5_000}, 400), ({"limit": 11, "whole": True}, 400),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_read_is_refused(
    client: httpx.Client, shop: Play, params: dict[str, Any], status: int
) -> None:
    fill(shop, 3)
    answer = client.get("/topics/plain/records", params=params)
    assert answer.status_code == status and answer.json()["hint"]
