"""Two streams joined: every pair once, what met nobody when it closes, and nothing kept that is closed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import Input, recompute
from tests.properties.compare import differences, made_by

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.duration import milliseconds
from potok.operators.cells import sorted_runs
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.compare import StateDoesNotFit
from potok.topology.describe import description_of
from potok.topology.inference.infer import infer
from potok.topology.pruning import used_fields

TYPED = {"value": "n bigint, s string"}
KINDS = ["join", "left_join", "outer_join"]


def joined(how: str = "join", joiner: Callable[..., Any] | None = None, **options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("q")
    typed = options.pop("typed", {})
    left, right = builder.stream("l", **typed), builder.stream("r", **typed)
    functions = () if joiner is None else (joiner,)
    within = options.pop("within", milliseconds(10))
    getattr(left, how)(right, *functions, within=within, name="j", **options).to("out")
    return builder


def send(driver: InProcess, topic: str, n: int, at: int, key: str | None = "k") -> None:
    driver.send(topic, {"n": n, "s": "x"}, key, timestamp=at)


def pairs(driver: InProcess) -> list[Any]:
    return sorted((record.value for record in driver.read("out")), key=str)


def numbers(left: Any, right: Any) -> list[Any]:
    return [left and left["n"], right and right["n"]]


@pytest.mark.parametrize("typed", [{}, TYPED])
@pytest.mark.parametrize("batch_records", [None, 1, 2])
@pytest.mark.parametrize("shards", [1, 3])
def test_each_pair_comes_out_once(typed: dict[str, str], batch_records: int | None, shards: int) -> None:
    with InProcess(joined(joiner=numbers, typed=typed), shards=shards) as driver:
        for n, (topic, at) in enumerate([("l", 0), ("r", 3), ("l", 5), ("r", 9), ("r", 16)]):
            send(driver, topic, n, at)
        driver.run(batch_records)
        assert pairs(driver) == [[0, 1], [0, 3], [2, 1], [2, 3]]


@pytest.mark.parametrize("how", KINDS)
def test_pairs_and_rows_alone_carry_their_key_and_time(how: str) -> None:
    with InProcess(joined(how)) as driver:
        send(driver, "l", 1, 5, "a")
        send(driver, "r", 2, 9, "a")
        send(driver, "l", 3, 6, "left")
        send(driver, "r", 4, 7, "right")
        driver.run()
        driver.advance_to(1_000)
        alone = {"left_join": [("left", 6)], "outer_join": [("left", 6), ("right", 7)]}.get(how, [])
        assert sorted((r.key, r.timestamp_ms) for r in driver.read("out")) == [("a", 9), *alone]


def test_a_late_record_is_reported_with_its_window_and_lateness() -> None:
    with InProcess(joined(within=(milliseconds(3), milliseconds(10)), grace=milliseconds(5))) as driver:
        send(driver, "l", 1, 116, "z")
        send(driver, "l", 2, 100)
        driver.run()
        (letter,) = driver.dead_letters()
        assert (letter.topic, letter.offset, letter.reason, letter.step) == ("l", 1, "late", "j")
        assert letter.error == "join window [97, 110] was closed: stream time 116 is 1 ms past its end and grace"


def test_unmatched_rows_are_emitted_only_behind_the_watermarks_of_both_sides() -> None:
    with InProcess(joined("left_join", numbers)) as driver:
        send(driver, "l", 1, 0)
        send(driver, "l", 2, 1_000)
        driver.run(more_to_come=True)
        send(driver, "r", 3, 20, "other")
        driver.run(more_to_come=True)
        assert pairs(driver) == []
        send(driver, "r", 3, 21, "other")
        driver.run(more_to_come=True)
        assert pairs(driver) == [[1, None]]


def test_a_joiner_that_was_traced_returns_what_python_returns() -> None:
    with InProcess(joined("outer_join", lambda k, a, b: {"k": k, "sum": a["n"] + b["n"]}, typed=TYPED)) as driver:
        topology = driver._topology
        (step,) = [step for step in description_of(topology)["steps"] if step["name"] == "j"]
        assert step["runs"] == "native"
        assert used_fields(topology, infer(topology))[topology.sources[0]] == {"n"}
        send(driver, "l", 1, 0)
        send(driver, "r", 2, 0)
        send(driver, "r", 3, 0, "alone")
        driver.run()
        driver.advance_to(1_000)
        assert pairs(driver) == [{"k": "k", "sum": 3}]
        (letter,) = driver.dead_letters()
        assert (letter.topic, letter.offset, letter.reason) == ("r", 1, "error")


def test_a_joiner_may_leave_a_side_unread() -> None:
    with InProcess(joined("left_join", lambda a, b: a["s"], typed=TYPED)) as driver:
        send(driver, "l", 1, 0)
        driver.run()
        send(driver, "r", 2, 5)
        send(driver, "l", 3, 6, "alone")
        driver.run()
        driver.advance_to(1_000)
        assert pairs(driver) == ["x", "x"]


def test_results_have_the_declared_type() -> None:
    builder = joined(joiner=lambda a, b: {"n": a["n"] if b else b["n"]}, value="n double")
    with InProcess(builder) as driver:
        driver.send("l", {"n": 1}, "a", timestamp=0)
        driver.send("l", {"n": "no number"}, "b", timestamp=0)
        for key in "ab":
            driver.send("r", {"n": 0}, key, timestamp=0)
        driver.run()
        assert pairs(driver) == [{"n": 1.0}]
        assert driver.reasons() == [("j", "error")]


def test_a_value_that_cannot_be_kept_is_set_aside() -> None:
    builder = StreamsBuilder("q")
    left = builder.stream("l").map_values(lambda v: object() if v["n"] == 1 else v)
    left.join(builder.stream("r"), lambda a, b: a["n"], within=1, name="j").to("out")
    with InProcess(builder) as driver:
        send(driver, "l", 1, 0)
        send(driver, "l", 2, 0)
        send(driver, "r", 3, 0)
        driver.run()
        assert pairs(driver) == [2]
        assert driver.reasons() == [("j", "error")]


@pytest.mark.parametrize("how", KINDS)
def test_closed_rows_leave_nothing_behind(how: str) -> None:
    with InProcess(joined(how), shards=1) as driver:
        for at in range(0, 800, 20):
            send(driver, "l", at, at, f"key {at}")
            send(driver, "r", at, at + 5, f"key {at if at % 3 else 0}")
            driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0")
        sizes = {name: store.entries(name) for name in ("j/left", "j/right", "j/left/deleted")}
        assert max(sizes.values()) <= 20, sizes


def test_what_is_kept_depends_on_what_the_joiner_reads() -> None:
    with InProcess(joined(joiner=lambda a, b: a["n"], typed=TYPED)) as driver:
        driver.replace(joined(joiner=lambda a, b: a["n"] + 1, typed=TYPED))
        with pytest.raises(StateDoesNotFit, match="its cells were"):
            driver.replace(joined(joiner=lambda a, b: a["s"], typed=TYPED))


def test_a_wider_window_fits_the_state_of_a_narrower_one() -> None:
    with InProcess(joined(joiner=numbers)) as driver:
        send(driver, "l", 1, 0)
        driver.run()
        driver.replace(joined(joiner=numbers, within=milliseconds(50)))
        send(driver, "r", 2, 40)
        driver.run()
        assert pairs(driver) == [[1, 2]]


def test_keys_with_one_hash_are_distinguished() -> None:
    # These two have one crc32.
    with InProcess(joined(joiner=numbers), shards=1) as driver:
        send(driver, "l", 1, 0, "plumless")
        send(driver, "l", 2, 0, "buckeroo")
        driver.run()
        send(driver, "r", 3, 0, "buckeroo")
        send(driver, "l", 4, 0, "plumless")
        driver.run()
        assert pairs(driver) == [[2, 3]]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("lr"),
        st.integers(0, 1),
        st.sampled_from(["a", "a", "b", "c", None]),
        st.integers(0, 60),
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from([(10, 10), (0, 7), (5, 0), (0, 0)]),
    st.sampled_from([0, 3, 20]),
    st.booleans(),
    EVENTS,
    st.sets(st.integers(0, 40), max_size=5),
    st.sampled_from([None, 1, 5]),
)
def test_the_oracle_finds_the_same_pairs_however_records_fall_into_batches(
    how: str, within: tuple[int, int], grace: int, typed: bool, events: list[Any], cuts: set[int], size: int | None
) -> None:
    reach = milliseconds(within[0]), milliseconds(within[1])
    options = {"within": reach, "grace": milliseconds(grace), "typed": TYPED if typed else {}}
    builder = joined(how, lambda a, b: [a and a["n"], b and b["n"]], **options)
    inputs: dict[str, dict[int, list[Input]]] = {"l": {0: [], 1: []}, "r": {0: [], 1: []}}
    with InProcess(builder, partitions={"l": 2, "r": 2}, shards=2) as driver:
        for n, (topic, partition, key, at) in enumerate(events):
            record = Input(None if key is None else key.encode(), json.dumps({"n": n, "s": ""}).encode(), at)
            inputs[topic][partition].append(record)
            driver.send(topic, record.value, record.key, timestamp=at, partition=partition)
            if n in cuts:
                driver.run(size, more_to_come=True)
                driver.restart()
        driver.run(size)
        filled = {topic: {part: rows for part, rows in parts.items() if rows} for topic, parts in inputs.items()}
        expected = recompute(driver._topology, filled)
        assert differences(made_by(driver, expected), expected) == []


def test_rows_are_found_in_pages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_runs, "PAGE", 3)
    with InProcess(joined("outer_join", numbers), shards=1) as driver:
        for batch in range(6):
            for n in range(10):
                send(driver, "l", n, batch, f"k{n}")
            driver.run()
        for n in range(0, 10, 2):
            send(driver, "r", n, 6, f"k{n}")
        driver.run()
        driver.advance_to(1_000)
        met = [pair for pair in pairs(driver) if None not in pair]
        assert met == [[n, n] for n in range(0, 10, 2) for _ in range(6)]
        assert len(pairs(driver)) == 60
