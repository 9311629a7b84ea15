"""The closing clock."""

from __future__ import annotations

from potok.dsl.builder import StreamsBuilder
from potok.operators.windows.expiry import NEVER
from potok.runtime.planning.watermark import advance_watermarks, empty_batch_due, watermark, windowed_steps
from potok.topology.nodes.windows import tumbling

PARTITIONS = {"a": {0: 5, 1: 5}, "b": {0: 5}}


def test_only_steps_with_windows_have_a_watermark() -> None:
    builder = StreamsBuilder("q")
    a, b = builder.stream("a"), builder.stream("b")
    a.group_by_key().count(name="plain")
    a.merge(b).group_by_key().windowed_by(tumbling(5)).count(name="both")
    b.group_by_key().windowed_by(tumbling(5)).count(name="one")
    assert windowed_steps(builder.build()) == {"both": {"a", "b"}, "one": {"b"}}


def test_the_slowest_partition_of_all_topics_decides() -> None:
    times = {"a": {0: 10, 1: 30}, "b": {0: 20}}
    assert watermark({"a", "b"}, PARTITIONS, times, frozenset()) == 10
    assert watermark({"b"}, PARTITIONS, times, frozenset()) == 20


def test_a_partition_without_records_holds_back_the_watermark() -> None:
    assert watermark({"a"}, PARTITIONS, {"a": {0: 10}}, frozenset()) == NEVER


def test_an_idle_partition_does_not() -> None:
    assert watermark({"a"}, PARTITIONS, {"a": {0: 10}}, frozenset({("a", 1)})) == 10


def test_of_idle_partitions_alone_the_furthest_decides() -> None:
    times = {"a": {0: 10, 1: 30}}
    assert watermark({"a"}, PARTITIONS, times, frozenset({("a", 0), ("a", 1)})) == 30


def test_without_partitions_there_is_no_stream_time() -> None:
    assert watermark({"c"}, PARTITIONS, {}, frozenset()) == NEVER


def test_a_watermark_never_goes_back() -> None:
    found = advance_watermarks({"w": {"a"}}, PARTITIONS, {"a": {0: 10, 1: 30}}, frozenset(), {"w": 25})
    assert found == {"w": 25}
    found = advance_watermarks({"w": {"a"}}, PARTITIONS, {"a": {0: 40, 1: 30}}, frozenset(), {"w": 25})
    assert found == {"w": 30}


def test_an_empty_batch_is_due_when_something_would_close() -> None:
    assert empty_batch_due({"w": 10}, {"w": 10})
    assert not empty_batch_due({"w": 9}, {"w": 10})
    assert not empty_batch_due({"w": 9}, {})
    assert not empty_batch_due({}, {"gone": 10})
    assert empty_batch_due({"v": 0, "w": 10}, {"v": 5, "w": 7})
