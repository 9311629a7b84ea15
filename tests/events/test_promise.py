"""Upcast events and the ids of those that are written do not depend on batches, tasks, shards and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.decode import Undecodable
from tests.oracle.events import event_id, events_in
from tests.oracle.records import Input

import potok
from hostile import explored
from potok.testing import TestDriver


@potok.event("promise.moved", version=3)
@dataclass
class Moved:
    item: str
    amount: int = 1


@potok.upcast("promise.moved", from_version=1)
def moved_1(data: dict[str, Any]) -> Any:
    return None if data.get("test") else {"lines": data["lines"]}


@potok.upcast("promise.moved", from_version=2)
def moved_2(data: dict[str, Any]) -> Any:
    return [{"item": item, "amount": amount} for item, amount in data["lines"]]


_lines = st.lists(st.tuples(st.sampled_from(["pen", "book"]), st.integers(-2, 5)), max_size=3)
_data = {
    1: st.fixed_dictionaries({"lines": _lines}, optional={"test": st.booleans()}) | st.just({}),
    2: st.fixed_dictionaries({"lines": _lines | st.just([["pen", "x"]])}),
    3: st.fixed_dictionaries({"item": st.sampled_from(["pen", "book"])}, optional={"amount": st.integers(0, 3)}),
    4: st.just({}),
}


@st.composite
def _records(draw: st.DrawFn) -> tuple[int, Input]:
    version = draw(st.sampled_from([1, 1, 2, 2, 3, 3, 4]))
    event = {"id": draw(st.sampled_from(["e1", "e2"])), "type": "promise.moved", "source": "/s", "specversion": "1.0"}
    more = {"eventversion": version, "data": draw(_data[version]), "correlationid": draw(st.sampled_from([None, "c1"]))}
    value = orjson.dumps({**event, **{name: item for name, item in more.items() if item is not None}})
    key = draw(st.sampled_from([b"a", b"b", None]))
    headers = (("content-type", b"application/cloudevents+json"),)
    return draw(st.integers(0, 1)), Input(key, value, draw(st.integers(0, 9)) * 1000, headers)


def build() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("promise")
    events = builder.events("moves", types=[Moved], envelope="cloudevents")
    events.flat_map_values(lambda v: [v, v] if v["amount"] > 3 else [v]).to("out", envelope="cloudevents", event=Moved)
    events.group_by(lambda v: v["item"]).sum(lambda v: v["amount"], name="sold")
    return builder


def expected(records: list[tuple[int, Input]]) -> tuple[Counter[Any], dict[str, int], int]:
    types = build().build().sources[0].events  # type: ignore[union-attr]
    assert types is not None
    out: Counter[Any] = Counter()
    sold: dict[str, int] = {}
    failed = 0
    offsets: Counter[int] = Counter()
    for partition, read in records:
        offset = offsets[partition]
        offsets[partition] += 1
        try:
            reported = events_in(read, types)
        except Undecodable:
            failed += 1
            continue
        written = [part for part in reported.parts for _ in range(2 if part["amount"] > 3 else 1)]
        for index, part in enumerate(written):
            id_ = event_id("promise", "out#0", "moves", partition, offset, read.key, index)
            sequence = f"{offset:020d}-{index:06d}"
            out[id_, sequence, reported.id, reported.correlation, part["item"], part["amount"]] += 1
        for part in reported.parts:
            sold[part["item"]] = sold.get(part["item"], 0) + part["amount"]
    return out, sold, failed


@explored(40)
@given(
    st.lists(_records(), min_size=1, max_size=12),
    st.lists(st.sampled_from(["batch", "restart", ""]), min_size=12, max_size=12),
    st.sampled_from([1, 3]),
)
def test_events_and_their_ids_do_not_depend_on_batches_shards_and_restarts(
    records: list[tuple[int, Input]], turns: list[str], shards: int
) -> None:
    with TestDriver(build(), partitions={"moves": 2}, shards=shards) as driver:
        for (partition, read), turn in zip(records, turns, strict=False):
            headers = dict(read.headers)
            driver.send(
                "moves", read.value, read.key, timestamp=read.timestamp_ms, partition=partition, headers=headers
            )
            if turn:
                driver.run(more_to_come=True)
            if turn == "restart":
                driver.restart()
        driver.run()
        found: Counter[Any] = Counter()
        for record in driver.read("out"):
            event = record.value
            data = event["data"]
            named = tuple(event[name] for name in ("id", "sequence", "causationid", "correlationid"))
            found[(*named, data["item"], data["amount"])] += 1
        sold = dict(driver.table("sold").all())
        letters = len(driver.dead_letters())
    assert (found, sold, letters) == expected(records)
    assert max(found.values(), default=1) == 1
