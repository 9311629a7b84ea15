"""What the process of the source decides, from nothing but what is written beside the log."""

from __future__ import annotations

import pickle
import threading

import pytest

from engine.shared.by_hand import ByHand, counting, send
from potok import StreamsBuilder, minutes, tumbling
from potok.engine.shared.roll import Roll, roll_mark
from potok.engine.shared.shared_planner import SharedPlanner
from potok.engine.shared.shares import Shares
from potok.records.log_record import LogRecord
from potok.state.entry import mark_of


def planner(shared: ByHand, max_records: int = 1_000_000) -> SharedPlanner:
    """As it arrives in the other process."""
    made = SharedPlanner(shared.broker, shared.name, 30_000, max_records)
    found: SharedPlanner = pickle.loads(pickle.dumps(made))
    return found


def test_nobody_has_anything_to_do_at_first(shared: ByHand) -> None:
    assert planner(shared).next() == Shares()


def test_members_without_records_are_left_out(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.add(counting("idle", "nothing"))
    found = planner(shared).next()
    assert sorted(found.shares) == ["one"]
    assert sum(found.shares["one"].end.topics["orders"].values()) == 10


def test_nothing_new_is_the_last_decision_again(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    asked = planner(shared)
    assert shared.settle() == 1
    assert asked.next() == Shares()
    send(shared.broker, 10)
    first = asked.next()
    shared.settle()
    assert asked.next() is first


def test_a_member_that_is_far_behind_leaves_room_for_the_others(shared: ByHand) -> None:
    send(shared.broker, 9_000)
    shared.add(counting("abreast"), begin="latest")
    shared.add(counting("behind"))
    send(shared.broker, 100)
    shared.broker.set_marks({mark_of("behind", "pace"): b"4000"})
    found = planner(shared).next().shares
    assert sum(found["behind"].end.topics["orders"].values()) == pytest.approx(2_000, abs=2)
    assert sum(found["abreast"].end.topics["orders"].values()) == 9_100


def test_a_topic_that_is_gone_is_the_trouble_of_its_reader_alone(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.add(counting("lost", "gone"))
    shared.broker.delete_topic("gone")
    found = planner(shared).next()
    assert (sorted(found.shares), found.in_trouble) == (["one"], ("lost",))


def test_a_member_with_windows_gets_a_tick_when_its_clock_has_passed_an_end(shared: ByHand) -> None:
    builder = StreamsBuilder("windowed")
    orders = builder.stream("orders", value="user string, amount bigint")
    windowed = orders.group_by("user").windowed_by(tumbling(minutes(1), grace=minutes(0), retention=minutes(1)))
    windowed.count(name="counts").emit_final().to_stream().to("closed")
    shared.add(builder)
    for at_ms in (1_000, 500_000):
        shared.broker.append("orders", [LogRecord(b"k", b'{"user": "u", "amount": 1}', at_ms)])
        shared.settle()
    assert shared.broker.end_offsets("closed") == {0: 1}


def test_a_wait_ends_when_somebody_comes(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = planner(shared)
    looks: list[int] = []
    came = threading.Event()
    look = SharedPlanner._look

    def note(self: SharedPlanner) -> object:
        looks.append(1)
        if len(looks) == 3:
            roll = Roll({"one": member.listed()}, {})
            shared.broker.set_marks({roll_mark(shared.name): roll.to_bytes()})
            came.set()
        return look(self)

    shared.add(counting("one"))
    member = shared._members["one"]
    shared.remove("one")
    monkeypatch.setattr(SharedPlanner, "_look", note)
    asked.wait_for_records(600)
    assert came.is_set()
    assert len(looks) == 3
