"""What the next batch of a group is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from potok import StreamsBuilder, minutes, tumbling
from potok.records.log_record import LogRecord
from potok.runtime.planning.group_planner import GroupPlanner, Planned
from runtime.queries.by_hand import ByHand, counting, send


def planned(group: ByHand) -> Planned:
    return GroupPlanner(group.broker).plan(group._queries.values())


def test_nothing_is_planned_without_queries(shared: ByHand) -> None:
    assert planned(shared) == Planned()


def test_queries_without_records_are_idle(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.add(counting("idle", "nothing"))
    found = planned(shared)
    assert (sorted(found.ends), found.idle) == (["one"], ["idle"])
    assert sum(found.ends["one"].topics["orders"].values()) == 10


def test_the_ends_of_topics_are_read_once_for_all_queries(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []
    read = shared.broker.end_offsets_of

    def note(topics: Any) -> Any:
        reads.append(list(topics))
        return read(topics)

    send(shared.broker, 10)
    send(shared.broker, 10, "others")
    for name, topic in (("one", "orders"), ("two", "orders"), ("three", "others")):
        shared.add(counting(name, topic))
    monkeypatch.setattr(shared.broker, "end_offsets_of", note)
    assert len(planned(shared).ends) == 3
    assert reads == [["orders", "others"]]


def test_a_query_that_is_far_behind_leaves_room_for_the_others(shared: ByHand) -> None:
    send(shared.broker, 9_000)
    shared.add(counting("abreast"), start="latest")
    shared.add(counting("behind"))
    send(shared.broker, 100)
    pace = shared._queries["behind"].runner.pace
    assert pace is not None
    pace.next = 4_000
    found = planned(shared).ends
    assert sum(found["behind"].topics["orders"].values()) == pytest.approx(2_000, abs=2)
    assert sum(found["abreast"].topics["orders"].values()) == 9_100


def test_a_topic_that_is_gone_fails_its_reader_alone(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.add(counting("lost", "gone"))
    shared.broker.delete_topic("gone")
    found = planned(shared)
    assert (sorted(found.ends), sorted(found.failed)) == (["one"], ["lost"])


def test_a_query_with_windows_gets_a_batch_without_records_when_a_window_has_ended(shared: ByHand) -> None:
    builder = StreamsBuilder("windowed")
    orders = builder.stream("orders", value="user string, amount bigint")
    windowed = orders.group_by("user").windowed_by(tumbling(minutes(1), grace=minutes(0), retention=minutes(1)))
    windowed.count(name="counts").emit_final().to_stream().to("closed")
    shared.add(builder)
    for at_ms in (1_000, 500_000):
        shared.broker.append("orders", [LogRecord(b"k", b'{"user": "u", "amount": 1}', at_ms)])
        shared.settle()
    assert shared.broker.end_offsets("closed") == {0: 1}


@pytest.mark.parametrize("event", ["records", "change"])
def test_a_wait_ends_when_a_topic_grows_or_something_changes(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setattr("potok.runtime.planning.group_planner.PLAN_EVERY_S", 600.0)
    shared.add(counting("one"))
    planner, changed, looks = GroupPlanner(shared.broker), threading.Event(), list[int]()
    planner.plan(shared._queries.values())
    version = shared.broker.version

    def look() -> int | None:
        looks.append(1)
        if len(looks) == 3:
            if event == "records":
                send(shared.broker, 1)
            else:
                changed.set()
        return version()

    monkeypatch.setattr(shared.broker, "version", look)
    planner.wait(shared._queries.values(), changed)
    assert len(looks) == 3


def test_ends_are_not_read_again_while_the_log_does_not_change(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()
    planner, changed, reads = GroupPlanner(shared.broker), threading.Event(), []
    planner.plan(shared._queries.values())
    read = shared.broker.end_offsets_of
    monkeypatch.setattr(shared.broker, "end_offsets_of", lambda topics: reads.append(topics) or read(topics))
    planner.wait(shared._queries.values(), changed)
    assert reads == []
    send(shared.broker, 1)
    planner.wait(shared._queries.values(), changed)
    assert reads == [["orders"]]


def test_a_log_without_versions_is_polled(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.add(counting("one"))
    shared.settle()
    monkeypatch.setattr(shared.broker, "version", lambda: None)
    planner, reads = GroupPlanner(shared.broker), []
    planner.plan(shared._queries.values())
    read = shared.broker.end_offsets_of
    monkeypatch.setattr(shared.broker, "end_offsets_of", lambda topics: reads.append(topics) or read(topics))
    planner.wait(shared._queries.values(), threading.Event())
    assert reads


def test_a_record_of_a_log_with_versions_ends_the_wait_at_once(shared: ByHand) -> None:
    shared.add(counting("one"))
    shared.settle()
    planner = GroupPlanner(shared.broker)
    planner._plan_s = 3_600.0
    planner.plan(shared._queries.values())
    planner._plan_s = 3_600.0
    send(shared.broker, 1)
    planner.wait(shared._queries.values(), threading.Event())
    assert list(planner.plan(shared._queries.values()).ends) == ["one"]
