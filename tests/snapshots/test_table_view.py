"""Read a table: rows, ranges, windows and history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import QueryError
from potok.snapshots.table_view import NotWindowed, WindowedKey
from potok.topology.nodes.windows import tumbling_ms


def counted(keys: list[Any], key: Any = str, *, shards: int = 3, window: Any = None) -> InProcess:
    """Return a driver that has counted these keys, at the times 0, 1, 2 and so on."""
    builder = StreamsBuilder("q")
    grouped = builder.stream("t", key=key).group_by_key()
    (grouped.windowed_by(window) if window else grouped).count(name="n")
    driver = InProcess(builder, shards=shards)
    for at, item in enumerate(keys):
        driver.send("t", 1, item, timestamp=at)
    driver.run()
    return driver


def grouped_by(keys: list[Any], window: Any = None) -> InProcess:
    """Do the same for keys without a type."""
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by(lambda v: v)
    (grouped.windowed_by(window) if window else grouped).count(name="n")
    driver = InProcess(builder, shards=3)
    for at, item in enumerate(keys):
        driver.send("t", item, "k", timestamp=at)
    driver.run()
    return driver


@pytest.fixture
def letters() -> Iterator[InProcess]:
    with counted(list("abcab")) as driver:
        yield driver


def test_a_row_is_found_by_its_key(letters: InProcess) -> None:
    table = letters.table("n")
    assert (table.get("a"), table.get("c"), table.get("z"), table.get("z", 0)) == (2, 1, None, 0)
    assert len(table) == 3 and dict(table.items()) == table.all()


def test_all_rows_are_in_key_order(letters: InProcess) -> None:
    assert list(letters.table("n").all().items()) == [("a", 2), ("b", 2), ("c", 1)]


@pytest.mark.parametrize(
    ("low", "high", "keys"),
    [("a", "c", "ab"), ("b", None, "bc"), (None, "b", "a"), (None, None, "abc"), ("x", "z", "")],
)
def test_a_range_includes_its_low_and_excludes_its_high(letters: InProcess, low: Any, high: Any, keys: str) -> None:
    assert list(letters.table("n").range(low, high)) == list(keys)


def test_the_key_none_is_rejected(letters: InProcess) -> None:
    with pytest.raises(QueryError):
        letters.table("n").get(None)


def test_a_key_of_another_type_is_rejected(letters: InProcess) -> None:
    with pytest.raises(Exception, match="string"):
        letters.table("n").get({"a": 1})


def test_windows_of_a_table_without_windows_are_an_error(letters: InProcess) -> None:
    with pytest.raises(NotWindowed):
        letters.table("n").windows("a")


@pytest.mark.parametrize("key", ["", "\x00", "ä", "k" * 458, "k" * 480, "k" * 481, "k" * 511, "k" * 3_000])
def test_a_key_of_any_length_is_found_and_listed(key: str) -> None:
    with counted([key, "other"]) as driver:
        assert driver.table("n").get(key) == 1
        assert driver.table("n").all() == {key: 1, "other": 1}


def test_the_empty_key_is_not_the_zero_byte() -> None:
    with counted(["", "", "\x00"]) as driver:
        assert driver.table("n").all() == {"": 2, "\x00": 1}


def test_numbers_sort_as_numbers() -> None:
    with counted([b"9", b"10", b"-5"], key=int) as driver:
        assert list(driver.table("n").all()) == [-5, 9, 10]
        assert list(driver.table("n").range(0, 10)) == [9]


def test_numbers_without_a_declared_type_sort_as_numbers_too() -> None:
    with grouped_by([9, 10, 2]) as driver:
        assert list(driver.table("n").range(2, 10)) == [2, 9]
        assert list(driver.table("n").all()) == [2, 9, 10]


@pytest.mark.parametrize("key", [1, "1", 2.5, True, [1, [2]], {"a": 1, "b": [2]}])
def test_a_key_of_any_type_is_found_and_listed_as_hashable(key: Any) -> None:
    with grouped_by([key]) as driver:
        assert driver.table("n").get(key) == 1
        assert len(driver.table("n").all()) == 1


WINDOW = tumbling_ms(10, 0, 1_000_000)


@pytest.fixture
def windowed() -> Iterator[InProcess]:
    with counted([*"a" * 12, "ab"], window=WINDOW) as driver:
        yield driver


def test_a_window_is_found_by_key_and_time(windowed: InProcess) -> None:
    table = windowed.table("n")
    assert table.windowed
    assert [table.get("a", at=at) for at in (0, 9, 10, 20)] == [10, 10, 2, None]
    assert table.get("a", at=datetime(1970, 1, 1, 0, 0, 0, 5_000, tzinfo=UTC)) == 10
    assert table.get("a", at=datetime(1970, 1, 1)) == 10
    assert table.get("a", 0, at=99) == 0


def test_without_a_time_the_latest_window_is_returned(windowed: InProcess) -> None:
    assert windowed.table("n").get("a") == 2
    assert windowed.table("n").get("zz", "none") == "none"


def test_the_windows_of_a_key_are_in_order_of_time(windowed: InProcess) -> None:
    first, second = (WindowedKey("a", 0, 10), 10), (WindowedKey("a", 10, 20), 2)
    assert windowed.table("n").windows("a") == [first, second]
    assert windowed.table("n").windows("a", 10) == [second]
    assert windowed.table("n").windows("a", 0, 10) == [first]
    assert windowed.table("n").windows("ab") == [(WindowedKey("ab", 10, 20), 1)]


def test_windows_are_listed_by_key_and_then_by_time(windowed: InProcess) -> None:
    assert [tuple(key) for key in windowed.table("n").all()] == [("a", 0, 10), ("a", 10, 20), ("ab", 10, 20)]


def test_a_range_of_a_windowed_table_is_a_range_of_keys(windowed: InProcess) -> None:
    assert {key.key for key in windowed.table("n").range("a", "ab")} == {"a"}
    assert {key.key for key in windowed.table("n").range("ab")} == {"ab"}


@pytest.mark.parametrize("length", [450, 473, 475, 600])
def test_the_windows_of_a_long_key_are_found(length: int) -> None:
    key = "k" * length
    with counted([key], window=WINDOW) as driver:
        assert driver.table("n").windows(key) == [(WindowedKey(key, 0, 10), 1)]
        assert driver.table("n").all() == {WindowedKey(key, 0, 10): 1}


@pytest.mark.parametrize("key", [{"a": 1}, [1, 2], 5])
def test_the_windows_of_a_key_of_any_type_are_found(key: Any) -> None:
    with grouped_by([key], WINDOW) as driver:
        assert [value for _, value in driver.table("n").windows(key)] == [1]
        assert driver.table("n").get(key) == 1


def test_rows_of_a_table_derived_from_windows_are_found_on_every_shard() -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t").group_by_key().windowed_by(WINDOW).count(name="n")
    table.filter(lambda v: v > 0, name="some")
    with InProcess(builder, shards=4) as driver:
        for key in "abcdefgh":
            driver.send("t", 1, key, timestamp=1)
        driver.run()
        some = driver.table("some")
        assert some.all() == driver.table("n").all()
        assert [some.get(key, at=1) for key in "abcdefgh"] == [1] * 8


def test_an_aggregate_that_is_null_is_a_row_and_a_deleted_row_is_not() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by_key()
    for kind in ("sum", "latest", "earliest", "max"):
        getattr(grouped, kind)(name=kind)
    builder.stream("u").select_key(lambda v: "k").map_values(lambda v: None).to_table(name="gone")
    with InProcess(builder) as driver:
        driver.send("t", None, "k", timestamp=1)
        driver.send("u", 1, "x", timestamp=1)
        driver.run()
        nothing = {"k": None}
        assert driver.tables.snapshot() == {
            "sum": nothing,
            "latest": nothing,
            "earliest": nothing,
            "max": nothing,
            "gone": {},
        }
