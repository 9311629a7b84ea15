"""Processors on Spark: state and timers in a query that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import potok
from potok import Processor, StreamsBuilder, value_store
from potok.log.open import open_broker
from potok.testing import TestDriver
from potok.testing.outputs import read_outputs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


class Reminder(Processor):
    """Counts, and says so when nothing asks it to."""

    seen = value_store(default=0)

    def __init__(self, after: str) -> None:
        self.after = after

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        self.seen.set(self.seen.get() + 1)
        ctx.schedule(after=self.after, clock="wall")

    def on_timer(self, key: Any, at: int, ctx: Any) -> list[int]:
        return [self.seen.get()]


def test_a_quiet_query_wakes_for_a_timer_by_processing_time(spark: Any, tmp_path: Path) -> None:
    builder = StreamsBuilder("reminders")
    builder.stream("in").process(Reminder("50 ms"), name="reminder").to("out")
    with potok.Producer(tmp_path) as producer:
        producer.send("in", 1, key="k")
    with potok.start(builder, broker=tmp_path) as query:
        broker = open_broker(tmp_path)
        while not (found := read_outputs(broker, "out")):
            assert query.is_active, "the query must not end"
        assert [(record.key, record.value) for record in found] == [("k", 1)]


def test_state_survives_a_shuffle_and_a_restart(spark: Any) -> None:
    class Running(Processor):
        total = value_store(default=0)

        def process(self, key: Any, value: Any, ctx: Any) -> None:
            self.total.set(self.total.get() + value)
            ctx.forward(self.total.get(), to="totals")
            ctx.schedule(after="1 s", name="end")

        def on_timer(self, key: Any, at: int, ctx: Any) -> list[str]:
            return [f"{ctx.timer} of {self.total.get()}"]

    builder = StreamsBuilder("running")
    made = builder.stream("in").process_values(Running, name="sums", outputs={"totals": "bigint"})
    made["totals"].group_by_key().collect_list(name="totals")
    made.to("out")
    with TestDriver(builder, partitions={"in": 2}, shards=3, spread=True, spark=True) as driver:
        for n in range(12):
            driver.send("in", n, f"k{n % 4}", timestamp=n, partition=n % 2)
            if n in (5, 8):
                driver.run()
                driver.restart()
        driver.advance_to(10_000)
        assert driver.table("totals").all() == {f"k{k}": [k, 2 * k + 4, 3 * k + 12] for k in range(4)}
        ends = {record.key: record.value for record in driver.read("out")}
        assert ends == {f"k{k}": f"end of {3 * k + 12}" for k in range(4)}
