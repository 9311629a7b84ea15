"""Sums that 64 bits cannot hold: the records that make one overflow are set aside, and the query goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.operators.core.dead_letters import Reason
from potok.topology.nodes.windows import hopping, tumbling

MOST = (1 << 63) - 1
HALF = 1 << 62

Make = Callable[[GroupedStream], Any]


def run(
    make: Make, rows: list[tuple[str, int]], batch_records: int | None = None, **options: Any
) -> tuple[dict[Any, Any], list[int]]:
    """The rows of table "made" in the end, and the offsets of the dead letters."""
    builder = StreamsBuilder("q")
    make(builder.stream("t", value="n bigint").group_by_key())
    with InProcess(builder, **options) as driver:
        for key, value in rows:
            driver.send("t", {"n": value}, key, timestamp=1)
        driver.run(batch_records)
        letters = driver.dead_letters()
        assert {(letter.step, letter.reason) for letter in letters} <= {("made", Reason.ERROR.value)}
        return driver.table("made").all(), [letter.offset for letter in letters]


ROWS = [("a", HALF), ("b", 5), ("a", HALF - 1), ("a", 1), ("b", 6), ("a", 8)]


@pytest.mark.parametrize("batch_records", [None, 1, 3])
@pytest.mark.parametrize("spread", [False, True])
def test_the_record_that_overflows_is_set_aside_and_the_others_count(batch_records: int | None, spread: bool) -> None:
    found = run(lambda grouped: grouped.sum("n", name="made"), ROWS, batch_records, spread=spread)
    assert found == ({"a": MOST, "b": 11}, [3, 5])


@pytest.mark.parametrize("batch_records", [None, 1, 2, 3])
def test_the_sum_is_that_of_the_records_that_were_not_set_aside(batch_records: int | None) -> None:
    values = [MOST, 1, -5, 7, -MOST, -MOST, -3, HALF, MOST, -1]
    made, offsets = run(lambda grouped: grouped.sum("n", name="made"), [("a", n) for n in values], batch_records)
    assert made["a"] == sum(value for offset, value in enumerate(values) if offset not in offsets)


def test_a_sum_may_overflow_below_zero_too() -> None:
    rows = [("a", -MOST), ("a", -1), ("a", -1)]
    assert run(lambda grouped: grouped.sum("n", name="made"), rows) == ({"a": -MOST - 1}, [2])


def test_a_batch_alone_may_hold_more_than_64_bits_if_the_sum_does_not() -> None:
    rows = [("a", -MOST), ("a", MOST), ("a", MOST)]
    builder = StreamsBuilder("q")
    builder.stream("t", value="n bigint").group_by_key().sum("n", name="made")
    with InProcess(builder) as driver:
        for number, (key, value) in enumerate(rows):
            driver.send("t", {"n": value}, key, timestamp=1)
            if number == 0:
                driver.run()
        driver.run()
        assert driver.table("made").all() == {"a": MOST}
        assert driver.dead_letters() == []


@pytest.mark.parametrize("batch_records", [None, 1])
def test_other_slots_of_the_aggregate_leave_the_record_out_too(batch_records: int | None) -> None:
    def make(grouped: GroupedStream) -> Any:
        return grouped.aggregate(
            {"n": 0, "total": 10}, lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["n"]}, name="made"
        )

    rows = [("a", HALF), ("a", HALF), ("a", 1)]
    assert run(make, rows, batch_records) == ({"a": {"n": 2, "total": HALF + 11}}, [1])


def test_a_mean_leaves_out_what_its_sum_cannot_take() -> None:
    rows = [("a", MOST), ("a", MOST), ("b", 4)]
    assert run(lambda grouped: grouped.avg("n", name="made"), rows) == ({"a": float(MOST), "b": 4.0}, [1])


def test_a_window_sets_aside_its_own_records_only() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t", value="n bigint").group_by_key()
    grouped.windowed_by(tumbling("10 ms")).sum("n", name="made")
    with InProcess(builder) as driver:
        for at in (1, 2, 11):
            driver.send("t", {"n": MOST}, "a", timestamp=at)
        driver.run()
        assert [value for _, value in driver.table("made").windows("a")] == [MOST, MOST]
        assert [letter.offset for letter in driver.dead_letters()] == [1]


def test_a_record_that_overflows_in_several_windows_is_one_dead_letter() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t", value="n bigint").group_by_key()
    grouped.windowed_by(hopping("20 ms", "5 ms")).sum("n", name="made")
    with InProcess(builder) as driver:
        for at in (20, 31):
            driver.send("t", {"n": MOST}, "a", timestamp=at)
        driver.run()
        found = {key.start_ms: value for key, value in driver.table("made").windows("a")}
        assert found == dict.fromkeys(range(5, 35, 5), MOST)
        assert [letter.offset for letter in driver.dead_letters()] == [1]


def test_overflows_are_reported_with_both_operands() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t", value=int).group_by_key().sum(name="made")
    with InProcess(builder) as driver:
        for value in (MOST, 3):
            driver.send("t", value, "a", timestamp=1)
        driver.run()
        (letter,) = driver.dead_letters()
        assert f"{MOST} + 3 does not fit into 64 bits" in letter.error
        assert (letter.key, letter.value) == (b"a", b"3")


def test_nothing_of_the_attempt_that_overflowed_is_left_downstream() -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t", value="n bigint").group_by_key().sum("n", name="made")
    table.group_by(lambda k, v: "large" if v > 10 else "small").count(name="sizes")
    with InProcess(builder, shards=3, spread=True) as driver:
        for number in range(20):
            driver.send("t", {"n": number}, f"k{number}", timestamp=1)
        driver.run()
        for number in range(20):
            driver.send("t", {"n": MOST if number == 7 else 1}, f"k{number}", timestamp=1)
        driver.run()
        values = driver.table("made").all().values()
        assert driver.table("sizes").all() == {
            "large": sum(value > 10 for value in values),
            "small": sum(value <= 10 for value in values),
        }
        assert [letter.offset for letter in driver.dead_letters()] == [27]


def test_it_resumes_after_a_restart() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t", value=int).group_by_key().sum(name="made")
    with InProcess(builder) as driver:
        for value in (MOST, 1):
            driver.send("t", value, "a", timestamp=1)
        driver.run()
        driver.restart()
        for value in (-5, 9):
            driver.send("t", value, "a", timestamp=1)
        driver.run()
        assert driver.table("made").all() == {"a": MOST - 5}
        assert [letter.offset for letter in driver.dead_letters()] == [1, 3]


@pytest.mark.parametrize("batch_records", [None, 1])
def test_one_change_for_each_record_leaves_out_those_that_overflow(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("t", value="n bigint").group_by_key().sum("n", name="made", emit="each_record")
    table.to_stream().to("out")
    with InProcess(builder) as driver:
        for value in (HALF, HALF, -1, HALF):
            driver.send("t", {"n": value}, "a", timestamp=1)
        driver.run(batch_records)
        assert [row.value for row in driver.read("out")] == [HALF, HALF - 1, MOST]
        assert [letter.offset for letter in driver.dead_letters()] == [1]


def test_a_row_that_a_group_cannot_add_up_is_set_aside() -> None:
    builder = StreamsBuilder("q")
    table = builder.table("t", value="n bigint")
    table.group_by(lambda k, v: "all").sum("n", name="made")
    with InProcess(builder) as driver:
        for key, value in (("a", MOST), ("b", 5), ("c", -3)):
            driver.send("t", {"n": value}, key, timestamp=1)
            driver.run()
        assert driver.table("made").all() == {"all": MOST - 3}
        driver.send("t", None, "b", timestamp=2)
        driver.run()
        assert driver.table("made").all() == {"all": MOST - 3}
        assert driver.reasons() == [("made", "error")]
