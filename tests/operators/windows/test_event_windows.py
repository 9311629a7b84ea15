"""Windows that follow the records of a key, for every aggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.snapshots.table_view import WindowedKey
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import Session, Sliding

Program = Callable[[Any], Any]
LATER: dict[str, Any] = {"grace_ms": 1_000, "retention_ms": 10_000}


def listed(grouped: Any) -> Any:
    return grouped.collect_list(name="w")


def windows(window: Session | Sliding, program: Program = listed, **options: Any) -> InProcess:
    builder = StreamsBuilder("q")
    program(builder.stream("t").group_by_key().windowed_by(window)).to_stream().to("out")
    return InProcess(builder, **options)


def session(gap: int, *, opens: Any = None, closes: Any = None, from_first: bool = False, **times: Any) -> Session:
    first, last = (None if test is None else Function.of(test, (1, 2)) for test in (opens, closes))
    return Session(gap, from_first, first, last, **(times or LATER))


def send(driver: InProcess, *records: tuple[int, Any], key: str = "k", partition: int | None = None) -> None:
    for at, value in records:
        driver.send("t", value, key, timestamp=at, partition=partition)


def rows(driver: InProcess, key: str = "k") -> list[tuple[int, int, Any]]:
    return [(window.start_ms, window.end_ms, value) for window, value in driver.table("w").windows(key)]


def changes(driver: InProcess) -> list[tuple[int, int, Any]]:
    return [(record.key["start"], record.key["end"], record.value) for record in driver.read("out")]


EVERY_WAY = pytest.mark.parametrize("batch_records", [None, 1, 2])


@EVERY_WAY
def test_records_are_folded_by_event_time_whatever_the_order_they_come_in(batch_records: int | None) -> None:
    with windows(session(10)) as driver:
        send(driver, (108, "c"), (100, "a"), (104, "b"), (104, "b2"))
        driver.run(batch_records)
        assert rows(driver) == [(100, 108, ["a", "b", "b2", "c"])]


def test_records_of_one_instant_are_folded_by_their_position() -> None:
    with windows(session(10), partitions={"t": 2}) as driver:
        send(driver, (100, "second"), partition=1)
        driver.run()
        send(driver, (100, "first"), partition=0)
        driver.run()
        assert rows(driver) == [(100, 100, ["first", "second"])]


@EVERY_WAY
def test_sessions_are_recomputed_when_an_earlier_record_arrives(batch_records: int | None) -> None:
    with windows(session(10, from_first=True)) as driver:
        send(driver, (105, "b"), (112, "c"), (116, "d"), (100, "a"))
        driver.run(batch_records)
        assert rows(driver) == [(100, 105, ["a", "b"]), (112, 116, ["c", "d"])]


def test_a_recomputed_session_emits_deletes_and_new_rows() -> None:
    with windows(session(10, from_first=True)) as driver:
        send(driver, (105, "b"), (112, "c"), (116, "d"))
        driver.run()
        send(driver, (100, "a"))
        driver.run()
        assert changes(driver)[2:] == [
            (105, 112, None),
            (116, 116, None),
            (100, 105, ["a", "b"]),
            (112, 116, ["c", "d"]),
        ]


@EVERY_WAY
def test_what_comes_outside_a_session_is_in_none_and_no_dead_letter(batch_records: int | None) -> None:
    with windows(session(10, opens=lambda v: v == "login")) as driver:
        send(driver, (100, "view"), (105, "login"), (110, "view"), (130, "view"))
        driver.run(batch_records)
        assert rows(driver) == [(105, 110, ["login", "view"])]
        assert driver.dead_letters() == []


@EVERY_WAY
def test_a_record_outside_a_session_is_taken_when_one_opens_before_it(batch_records: int | None) -> None:
    with windows(session(10, opens=lambda v: v == "login")) as driver:
        send(driver, (104, "view"), (100, "login"))
        driver.run(batch_records)
        assert rows(driver) == [(100, 104, ["login", "view"])]


@pytest.mark.parametrize(("opens_at", "found"), [(104, []), (106, [(106, 110, ["login", "view"])])])
def test_a_record_outside_a_session_waits_as_long_as_one_may_open_before_it(opens_at: int, found: Any) -> None:
    with windows(session(10, opens=lambda v: v == "login", retention_ms=1_000)) as driver:
        send(driver, (110, "view"))
        driver.run()
        send(driver, (115, "x"), key="other")
        driver.run()
        send(driver, (opens_at, "login"))
        driver.run()
        assert rows(driver) == found


def test_records_that_no_session_takes_are_forgotten() -> None:
    with windows(session(10, opens=lambda v: v == "login", retention_ms=10), shards=1) as driver:
        for at in range(100, 2_000, 50):
            send(driver, (at, "view"), key=f"k{at % 7}")
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        tables = ["w/open", "w/closing", "w/open/deleted", "w/closing/deleted"]
        sizes = {name: store.entries(name) for name in tables}
        assert max(sizes.values()) <= 5, sizes


@EVERY_WAY
def test_a_record_that_closes_ends_its_session(batch_records: int | None) -> None:
    with windows(session(10, closes=lambda v: v == "logout")) as driver:
        send(driver, (100, "a"), (103, "logout"), (105, "b"))
        driver.run(batch_records)
        assert rows(driver) == [(100, 103, ["a", "logout"]), (105, 105, ["b"])]


@EVERY_WAY
def test_a_record_that_closes_may_come_late_and_cut_a_session_in_two(batch_records: int | None) -> None:
    with windows(session(10, closes=lambda v: v == "logout")) as driver:
        send(driver, (100, "a"), (105, "b"), (103, "logout"))
        driver.run(batch_records)
        assert rows(driver) == [(100, 103, ["a", "logout"]), (105, 105, ["b"])]


def test_the_tests_for_opening_and_closing_see_key_and_value() -> None:
    with windows(session(10, opens=lambda k, v: k == "k", closes=lambda k, v: v["n"] > 1)) as driver:
        send(driver, (100, {"n": 1}), (101, {"n": 2}), (102, {"n": 1}))
        send(driver, (100, {"n": 1}), key="other")
        driver.run()
        assert [bounds[:2] for bounds in rows(driver)] == [(100, 101), (102, 102)]
        assert rows(driver, "other") == []


@EVERY_WAY
@pytest.mark.parametrize("test", ["opens", "closes"])
def test_a_record_for_which_a_test_raises_is_a_dead_letter(test: str, batch_records: int | None) -> None:
    with windows(session(10, **{test: lambda v: 6 / v > 0})) as driver:
        send(driver, (100, 1), (101, 0), (102, 2))
        driver.run(batch_records)
        assert driver.reasons() == [("w", "error")]
        assert [value for *_, values in rows(driver) for value in values] == [1, 2]


def divided(grouped: Any) -> Any:
    return grouped.aggregate(0, lambda k, v, agg: agg + 12 // v, name="w")


@EVERY_WAY
@pytest.mark.parametrize("window", [session(10), session(30, from_first=True)])
def test_a_record_whose_aggregator_raises_is_not_counted(window: Session, batch_records: int | None) -> None:
    with windows(window, divided) as driver:
        send(driver, (100, 3), (108, 0), (116, 4), (117, 0))
        driver.run(batch_records)
        whole = (100, 116, 7)
        assert rows(driver) == ([whole] if window.from_first else [(100, 100, 4), (116, 116, 3)])
        assert driver.reasons() == []
        driver.advance_to(108 + window.gap_ms + window.grace_ms)
        assert driver.reasons() == []
        driver.advance_to(108 + window.gap_ms + window.grace_ms + 1)
        assert [letter.offset for letter in driver.dead_letters()] == [1]
        driver.advance_to(10_000)
        assert driver.reasons() == [("w", "error")] * 2
        assert rows(driver) == ([whole] if window.from_first else [(100, 100, 4), (116, 116, 3)])


@EVERY_WAY
def test_what_a_record_that_fails_would_have_joined_stays_apart_also_after_a_restart(batch_records: int | None) -> None:
    with windows(session(10), divided) as driver:
        send(driver, (116, 4), (108, 0))
        driver.run(batch_records)
        driver.restart()
        send(driver, (100, 3))
        driver.run(batch_records)
        assert rows(driver) == [(100, 100, 4), (116, 116, 3)]
        driver.advance_to(5_000)
        assert [(letter.offset, letter.reason) for letter in driver.dead_letters()] == [(1, "error")]
        assert {(start, end): value for start, end, value in changes(driver)} == {(100, 100): 4, (116, 116): 3}


@EVERY_WAY
def test_a_record_that_no_session_took_in_the_end_was_never_folded(batch_records: int | None) -> None:
    window = session(10, opens=lambda v: v == 3, closes=lambda v: v == 4)
    with windows(window, divided) as driver:
        send(driver, (100, 3), (108, 0), (104, 4))
        driver.run(batch_records)
        driver.advance_to(5_000)
        assert rows(driver) == [(100, 104, 7)]
        assert driver.reasons() == []


@EVERY_WAY
def test_a_record_that_fails_in_one_sliding_window_is_in_none(batch_records: int | None) -> None:
    with windows(Sliding(5, **LATER), divided) as driver:
        send(driver, (100, 3), (102, 0), (104, 4))
        driver.run(batch_records)
        assert rows(driver) == [(95, 100, 4), (99, 104, 7), (101, 106, 3)]
        assert driver.reasons() == [("w", "error")]


def test_a_value_that_is_not_data_is_a_dead_letter() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("t").map_values(lambda v: object() if v == 1 else v)
    stream.group_by_key().windowed_by(session(10)).collect_list(name="w")
    with InProcess(builder) as driver:
        send(driver, (100, 1), (101, 2))
        driver.run()
        assert rows(driver) == [(101, 101, [2])]
        assert "cannot be stored" in driver.dead_letters()[0].error


def test_a_selector_sees_the_key_that_was_grouped_by() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t").group_by(lambda v: [v, "x"]).windowed_by(session(10))
    grouped.collect_list(lambda k, v: k[1], name="w")
    with InProcess(builder) as driver:
        send(driver, (100, 1))
        driver.run()
        assert list(driver.table("w").all().values()) == [["x"]]


@EVERY_WAY
def test_a_record_that_is_late_for_its_own_sliding_window_counts_in_those_that_are_open(
    batch_records: int | None,
) -> None:
    with windows(Sliding(5, retention_ms=1_000)) as driver:
        send(driver, (100, "a"), (105, "c"), (102, "b"), (99, "late"))
        driver.run(batch_records)
        assert rows(driver) == [
            (95, 100, ["a"]),
            (100, 105, ["a", "b", "c"]),
            (101, 106, ["b", "c"]),
            (103, 108, ["c"]),
        ]
        late, lost = driver.dead_letters()
        assert "window [97, 102] was closed" in late.error and "end at 105 or later" in late.error
        assert (lost.reason, lost.offset) == ("late", 3) and "counts" not in lost.error


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_record_is_kept_as_long_as_the_window_after_it_may_come(batch_records: int | None) -> None:
    with windows(Sliding(5, retention_ms=1_000)) as driver:
        send(driver, (110, "a"))
        send(driver, (116, "x"), key="other")
        driver.run(batch_records)
        send(driver, (114, "b"))
        driver.run()
        assert rows(driver) == [(105, 110, ["a"]), (111, 116, ["b"])]


def test_sliding_windows_close_and_are_dropped() -> None:
    with windows(Sliding(5, retention_ms=20), shards=1) as driver:
        for at in range(100, 1_000, 10):
            send(driver, (at, at))
            driver.run()
        assert [row[:2] for row in rows(driver)] == [(975, 980), (985, 990)]
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        tables = ["w", "w/open", "w/closing", "w/by_end"]
        sizes = {name: store.entries(name) for table in tables for name in (table, f"{table}/deleted")}
        assert max(sizes.values()) <= 16, sizes


@pytest.mark.parametrize("window", [session(10, from_first=True, retention_ms=20), Sliding(5, retention_ms=20)])
@pytest.mark.parametrize("shards", [1, 3])
def test_windows_of_keys_without_records_close_and_are_dropped(window: Any, shards: int) -> None:
    with windows(window, shards=shards) as driver:
        for key in "abcdefgh":
            send(driver, (100, 1), key=key)
        send(driver, (1_000, 1), key="z")
        driver.run()
        assert {key.key for key in driver.table("w").all()} == {"z"}
        assert driver.run() == 0


def test_a_derived_table_follows_the_windows() -> None:
    with windows(session(10, from_first=True), lambda g: g.count(name="w").filter(lambda v: v > 1, name="f")) as driver:
        send(driver, (105, 1), (112, 1), (116, 1), (100, 1))
        driver.run(1)
        assert driver.table("f").all() == {WindowedKey("k", 100, 105): 2, WindowedKey("k", 112, 116): 2}


def test_each_record_is_a_change_of_its_own_where_that_is_asked_for() -> None:
    with windows(session(10), lambda grouped: grouped.count(name="w", emit="each_record")) as driver:
        send(driver, (100, 1), (105, 1), (103, 1))
        driver.run()
        assert changes(driver) == [(100, 100, 1), (100, 100, None), (100, 105, 2), (100, 105, 3)]


def test_windows_resume_after_a_restart() -> None:
    with windows(session(10, opens=lambda v: v == "login")) as driver:
        for record in ((104, "view"), (100, "login"), (112, "view"), (130, "view")):
            send(driver, record)
            driver.run()
            driver.restart()
        assert rows(driver) == [(100, 112, ["login", "view", "view"])]


def test_a_merger_is_accepted_for_sessions_only() -> None:
    with windows(session(10), lambda g: g.aggregate(0, lambda v, agg: agg + v, lambda a, b: 1 / 0, name="w")) as driver:
        send(driver, (100, 1), (115, 2), (108, 4))
        driver.run(1)
        assert rows(driver) == [(100, 115, 7)]
    with pytest.raises(TopologyError, match="only sessions are merged"):
        windows(Sliding(5), lambda g: g.aggregate(0, lambda v, agg: agg + v, merger=lambda a, b: a, name="w"))


class Crash(Exception):
    """The process died after its state was written, before the batch was committed."""


@pytest.mark.parametrize("window", [session(10, retention_ms=30), session(10, from_first=True), Sliding(5, **LATER)])
@pytest.mark.parametrize("kind", ["count", "collect_list"])
def test_a_batch_that_was_written_and_never_committed_leaves_no_trace(
    window: Session | Sliding, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*given: Any, **named: Any) -> None:
        raise Crash

    found = []
    for crashes in (False, True):
        with windows(window, lambda grouped: getattr(grouped, kind)(name="w"), shards=2) as driver:
            for at in (100, 108, 104, 125, 119, 160, 300):
                send(driver, (at, at))
                if crashes:
                    with monkeypatch.context() as patch:
                        patch.setattr(driver.broker, "publish", die)
                        with pytest.raises(Crash):
                            driver.run()
                    driver.restart()
                driver.run()
            found.append((driver.table("w").all(), changes(driver), driver.reasons()))
    assert found[0] == found[1]
