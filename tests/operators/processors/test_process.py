"""Processors at work, in whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, list_store, map_store, value_store, window_store

SPLITS = pytest.mark.parametrize("batch_records", [None, 1, 2, 3])


def played(
    make: Callable[[Any], Any],
    records: list[tuple[str | None, Any, int]],
    batch_records: int | None = None,
    **options: Any,
) -> tuple[list[tuple[Any, Any, int]], list[tuple[str, str]]]:
    """What comes out of a step on a topic with one partition: key, value and time; and the dead letters."""
    builder = StreamsBuilder("q")
    make(builder.stream("in")).to("out")
    with InProcess(builder, **options) as driver:
        for key, value, at in records:
            driver.send("in", value, key, timestamp=at)
        driver.run(batch_records)
        return [(r.key, r.value, r.timestamp_ms) for r in driver.read("out")], driver.reasons()


class Total(Processor):
    """Sums, and refuses what is negative after it has changed everything that it can change."""

    total = value_store(default=0)
    parts = list_store()
    by_size = map_store()
    recent = window_store("1 second")

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        self.total.set(self.total.get() + value)
        self.parts.append(value)
        self.by_size[len(str(value))] = value
        self.recent.put(ctx.timestamp, value)
        ctx.schedule(after="10 seconds", name=f"of {value}")
        ctx.forward([self.total.get(), list(self.parts), dict(self.by_size), len(self.recent.fetch(0, 100_000))])
        if value < 0:
            raise ValueError("negative")

    def on_timer(self, key: Any, at: int, ctx: Any) -> list[str]:
        return [f"{ctx.timer} at {at}"]


@SPLITS
@pytest.mark.parametrize("shards", [1, 3])
def test_state_belongs_to_the_key_and_outlives_the_batch(batch_records: int | None, shards: int) -> None:
    records = [("a", 1, 0), ("b", 5, 1), ("a", 20, 2), ("b", 6, 3)]
    out, _ = played(lambda s: s.process(Total, name="t"), records, batch_records, shards=shards, spread=True)
    assert sorted(out) == [
        ("a", [1, [1], {"1": 1}, 1], 0),
        ("a", [21, [1, 20], {"1": 1, "2": 20}, 2], 2),
        ("b", [5, [5], {"1": 5}, 1], 1),
        ("b", [11, [5, 6], {"1": 6}, 2], 3),
    ]


@SPLITS
def test_a_call_that_raises_leaves_no_trace(batch_records: int | None) -> None:
    records = [("a", -1, 0), ("a", 2, 1), ("a", -3, 2), ("a", -4, 3), ("a", 5, 4), ("z", 9, 60_000)]
    out, reasons = played(lambda s: s.process(Total, name="t"), records, batch_records)
    assert out == [
        ("a", [2, [2], {"1": 2}, 1], 1),
        ("a", [7, [2, 5], {"1": 5}, 2], 4),
        ("z", [9, [9], {"1": 9}, 1], 60_000),
        ("a", "of 2 at 10001", 10_001),
        ("a", "of 5 at 10004", 10_004),
    ]
    assert reasons == [("t", "error")] * 3


def test_failures_do_not_cost_a_replay_each() -> None:
    calls = 0

    def process(key: Any, value: Any, ctx: Any) -> None:
        nonlocal calls
        calls += 1
        ctx.store("seen").append(value)
        if value % 2:
            raise ValueError("odd")

    def make(stream: Any) -> Any:
        return stream.process(process, stores={"seen": list_store()}, name="t")

    _, reasons = played(make, [("k", n, n) for n in range(100)])
    assert len(reasons) == 50
    assert calls <= 2 + 100


def test_what_was_sent_does_not_change_with_the_state() -> None:
    class Grow(Processor):
        state = value_store(default=dict)

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            state = self.state.get()
            state.setdefault("seen", []).append(value)
            ctx.forward(state)

    out, _ = played(lambda s: s.process(Grow, name="t"), [("a", 1, 0), ("a", 2, 1), ("a", 3, 2)])
    assert [value["seen"] for _, value, _ in out] == [[1], [1, 2], [1, 2, 3]]


@SPLITS
def test_two_stores_that_were_given_one_object_do_not_share_it(batch_records: int | None) -> None:
    class Twice(Processor):
        left = value_store()
        right = list_store()

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            if self.left.get() is None:
                both: list[int] = []
                self.left.set(both)
                self.right.append(both)
            self.left.get().append(value)
            ctx.forward([self.left.get(), self.right[0]])

    out, _ = played(lambda s: s.process(Twice, name="t"), [("a", 1, 0), ("a", 2, 1)], batch_records)
    assert [value for _, value, _ in out] == [[[1], []], [[1, 2], []]]


def test_a_state_that_is_not_data_sets_the_record_aside() -> None:
    class Odd(Processor):
        state = value_store()

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.forward(value)
            self.state.set(value if value != 2 else (lambda: None))

    out, reasons = played(lambda s: s.process(Odd, name="t"), [("a", 1, 0), ("a", 2, 1), ("a", 3, 2), ("b", 2, 3)])
    assert [value for _, value, _ in out] == [1, 3]
    assert reasons == [("t", "error")] * 2


@SPLITS
def test_what_does_not_fit_its_output_undoes_the_call(batch_records: int | None) -> None:
    class Count(Processor):
        n = value_store(default=0)

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            self.n.set(self.n.get() + 1)
            ctx.forward({"n": self.n.get(), "text": value}, to="typed")

    builder = StreamsBuilder("q")
    builder.stream("in").process(Count, name="t", outputs={"typed": "n bigint, text string"})["typed"].to("out")
    with InProcess(builder) as driver:
        for at, value in enumerate(["x", 5, "y", ["z"], "w"]):
            driver.send("in", value, "k", timestamp=at)
        driver.run(batch_records)
        found = [record.value for record in driver.read("out")]
        assert found == [{"n": 1, "text": "x"}, {"n": 2, "text": "y"}, {"n": 3, "text": "w"}]
        assert driver.reasons() == [("t", "error")] * 2
        assert [letter.offset for letter in driver.dead_letters()] == [1, 3]


def test_a_record_without_a_key_is_set_aside() -> None:
    out, reasons = played(lambda s: s.process(Total, name="t"), [(None, 1, 0), ("a", 1, 1)])
    assert len(out) == 1
    assert reasons == [("t", "no key")]


def test_values_may_be_returned_or_yielded() -> None:
    def several(key: Any, value: Any, ctx: Any) -> Any:
        return [value] * value

    def one_by_one(key: Any, value: Any, ctx: Any) -> Any:
        yield value
        yield -value

    assert [v for _, v, _ in played(lambda s: s.process(several), [("a", 2, 0), ("a", 0, 1)])[0]] == [2, 2]
    assert [v for _, v, _ in played(lambda s: s.process(one_by_one), [("a", 2, 0)])[0]] == [2, -2]


def test_a_value_that_is_returned_alone_is_refused() -> None:
    _, reasons = played(lambda s: s.process(lambda key, value, ctx: {"n": value}, name="t"), [("a", 2, 0)])
    assert reasons == [("t", "error")]


def test_a_forward_may_have_a_key_and_a_time_of_its_own() -> None:
    def process(key: Any, value: Any, ctx: Any) -> None:
        ctx.forward(value, key=f"{key}-{value}", timestamp=7)

    assert played(lambda s: s.process(process), [("a", 1, 0)])[0] == [("a-1", 1, 7)]
    assert played(lambda s: s.process_values(process, name="t"), [("a", 1, 0)]) == ([], [("t", "error")])


def test_a_key_that_does_not_fit_the_stream_is_refused_unless_its_type_is_declared() -> None:
    def process(key: Any, value: Any, ctx: Any) -> None:
        ctx.forward(value, key=value)

    assert played(lambda s: s.process(process, name="t"), [("a", 1, 0)]) == ([], [("t", "error")])
    out, reasons = played(lambda s: s.process(process, key="bigint").map(lambda k, v: (str(k), v)), [("a", 1, 0)])
    assert out == [("1", 1, 0)] and reasons == []


def test_the_context_has_the_position_of_the_record() -> None:
    def process(key: Any, value: Any, ctx: Any) -> None:
        ctx.forward([ctx.source, list(ctx.position), [[n, v.decode()] for n, v in ctx.headers], ctx.timestamp])

    builder = StreamsBuilder("q")
    builder.stream("a").merge(builder.stream("b")).process(process, name="t").to("out")
    with InProcess(builder) as driver:
        driver.send("a", 1, "k", timestamp=5, headers={"h": b"x"})
        driver.send("b", 2, "k", timestamp=6)
        driver.run()
        found = [(record.value, record.headers) for record in driver.read("out")]
        assert found == [
            (["a", ["a", 0, 0], [["h", "x"]], 5], (("h", b"x"),)),
            (["b", ["b", 0, 0], [], 6], ()),
        ]


def test_an_output_that_was_not_declared_is_an_error_of_the_record() -> None:
    def process(key: Any, value: Any, ctx: Any) -> None:
        ctx.forward(value, to="nowhere")

    assert played(lambda s: s.process(process, name="t", outputs={"known": None}), [("a", 1, 0)])[1] == [("t", "error")]


@SPLITS
def test_what_keeps_its_key_is_folded_in_the_order_in_which_it_was_sent(batch_records: int | None) -> None:
    class Mark(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> Any:
            ctx.schedule(after="5 ms")
            return [value, -value]

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            return [f"t{at}"]

    builder = StreamsBuilder("q")
    builder.stream("in").process_values(Mark, name="m").group_by_key().collect_list(name="all")
    with InProcess(builder) as driver:
        for at in (1, 3, 8, 9, 40):
            driver.send("in", at, "k", timestamp=at)
        driver.run(batch_records)
        assert driver.table("all").get("k") == [1, -1, 3, -3, "t6", "t8", 8, -8, 9, -9, "t13", "t14", 40, -40]


def test_state_survives_a_restart() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").process(Total, name="t").to("out")
    with InProcess(builder) as driver:
        driver.send("in", 1, "a", timestamp=0)
        driver.run()
        driver.restart()
        driver.send("in", 2, "a", timestamp=20_000)
        driver.run()
        assert [record.value for record in driver.read("out")] == [
            [1, [1], {"1": 1}, 1],
            "of 1 at 10000",
            [3, [1, 2], {"1": 2}, 1],
        ]
