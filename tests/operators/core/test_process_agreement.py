"""Processors that do a little of everything, on records in any order, agree with the oracle however they are run."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from tests.oracle import Input, recompute
from tests.oracle.canonical import canonical

from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, list_store, map_store, tumbling, value_store, window_store


class Everything(Processor):
    """What it does is in the value of the record, so that records make up the program."""

    total = value_store(default=0)
    seen = list_store()
    by_kind = map_store()
    recent = window_store("30 ms")

    def process(self, key: Any, value: Any, ctx: Any) -> Any:
        kind, n = value["kind"], value["n"]
        self.total.set(self.total.get() + n)
        self.by_kind.setdefault(kind, []).append(n)
        self.recent.put(ctx.timestamp, n)
        if kind == "schedule":
            ctx.schedule(after=f"{n} ms", name=f"t{n % 3}")
        elif kind == "cancel":
            ctx.cancel(f"t{n % 3}")
        elif kind == "past":
            ctx.schedule(at=ctx.timestamp - n, name="past")
        elif kind == "misfit":
            ctx.forward({"n": "no number"}, to="typed")
        elif kind == "forget":
            self.total.delete()
            self.seen.clear()
            self.by_kind.pop("show", None)
        else:
            self.seen.append(n)
            ctx.forward({"n": len(self.recent.fetch(0, ctx.timestamp))}, to="typed")
            ctx.forward([self.total.get(), list(self.seen), sorted(self.by_kind)])
        if kind == "raise":
            raise ValueError(n)

    def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
        self.seen.append(f"{ctx.timer}@{at}")
        if at % 7 == 0:
            raise ValueError("an unlucky time")
        if at % 2 == 0:
            ctx.schedule(after="9 ms", name="again")
        return [[ctx.timer, at, self.total.get(), len(self.recent.fetch(0, at))]]


KINDS = ("show", "show", "schedule", "schedule", "cancel", "past", "misfit", "forget", "raise")


def records(choice: random.Random) -> list[tuple[int, str, Any, int]]:
    """Partition, key, value and time; a key stays in its partition."""
    made = []
    for n in range(30):
        key = choice.choice("abcd")
        value = {"kind": choice.choice(KINDS), "n": choice.randrange(1, 25)}
        made.append((ord(key) % 2, key, value, max(0, 5 * n + choice.randrange(-15, 16))))
    return made


def simple(builder: StreamsBuilder) -> None:
    made = builder.stream("in").process(Everything, name="p", outputs={"typed": "n bigint"})
    made.to("main")
    made["typed"].to("typed")


def chained(builder: StreamsBuilder) -> None:
    first = builder.stream("in").process_values(Everything, name="p", outputs={"typed": "n bigint"})
    first["typed"].group_by_key().windowed_by(tumbling("20 ms", grace="10 ms")).sum("n", name="sums")
    again = first.map_values(lambda v: {"kind": "schedule", "n": 1 + len(str(v)) % 20})
    again.process_values(Everything, name="q").to("main")


def sorted_first(builder: StreamsBuilder) -> None:
    moved = builder.stream("in").select_key(lambda v: str(v["n"] % 3))
    ordered = moved.ordered("12 ms", name="o")
    made = ordered.process_values(Everything, name="p", outputs={"typed": "n bigint"})
    made.to("main")
    made["typed"].group_by_key().collect_list("n", name="all")
    ordered.group_by_key().windowed_by(tumbling("20 ms")).collect_list("kind", name="windows")


def found(make: Any, sent: list[tuple[int, str, Any, int]], batch_records: int | None, shards: int) -> Any:
    builder = StreamsBuilder("q")
    make(builder)
    topology = builder.build()
    with InProcess(topology, partitions={"in": 2}, shards=shards, spread=shards > 1) as driver:
        for partition, key, value, at in sent:
            driver.send("in", value, key, timestamp=at, partition=partition)
        driver.run(batch_records)
        if batch_records == 1:
            driver.restart()
        topics = {topic: bag((r.key, r.value) for r in driver.read(topic)) for topic in topology.sink_topics}
        tables = {name: rows(driver.table(name).all()) for name in driver.tables}
        return topics, tables, Counter((x.step, x.reason, x.offset) for x in driver.dead_letters())


def expected(make: Any, sent: list[tuple[int, str, Any, int]]) -> Any:
    builder = StreamsBuilder("q")
    make(builder)
    topology = builder.build()
    inputs: dict[int, list[Input]] = {0: [], 1: []}
    for partition, key, value, at in sent:
        inputs[partition].append(Input(key.encode(), json.dumps(value).encode(), at))
    made = recompute(topology, {"in": inputs})
    topics = {topic: bag((w.key, w.value) for w in output.records) for topic, output in made.topics.items()}
    return topics, made.tables, Counter((x.step, x.reason, x.position.offset) for x in made.dead_letters)


def bag(pairs: Any) -> Counter[str]:
    return Counter(canonical(list(pair)) for pair in pairs)


def rows(table: dict[Any, Any]) -> dict[str, Any]:
    return {canonical(rendered(key)): value for key, value in table.items()}


def rendered(key: Any) -> Any:
    return {"key": key.key, "start": key.start_ms, "end": key.end_ms} if hasattr(key, "start_ms") else key


@pytest.mark.parametrize("make", [simple, chained, sorted_first])
@pytest.mark.parametrize("seed", range(4))
def test_the_oracle_agrees_however_records_fall_into_batches(make: Any, seed: int) -> None:
    choice = random.Random(seed)
    sent = records(choice)
    want = expected(make, sent)
    for batch_records, shards in ((None, 1), (1, 2), (choice.randrange(2, 12), 3)):
        assert found(make, sent, batch_records, shards) == want
