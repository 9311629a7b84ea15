"""Bad input: a clear error or a dead letter for each, and the good records go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder, minutes, tumbling
from potok.errors import PotokError
from potok.log.errors import CorruptSegment
from potok.testing import TestDriver

pytestmark = pytest.mark.spark


def counting(value: Any = "user string, amount double not null") -> StreamsBuilder:
    builder = StreamsBuilder("bad-input")
    by_user = builder.stream("orders", value=value).group_by("user")
    by_user.count(name="counts")
    by_user.sum("amount", name="totals")
    return builder


GOOD = {"user": "ann", "amount": 1.0}


def test_what_does_not_decode_is_set_aside_with_its_bytes_and_the_rest_counts(spark: Any) -> None:
    bad = {
        b"{broken": "not valid JSON",
        b'{"user": "ann", "amount": "abc"}': "amount",
        b'{"user": "ann"}': "amount",
        b'{"user": "\xff", "amount": 1}': "UTF-8",
        b"[" * 20_000 + b"]" * 20_000: "",
        b'{"user": "a", "amount": 1}{"user": "b", "amount": 2}': "",
        b"": "",
        b"17": "",
    }
    with TestDriver(counting()) as driver:
        for value in bad:
            driver.send("orders", GOOD)
            driver.send("orders", value)
        driver.run()

        letters = driver.dead_letters()
        assert [letter.value for letter in letters] == list(bad)
        for letter, (value, word) in zip(letters, bad.items(), strict=True):
            assert (letter.reason, letter.step) == ("decode", "orders"), value
            assert word in letter.error
        assert [letter.offset for letter in letters] == [2 * n + 1 for n in range(len(bad))]
        assert driver.table("counts").all() == {"ann": len(bad)}


def test_a_value_of_ten_megabytes_goes_through(spark: Any) -> None:
    builder = StreamsBuilder("large")
    builder.stream("orders", value="user string, note string").filter(lambda v: v["user"] == "ann").to("copy")
    note = "x" * 10_000_000
    with TestDriver(builder) as driver:
        driver.send("orders", {"user": "ann", "note": note})
        driver.run()
        [record] = driver.read("copy")
        assert record.value["note"] == note


def test_an_empty_topic_and_one_that_did_not_exist_give_empty_tables(spark: Any) -> None:
    with TestDriver(counting()) as driver:
        assert driver.run() == 0
        assert driver.table("counts").all() == {}


@pytest.mark.parametrize("value", [None, "user string, amount double"], ids=["dynamic", "typed"])
def test_a_lambda_that_raises_sets_the_record_aside_on_that_path_alone(spark: Any, value: Any) -> None:
    builder = StreamsBuilder("raising")
    orders = builder.stream("orders", value=value)
    orders.map_values(lambda v: 10 / v["amount"], name="divide").to("divided")
    orders.group_by("user").count(name="counts")
    with TestDriver(builder) as driver:
        driver.send("orders", {"user": "ann", "amount": 2.0})
        driver.send("orders", {"user": "bob", "amount": 0.0})
        driver.run()

        assert [record.value for record in driver.read("divided")] == [5.0]
        [letter] = driver.dead_letters()
        assert (letter.step, letter.reason, letter.offset) == ("divide", "error", 1)
        assert "ZeroDivisionError" in letter.error
        assert driver.table("counts").all() == {"ann": 1, "bob": 1}


def test_a_record_without_a_key_where_one_is_needed_is_set_aside(spark: Any) -> None:
    builder = StreamsBuilder("keys")
    builder.stream("orders").group_by_key().count(name="counts")
    with TestDriver(builder) as driver:
        driver.send("orders", GOOD, key="ann")
        driver.send("orders", GOOD)
        driver.run()
        assert driver.table("counts").all() == {"ann": 1}
        assert [(letter.reason, letter.offset) for letter in driver.dead_letters()] == [("no key", 1)]


def test_a_late_record_is_set_aside_with_its_window_and_lateness(spark: Any) -> None:
    builder = StreamsBuilder("late")
    windows = builder.stream("orders").group_by_key().windowed_by(tumbling(minutes(1), grace=minutes(1)))
    windows.count(name="counts")
    with TestDriver(builder) as driver:
        for at in (10_000, 70_000, 20_000, 130_000, 30_000):
            driver.send("orders", GOOD, key="ann", timestamp=at)
        driver.run()
        assert driver.table("counts").all() == {
            ("ann", 0, 60_000): 2,
            ("ann", 60_000, 120_000): 1,
            ("ann", 120_000, 180_000): 1,
        }
        [letter] = driver.dead_letters()
        assert (letter.reason, letter.offset, letter.step) == ("late", 4, "counts")
        assert "[0, 60000)" in letter.error
        assert "10000 ms" in letter.error


def test_a_record_whose_time_cannot_be_read_is_set_aside(spark: Any) -> None:
    builder = StreamsBuilder("times")
    builder.stream("orders", timestamp="at").to("copy")
    with TestDriver(builder) as driver:
        driver.send("orders", {"at": "2024-01-15T10:30:00Z"})
        driver.send("orders", {"at": "yesterday"})
        driver.send("orders", {})
        driver.run()
        [record] = driver.read("copy")
        assert record.timestamp_ms == 1_705_314_600_000
        assert [letter.reason for letter in driver.dead_letters()] == ["timestamp", "timestamp"]


def test_a_corrupt_segment_stops_the_query_with_its_position(spark: Any, tmp_path: Path) -> None:
    with TestDriver(counting(), directory=tmp_path) as driver:
        driver.send("orders", GOOD)
        [segment] = [
            path for path in (tmp_path / "log" / "topics").rglob("*") if path.is_file() and path.stat().st_size > 50
        ]
        data = bytearray(segment.read_bytes())
        data[-3] ^= 0xFF
        segment.write_bytes(bytes(data))
        with pytest.raises(PotokError) as caught:
            driver.run()
        assert isinstance(caught.value, CorruptSegment)
        assert str(segment.name) in str(caught.value)
        assert driver.table("counts").all() == {}
