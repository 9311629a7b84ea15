from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.server.figures.panel import Panel
from potok.server.figures.query_feed import QueryFeed
from potok.testing import TestDriver
from potok.topology.nodes.windows import tumbling


class Clock:
    """A clock that a test sets."""

    now = 100_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(tmp_path)
    opened.create_topic("orders", 2)
    yield opened
    opened.close()


def commit(broker: Broker, **changes: Any) -> None:
    """Write down progress as the engine does."""
    progress = {
        "query": "shop", "state": "running", "error": "", "started_at_ms": 90_000, "committed_at_ms": 100_000,
        "batch": 1, "batch_ms": 400, "records_in": 0, "records_out": 0, "lag": 0, "total_in": 0, "total_out": 0,
        "dead_letters": 0, "dead_letters_by_reason": {}, "state_bytes": 0, "state_keys": {}, "offsets": {},
        "watermarks": {}, "steps": {},
    }  # fmt: skip
    broker.set_metadata({"query/shop/progress": json.dumps({**progress, **changes}).encode()})


def test_a_query_that_never_ran_is_starting(broker: Broker) -> None:
    feed = QueryFeed(broker, "shop", clock=Clock())

    assert feed.snapshot() == {"at": 100_000, "query": "shop", "state": "starting", "error": ""}
    assert feed.topology() == {"query": "shop", "nodes": [], "tables": [], "panels": []}


def test_before_its_first_record_a_query_is_starting(broker: Broker) -> None:
    commit(broker, state="starting", batch=0)

    assert QueryFeed(broker, "shop", clock=Clock()).snapshot()["state"] == "starting"


def test_a_query_that_is_ready_and_has_nothing_to_read_is_idle(broker: Broker) -> None:
    clock = Clock()
    feed = QueryFeed(broker, "shop", clock=clock)
    commit(broker, batch=0, offsets={"orders": {"0": 0, "1": 0}})
    snapshot = feed.snapshot()
    assert (snapshot["state"], snapshot["idle"]) == ("running", True)

    broker.append("orders", [LogRecord(b"k", b"v", 1)])
    assert not feed.snapshot()["idle"]
    ends = {"orders": {str(part): end for part, end in broker.end_offsets("orders").items()}}
    commit(broker, batch=1, offsets=ends, total_in=1, records_in=1, committed_at_ms=100_500)
    assert not feed.snapshot()["idle"]  # it has just read one
    clock.now = 900_000
    assert feed.snapshot()["idle"]
    commit(broker, batch=1, offsets=ends, total_in=1, state="stopped")
    assert not feed.snapshot()["idle"]


def test_a_query_that_is_started_again_is_not_up_before_it_reads(broker: Broker) -> None:
    commit(broker, state="starting", batch=0, total_in=50, started_at_ms=1)
    snapshot = QueryFeed(broker, "shop", clock=Clock()).snapshot()
    assert (snapshot["state"], snapshot["uptime_ms"]) == ("starting", 0)


def test_totals_times_and_state_are_those_of_the_last_commit(broker: Broker) -> None:
    commit(broker, batch=7, total_in=50, total_out=20, state_bytes=4_096, state_keys={"counts": 3, "totals": 2})

    snapshot = QueryFeed(broker, "shop", clock=Clock()).snapshot()

    assert (snapshot["batch"], snapshot["batch_ms"], snapshot["uptime_ms"]) == (7, 400, 10_000)
    assert (snapshot["total_in"], snapshot["total_out"]) == (50, 20)
    assert (snapshot["state_bytes"], snapshot["state_keys"]) == (4_096, 5)
    assert snapshot["tables"] == {"counts": 3, "totals": 2}


def test_rates_follow_the_commits(broker: Broker) -> None:
    clock = Clock()
    feed = QueryFeed(broker, "shop", clock=clock)
    commit(broker, total_in=1_000, total_out=100, steps={"filter": {"in": 1_000, "out": 100}})
    feed.snapshot()
    clock.now = 101_000
    commit(broker, committed_at_ms=101_000, total_in=4_000, total_out=400, steps={"filter": {"in": 4_000, "out": 400}})

    snapshot = feed.snapshot()

    assert (snapshot["rate_in"], snapshot["rate_out"]) == (3_000.0, 300.0)
    assert snapshot["steps"] == {"filter": {"in": 4_000, "out": 400, "late": 0, "rate": 300.0}}


def test_the_first_batch_that_is_seen_has_a_rate(broker: Broker) -> None:
    commit(broker, batch_ms=500, records_in=20, records_out=5, total_in=1_020, total_out=105)

    snapshot = QueryFeed(broker, "shop", clock=Clock()).snapshot()
    assert (snapshot["rate_in"], snapshot["rate_out"]) == (40.0, 10.0)


def test_a_stopped_query_has_no_rate_and_no_advancing_uptime(broker: Broker) -> None:
    clock = Clock()
    feed = QueryFeed(broker, "shop", clock=clock)
    commit(broker, total_in=1_000)
    feed.snapshot()
    commit(broker, committed_at_ms=101_000, total_in=2_000, state="stopped")
    clock.now = 900_000

    snapshot = feed.snapshot()

    assert (snapshot["state"], snapshot["rate_in"], snapshot["uptime_ms"]) == ("stopped", 0.0, 11_000)


def test_a_query_that_failed_says_why(broker: Broker) -> None:
    commit(broker, state="failed", error="the disk is full", total_in=1)

    snapshot = QueryFeed(broker, "shop", clock=Clock()).snapshot()

    assert (snapshot["state"], snapshot["error"]) == ("failed", "the disk is full")


def test_lag_grows_while_a_batch_hangs(broker: Broker) -> None:
    broker.append("orders", [LogRecord(None, b"{}", 1)] * 5, 0)
    commit(broker, total_in=2, offsets={"orders": {"0": 2, "1": 0}})
    feed = QueryFeed(broker, "shop", clock=Clock())
    assert feed.snapshot()["lag"] == 3

    broker.append("orders", [LogRecord(None, b"{}", 1)] * 4, 1)

    assert feed.snapshot()["lag"] == 7


def test_a_topic_that_was_deleted_does_not_break_the_page(broker: Broker) -> None:
    commit(broker, total_in=2, lag=9, offsets={"gone": {"0": 2}})

    assert QueryFeed(broker, "shop", clock=Clock()).snapshot()["lag"] == 9


def test_dead_letters_are_counted_by_reason_and_the_latest_are_shown(broker: Broker) -> None:
    broker.create_topic("shop-dead-letters")
    headers = (("potok.topic", b"orders"), ("potok.reason", b"late"), ("potok.step", b"hourly"))
    broker.append("shop-dead-letters", [LogRecord(b"k", b"{}", 1, headers)])
    commit(broker, total_in=10, dead_letters=1, dead_letters_by_reason={"late": 1})

    snapshot = QueryFeed(broker, "shop", clock=Clock()).snapshot()

    assert (snapshot["dead_letters"], snapshot["dead_letters_by_reason"]) == (1, {"late": 1})
    assert [letter["step"] for letter in snapshot["recent_dead_letters"]] == ["hourly"]
    assert snapshot["open_dead_letters"] == 1


def test_the_oldest_unread_record_gives_the_lag_in_time(broker: Broker) -> None:
    clock = Clock()
    feed = QueryFeed(broker, "shop", clock=clock)
    (first,) = broker.append("orders", [LogRecord(b"k", b"v", 1)], partition=0)
    broker.append("orders", [LogRecord(b"k", b"v", 2)], partition=0)
    commit(broker, offsets={"orders": {"0": first.first_offset, "1": 0}})
    (batch,) = broker.read("orders", 0, 0, 1)
    clock.now = batch.column("ingested")[0].as_py() + 5_000
    assert feed.figures()["lag_ms"] == 5_000

    commit(broker, offsets={"orders": {"0": 2, "1": 0}})
    assert (feed.figures()["lag"], feed.figures()["lag_ms"]) == (0, 0)


def test_the_watermark_is_that_of_the_step_that_is_furthest_behind(broker: Broker) -> None:
    commit(broker, watermarks={"hourly": 40_000, "daily": 30_000, "not started": -(1 << 62)})
    assert QueryFeed(broker, "shop", clock=Clock()).figures()["watermark_ms"] == 30_000


def test_panels_come_from_the_tables_of_the_query(spark: object, tmp_path: Path) -> None:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="user_id string, amount double")
    by_user = orders.group_by("user_id")
    by_user.count(name="counts")
    by_user.sum("amount", name="totals")
    by_user.windowed_by(tumbling("10 seconds")).sum("amount", name="sales")
    panels = [
        Panel("top", "totals", "Top users", beside=("counts", "orders")),
        Panel("series", "sales", "Sales"),
    ]
    with TestDriver(builder, directory=tmp_path) as driver:
        for user, amount, at in [("ann", 5.0, 1_000), ("bob", 7.0, 2_000), ("ann", 4.0, 12_000)]:
            driver.send("orders", {"user_id": user, "amount": amount}, timestamp=at)
        driver.run()
        feed = QueryFeed(driver.broker, "shop", panels=panels)

        ranked, drawn = feed.snapshot()["panels"]

        assert ranked["rows"] == [
            {"key": "ann", "value": 9.0, "beside": 2},
            {"key": "bob", "value": 7.0, "beside": 1},
        ]
        assert [(bar["start"], bar["parts"]) for bar in drawn["windows"]] == [
            (0, {"ann": 5.0, "bob": 7.0}),
            (10_000, {"ann": 4.0}),
        ]
        assert [node["label"] for node in feed.topology()["nodes"]] == [
            "orders",
            "group_by",
            "counts",
            "totals",
            "sales",
        ]
