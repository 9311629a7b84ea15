"""The buffer in memory: its bounds, its policies, and that every record is accounted for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.records.log_record import LogRecord
from potok.sources import Overload, spool
from potok.sources import buffer as buffers
from potok.sources.arrival import Arrival
from potok.sources.buffer import Buffer
from potok.sources.counters import Counters
from potok.sources.overload import WhenFull


@pytest.fixture(autouse=True, scope="module")
def hardly_any_memory() -> Iterator[None]:
    """Let a buffer on disk use it soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "IN_MEMORY", 20)
        patch.setattr(spool, "SEGMENT_BYTES", 2_000)
        yield


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(1, 4), st.integers(0, 30)),
        st.tuples(st.just("take"), st.integers(1, 6), st.just(0)),
        st.tuples(st.just("land"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("lose"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("later"), st.integers(1, 2_000), st.just(0)),
    ),
    max_size=60,
)


def arrival(count: int, size: int, reported: list[str | None] | None = None) -> Arrival:
    found = Arrival.of([LogRecord(None, b"x" * size)] * count)
    if reported is not None:
        found.done = reported.append
    return found


@given(
    STEPS, st.sampled_from(get_args(WhenFull)), st.integers(1, 12), st.booleans(), st.sampled_from(["memory", "disk"])
)
def test_every_received_record_landed_is_lost_or_is_buffered(
    steps: list[tuple[str, int, int]], policy: WhenFull, most: int, ages: bool, kind: Any
) -> None:
    clock = [0.0]
    overload = Overload(buffer=kind, max_records=most, max_bytes=100, max_age="1 s" if ages else None, when_full=policy)
    counters = Counters()
    buffer = Buffer(overload, counters, lambda: clock[0])
    taken: list[Arrival] = []
    accepted = offered = 0
    answers: list[str | None] = []
    for step, number, size in steps:
        if step == "offer":
            each = arrival(number, size, answers)
            each.at_s = clock[0]
            offered += 1
            accepted += number if buffer.offer(each) else 0
        elif step == "take":
            taken += buffer.take(number, 50, 0.0)
        elif step in ("land", "lose") and taken:
            buffer.settle([taken.pop(number % len(taken))], None if step == "land" else "stopped")
        elif step == "later":
            clock[0] += number / 1000
        counts = counters.read()
        assert counts.received == accepted
        assert counts.received == counts.landed + sum(counts.lost.values()) + counts.buffered
        assert counts.buffered >= sum(map(len, taken))
        if policy != "block" and all(len(each) <= most for each in taken):
            assert counts.buffered <= max(most, 4)
    assert len(answers) <= offered


def test_the_newest_or_the_oldest_record_is_dropped_and_its_sender_notified() -> None:
    for policy, dropped in (("drop_newest", 2), ("drop_oldest", 0)):
        counters = Counters()
        buffer = Buffer(Overload(max_records=2, when_full=policy), counters)
        reported: list[list[str | None]] = [[], [], []]
        assert all(buffer.offer(arrival(1, 1, each)) for each in reported)
        assert [number for number, each in enumerate(reported) if each] == [dropped]
        assert reported[dropped] == [f"dropped_{policy.removeprefix('drop_')}"]
        assert counters.read().lost == {f"dropped_{policy.removeprefix('drop_')}": 1}


def test_an_arrival_larger_than_the_buffer_is_accepted_when_it_is_empty() -> None:
    buffer = Buffer(Overload(max_records=2), Counters())
    assert buffer.offer(arrival(5, 1))
    assert not buffer.offer(arrival(1, 1))


def test_records_that_were_taken_take_up_room_until_they_are_settled() -> None:
    buffer = Buffer(Overload(max_records=1), Counters())
    buffer.offer(arrival(1, 1))
    [taken] = buffer.take(10, 10, 0.0)
    assert not buffer.offer(arrival(1, 1))
    buffer.settle([taken], None)
    assert buffer.offer(arrival(1, 1))


def test_put_waits_for_room_and_ends_when_the_buffer_is_closed() -> None:
    buffer = Buffer(Overload(max_records=1), Counters())
    buffer.offer(arrival(1, 1))
    results: list[bool] = []
    waiting = [threading.Thread(target=lambda: results.append(buffer.put(arrival(1, 1)))) for _ in range(2)]
    for thread in waiting:
        thread.start()
    [taken] = buffer.take(1, 10, 0.0)
    buffer.settle([taken], None)
    buffer.take(1, 10, 5.0)
    buffer.close()
    for thread in waiting:
        thread.join(10)
    assert sorted(results) == [False, True]


def test_a_buffer_on_disk_returns_what_it_got_in_order_and_keeps_little_in_memory() -> None:
    counters = Counters()
    buffer = Buffer(Overload(buffer="disk"), counters)
    sent = [LogRecord(b"k%d" % number, b"v%d" % number, number, (("h", b"x"),)) for number in range(1_000)]
    found: list[Any] = []
    for number, record in enumerate(sent):
        assert buffer.offer(Arrival.of([record]))
        assert buffer._in_memory <= 20
        if number % 3 == 0:
            found += buffer.take(2, 1_000, 0.0)
    while taken := buffer.take(7, 1_000, 0.0):
        found += taken
    rows = [row for each in found for row in each.columns().to_pylist()]
    assert [(row["key"], row["value"], row["timestamp"]) for row in rows] == [
        (record.key, record.value, record.timestamp_ms) for record in sent
    ]
    assert {row["headers"][0]["name"] for row in rows} == {"h"}
    assert sum(isinstance(each.records, list) for each in found) < 500, "most of them were on disk"


@pytest.mark.parametrize(("policy", "lost"), [("block", {}), ("drop_oldest", {"dropped_newest": 1})])
def test_a_full_disk_is_a_full_buffer(monkeypatch: pytest.MonkeyPatch, policy: Any, lost: dict[str, int]) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    counters = Counters()
    buffer = Buffer(Overload(buffer="disk", when_full=policy), counters)
    assert buffer.offer(arrival(1, 20))
    monkeypatch.setattr(spool.os, "pwrite", full)
    assert buffer.offer(arrival(1, 20)) is (policy != "block")
    assert (counters.read().lost, counters.read().buffered) == (lost, 1)


def test_a_full_disk_is_reported_once_until_it_has_room_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    buffer = Buffer(Overload(buffer="disk", when_full="block"), Counters())
    assert buffer.offer(arrival(1, 20))
    for reports in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(spool.os, "pwrite", full)
            assert not any(buffer.offer(arrival(1, 20)) for _ in range(3))
        assert len(caplog.records) == reports
        assert buffer.offer(arrival(1, 20))


def test_records_that_cannot_be_read_from_disk_are_lost_and_those_behind_them_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    counters = Counters()
    buffer = Buffer(Overload(buffer="disk"), counters)
    reported: list[list[str | None]] = [[] for _ in range(5)]
    for each in reported:
        assert buffer.offer(arrival(2, 20, each))
    assert len(buffer.take(2, 1_000, 0.0)) == 1
    for read in (failing, lambda *_: b"", lambda *_: b"\0" * 100):
        with monkeypatch.context() as patch:
            patch.setattr(spool.os, "pread", read)
            assert buffer.take(2, 1_000, 0.0) == []
    [last] = buffer.take(2, 1_000, 0.0)
    buffer.settle([last], None)
    counts = counters.read()
    assert (counts.lost, counts.landed, counts.buffered) == ({"unreadable": 6}, 2, 2)
    assert reported == [[], ["unreadable"], ["unreadable"], ["unreadable"], [None]]
    assert "2 records of a buffer cannot be read from disk" in caplog.text
