"""Which records of aligned topics a batch takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.planning.alignment import Aligner
from potok.state.entry import Entry
from potok.topology.alignment import AlignedTopics, aligned_topics
from potok.topology.execution_plan import make_plan

GROUP = AlignedTopics(frozenset({"s", "t"}), frozenset({"t"}))
PARTITIONS = [("s", 0), ("s", 1), ("t", 0)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    yield broker
    broker.close()


def fill(broker: Broker, times: dict[tuple[str, int], list[int]]) -> None:
    for topic in ("s", "t"):
        broker.create_topic(topic, 2 if topic == "s" else 1)
    for (topic, partition), stamps in times.items():
        if stamps:
            broker.append(topic, [LogRecord(b"k", b'{"at": %d}' % at, at) for at in stamps], partition)


def in_order(times: dict[tuple[str, int], list[int]]) -> list[tuple[str, int]]:
    """The partition of each record, oldest first by the greatest time so far; the table first of equal ones."""
    turns = []
    for (topic, partition), stamps in times.items():
        reached = [max(stamps[: offset + 1]) for offset in range(len(stamps))]
        turns += [(at, topic != "t", topic, partition, offset) for offset, at in enumerate(reached)]
    return [(topic, partition) for _, _, topic, partition, _ in sorted(turns)]


def batches(broker: Broker, aligner: Aligner, limit: int) -> list[dict[tuple[str, int], int]]:
    """How many records each batch takes of each partition, until nothing is left."""
    entry, found = Entry(), []
    ends = broker.end_offsets_of(["s", "t"])
    for _ in range(200):
        further = aligner.advance(entry, ends, limit)
        if further.topics == entry.offsets.topics or further.pending(ends) == entry.offsets.pending(ends):
            break
        before = entry.offsets.topics
        found.append({(t, p): further.topics[t][p] - before.get(t, {}).get(p, 0) for t, p in PARTITIONS})
        entry = Entry(offsets=further)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    times=st.fixed_dictionaries({place: st.lists(st.integers(0, 30), max_size=12) for place in PARTITIONS}),
    limit=st.integers(1, 15),
)
def test_batches_are_prefixes_of_the_order(
    tmp_path_factory: pytest.TempPathFactory, times: dict[tuple[str, int], list[int]], limit: int
) -> None:
    broker = EmbeddedBroker.shared(tmp_path_factory.mktemp("log"))
    fill(broker, times)
    expected, done = in_order(times), 0
    for taken in batches(broker, Aligner(broker, (GROUP,)), limit):
        size = sum(taken.values())
        assert 0 < size <= limit
        assert {place: expected[done : done + size].count(place) for place in PARTITIONS} == taken
        done += size
    assert done == len(expected)
    broker.close()


def test_a_partition_without_unread_records_holds_nothing_back(broker: EmbeddedBroker) -> None:
    fill(broker, {("s", 0): [5] * 10, ("t", 0): []})
    assert batches(broker, Aligner(broker, (GROUP,)), 4)[0] == {("s", 0): 4, ("s", 1): 0, ("t", 0): 0}


def test_times_that_come_from_values_decide_where_a_source_says_so(broker: EmbeddedBroker) -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("s", timestamp="at")
    stream.join(builder.table("t"), lambda s, t: [s, t]).to("out")
    plan = make_plan(builder.build(), 1)
    broker.create_topic("s", 2)
    broker.create_topic("t", 1)
    # The log got them a minute after the rows of the table, whose times lie between theirs.
    broker.append("s", [LogRecord(b"k", b'{"at": %d}' % at, 60_000) for at in (1, 2, 8, 9)], 0)
    broker.append("t", [LogRecord(b"k", b"1", at) for at in (5, 6)], 0)
    found = batches(broker, Aligner(broker, plan.aligned, plan), 2)
    assert [(taken["s", 0], taken["t", 0]) for taken in found] == [(2, 0), (0, 2), (2, 0)]


def test_topics_that_meet_are_aligned_and_others_are_not() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").join(builder.table("b"), lambda a, b: a).join(builder.table("c"), lambda a, c: a).to("x")
    builder.stream("d").merge(builder.stream("e")).to("y")
    builder.stream("f").to("z")
    found = aligned_topics(builder.build())
    assert found == (
        AlignedTopics(frozenset("abc"), frozenset("bc")),
        AlignedTopics(frozenset("de"), frozenset()),
    )
    assert tuple(AlignedTopics.of_json(group.to_json()) for group in found) == found


def test_topics_without_event_time_are_not_aligned() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a", timestamp="ingestion").merge(builder.stream("b")).to("x")
    assert [sorted(group.topics) for group in aligned_topics(builder.build())] == [["b"]]
