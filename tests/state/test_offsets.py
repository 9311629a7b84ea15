"""The position of a query in its source topics."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.state.offsets import Offsets

ends_of_topics = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.integers(0, 4), st.integers(0, 100), min_size=1), min_size=1
)


def moved(before: Offsets, after: Offsets) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): offset - before.topics.get(topic, {}).get(partition, 0)
        for topic, parts in after.topics.items()
        for partition, offset in parts.items()
    }


def test_a_batch_reads_everything_within_the_limit() -> None:
    further = Offsets({"a": {0: 5}}).advance({"a": {0: 7, 1: 3}}, 5)
    assert further.topics == {"a": {0: 7, 1: 3}}


def test_a_limit_is_split_in_proportion() -> None:
    assert Offsets().advance({"a": {0: 900, 1: 100}}, 100).topics == {"a": {0: 90, 1: 10}}


def test_a_small_partition_is_not_starved() -> None:
    assert Offsets().advance({"a": {0: 10_000, 1: 1}}, 10).topics["a"][1] == 1


def test_a_limit_of_one_moves_one_record() -> None:
    before = Offsets()
    after = before.advance({"a": {0: 3}, "b": {0: 3}}, 1)
    assert sum(moved(before, after).values()) == 1


@given(ends_of_topics, ends_of_topics, st.integers(1, 60))
def test_offsets_advance_within_the_ends_and_the_limit(
    start: dict[str, dict[int, int]], ends: dict[str, dict[int, int]], limit: int
) -> None:
    before = Offsets(start)
    after = before.advance(ends, limit)
    steps = moved(before, after)
    waiting = before.pending(ends)
    assert min(steps.values()) >= 0
    assert sum(steps.values()) <= limit
    assert (sum(steps.values()) > 0) is (waiting > 0)
    assert all(
        after.topics[t][p] <= max(ends.get(t, {}).get(p, 0), before.topics.get(t, {}).get(p, 0)) for t, p in steps
    )


@given(ends_of_topics, st.integers(1, 60))
def test_repeated_advances_reach_the_end(ends: dict[str, dict[int, int]], limit: int) -> None:
    offsets = Offsets().advance(ends, limit)
    while offsets.pending(ends):
        offsets = offsets.advance(ends, limit)
    assert offsets.topics == ends


def test_empty_partitions_are_listed() -> None:
    assert Offsets().advance({"a": {0: 0, 1: 2}}, 10).topics == {"a": {0: 0, 1: 2}}


@given(ends_of_topics, st.integers(0, 9), st.sets(st.tuples(st.sampled_from("ab"), st.integers(0, 11))))
def test_json_round_trips(topics: dict[str, dict[int, int]], empty_batches: int, idle: set[tuple[str, int]]) -> None:
    offsets = Offsets(topics, empty_batches, frozenset(idle))
    assert Offsets.of_json(json.loads(json.dumps(offsets.to_json()))) == offsets


def test_equal_offsets_have_equal_text_whatever_their_order() -> None:
    one = Offsets({"b": {1: 2, 10: 3}, "a": {0: 1}}, 1, frozenset({("b", 1), ("a", 0)}))
    two = Offsets({"a": {0: 1}, "b": {10: 3, 1: 2}}, 1, frozenset({("a", 0), ("b", 1)}))
    assert json.dumps(one.to_json()) == json.dumps(two.to_json())


@pytest.mark.parametrize(
    ("end", "reached"),
    [
        (Offsets({"a": {0: 5}}, 2), True),
        (Offsets({"a": {0: 4}}, 1), True),
        (Offsets({"a": {0: 6}}, 2), False),
        (Offsets({"a": {0: 5}}, 3), False),
        (Offsets({"a": {0: 5}, "b": {0: 1}}, 2), False),
        (Offsets({"a": {0: 5}, "b": {0: 0}}, 2), True),
    ],
)
def test_an_end_is_reached_in_all_partitions(end: Offsets, reached: bool) -> None:
    assert Offsets({"a": {0: 5}}, 2).reached(end) is reached


def test_pending_records_are_counted_over_all_partitions() -> None:
    assert Offsets({"a": {0: 5}}).pending({"a": {0: 7, 1: 3}, "b": {0: 1}}) == 6
