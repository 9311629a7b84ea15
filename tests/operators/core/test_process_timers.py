"""When the timers of a processor fire."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, value_store

SPLITS = pytest.mark.parametrize("batch_records", [None, 1, 2, 3])


class Timeout(Processor):
    """Says when nothing has come for ten milliseconds."""

    last = value_store()

    def process(self, key: Any, value: Any, ctx: Any) -> Any:
        self.last.set(value)
        ctx.cancel("quiet")
        ctx.schedule(after="10 ms", name="quiet")
        return [value]

    def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
        return [f"{ctx.timer} after {self.last.get()} at {at}"]


def driver_of(make: Any, **options: Any) -> InProcess:
    builder = StreamsBuilder("q")
    make(builder).to("out")
    return InProcess(builder, **options)


def values(driver: InProcess) -> list[Any]:
    return [record.value for record in driver.read("out")]


@SPLITS
def test_a_timer_fires_between_the_records_before_and_after_it(batch_records: int | None) -> None:
    with driver_of(lambda b: b.stream("in").process(Timeout, name="t")) as driver:
        for at in (0, 5, 12, 30, 35, 100):
            driver.send("in", at, "k", timestamp=at)
        driver.run(batch_records)
        assert values(driver) == [0, 5, 12, "quiet after 12 at 22", 30, 35, "quiet after 35 at 45", 100]


@SPLITS
def test_what_waits_on_another_partition_does_not_hold_the_timers_of_a_key_back(batch_records: int | None) -> None:
    """The key's own partition tells its time; the closing clock only fires what has no record after it."""
    with driver_of(lambda b: b.stream("in").process(Timeout, name="t"), partitions={"in": 2}) as driver:
        for at in (0, 50):
            driver.send("in", at, "k", timestamp=at, partition=0)
        driver.send("in", 1, "other", timestamp=1, partition=1)
        driver.run(batch_records)
        assert sorted(map(str, values(driver))) == ["0", "1", "50", "quiet after 0 at 10"]
        driver.send("in", 99, "other", timestamp=99, partition=1)
        driver.send("in", 99, "more", timestamp=99, partition=0)
        driver.run(batch_records)
        assert "quiet after 50 at 60" in values(driver)


def test_over_several_streams_a_timer_waits_for_the_slowest() -> None:
    class Answer(Processor):
        asked = value_store()

        def process(self, key: Any, value: Any, ctx: Any) -> Any:
            if ctx.source == "questions":
                self.asked.set(True)
                ctx.schedule(after="10 ms")
                return None
            self.asked.delete()
            return ["answered"]

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            return ["no answer"] if self.asked.get() else None

    def make(b: StreamsBuilder) -> Any:
        return b.stream("questions").merge(b.stream("answers")).process(Answer, name="t")

    with driver_of(make) as driver:
        driver.send("questions", 1, "k", timestamp=0)
        driver.send("questions", 1, "other", timestamp=100)
        driver.send("answers", 1, "other", timestamp=1)
        driver.run()
        driver.send("answers", 1, "k", timestamp=5)
        driver.send("answers", 1, "late", timestamp=500)
        driver.run()
        assert "no answer" not in values(driver)


@SPLITS
def test_what_a_timer_sends_carries_its_time(batch_records: int | None) -> None:
    with driver_of(lambda b: b.stream("in").process(Timeout, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=7)
        driver.send("in", 2, "z", timestamp=1000)
        driver.run(batch_records)
        assert [r.timestamp_ms for r in driver.read("out") if isinstance(r.value, str)] == [17]


@SPLITS
def test_a_timer_may_set_the_next_one(batch_records: int | None) -> None:
    class Ticking(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(at=10)

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            ctx.schedule(after="10 ms")
            return [at]

    with driver_of(lambda b: b.stream("in").process(Ticking, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.send("in", 1, "z", timestamp=45)
        driver.run(batch_records)
        assert [r.value for r in driver.read("out") if r.key == "k"] == [10, 20, 30, 40]


def test_a_timer_cannot_set_one_that_is_not_later() -> None:
    class Stuck(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(at=10)

        def on_timer(self, key: Any, at: int, ctx: Any) -> None:
            ctx.schedule(at=at)

    with driver_of(lambda b: b.stream("in").process(Stuck, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.send("in", 1, "z", timestamp=45)
        driver.run()
        assert driver.reasons() == [("t", "error")] * 2


def test_a_timer_in_the_past_fires_at_once_and_carries_the_stream_time_of_the_record() -> None:
    class Back(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(at=ctx.timestamp - 1000)

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            return [[at, ctx.timestamp, ctx.stream_time]]

    with driver_of(lambda b: b.stream("in").process(Back, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=5000)
        assert driver.run() == 1
        assert values(driver) == [[4000, 4000, 5000]]


@SPLITS
def test_a_timer_whose_call_raises_is_a_dead_letter_and_leaves_no_trace(batch_records: int | None) -> None:
    class Careless(Processor):
        n = value_store(default=0)

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(after="1 ms", name="bad")
            ctx.schedule(after="2 ms", name="good")

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            self.n.set(self.n.get() + 1)
            ctx.forward(f"{ctx.timer} {self.n.get()}")
            if ctx.timer == "bad":
                raise ValueError("bad timer")

    with driver_of(lambda b: b.stream("in").process(Careless, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.send("in", 1, "k", timestamp=10)
        driver.run(batch_records)
        assert values(driver) == ["good 1"]
        letters = driver.dead_letters()
        assert [(x.step, x.reason, x.value) for x in letters] == [("t", "error", b'{"timer":"bad","at":1}')]


def test_the_same_timer_twice_is_one_and_a_cancelled_one_is_none() -> None:
    class Twice(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            for name in ("a", "a", "b", "c"):
                ctx.schedule(at=10, name=name)
            ctx.cancel("b")

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            return [ctx.timer]

    with driver_of(lambda b: b.stream("in").process(Twice, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.send("in", 1, "z", timestamp=45)
        driver.run()
        assert [r.value for r in driver.read("out") if r.key == "k"] == ["a", "c"]


def test_timers_of_several_keys_fire_by_time_and_then_by_key() -> None:
    class Later(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(at=value)

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            return [at]

    with driver_of(lambda b: b.stream("in").process(Later, name="t"), shards=1) as driver:
        for key, due in (("c", 20), ("b", 10), ("a", 20), ("d", 10)):
            driver.send("in", due, key, timestamp=0)
        driver.send("in", 500, "z", timestamp=100)
        driver.run()
        assert [(r.key, r.value) for r in driver.read("out")] == [("b", 10), ("d", 10), ("a", 20), ("c", 20)]


class Reminder(Processor):
    def process(self, key: Any, value: Any, ctx: Any) -> None:
        ctx.schedule(after="5 minutes", name="remind", clock="wall")

    def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
        return [[ctx.timer, ctx.timestamp]]


def test_a_timer_by_processing_time_fires_in_a_quiet_query() -> None:
    with driver_of(lambda b: b.stream("in").process(Reminder, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=700)
        assert driver.run() == 1
        assert driver.wait("4 minutes") == 0
        assert driver.wait("2 minutes") == 1
        assert values(driver) == [["remind", 700]]
        assert driver.wait("10 minutes") == 0


def test_a_timer_by_processing_time_survives_a_restart_and_may_be_cancelled() -> None:
    class Cancelled(Reminder):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            if value:
                super().process(key, value, ctx)
            else:
                ctx.cancel("remind")

    with driver_of(lambda b: b.stream("in").process(Cancelled, name="t")) as driver:
        driver.send("in", 1, "a", timestamp=0)
        driver.send("in", 1, "b", timestamp=0)
        driver.run()
        driver.restart()
        driver.send("in", 0, "a", timestamp=0)
        driver.wait("6 minutes")
        assert [r.key for r in driver.read("out")] == ["b"]


def test_a_reminder_that_sets_itself_again_does_not_keep_a_run_from_its_end() -> None:
    class Again(Processor):
        def process(self, key: Any, value: Any, ctx: Any) -> None:
            ctx.schedule(after="1 ms", clock="wall")

        def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
            ctx.schedule(after="1 ms", clock="wall")
            return [1]

    with driver_of(lambda b: b.stream("in").process(Again, name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.run()
        driver.wait("1 second")
        assert len(values(driver)) >= 1


def test_without_on_timer_nothing_can_be_scheduled() -> None:
    with driver_of(lambda b: b.stream("in").process(lambda k, v, ctx: ctx.schedule(at=1), name="t")) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.run()
        assert driver.reasons() == [("t", "error")]


@pytest.mark.parametrize(
    "call",
    [
        lambda ctx: ctx.schedule(),
        lambda ctx: ctx.schedule(at=1, after="1 s"),
        lambda ctx: ctx.schedule(at=1.5),
        lambda ctx: ctx.schedule(at=1 << 63),
        lambda ctx: ctx.schedule(at=1, clock="sun"),
        lambda ctx: ctx.schedule(at=1, name=3),
        lambda ctx: ctx.forward(1, timestamp=1 << 63),
    ],
)
def test_what_makes_no_sense_is_an_error_of_the_record(call: Any) -> None:
    def make(b: StreamsBuilder) -> Any:
        return b.stream("in").process(lambda k, v, ctx: call(ctx), on_timer=lambda k, at, ctx: None, name="t")

    with driver_of(make) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.run()
        assert driver.reasons() == [("t", "error")]
