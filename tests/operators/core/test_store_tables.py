"""Readable stores, and stores that come and go with a changed program."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, list_store, value_store
from potok.errors import TopologyError
from potok.topology.compare import StateDoesNotFit


class Balance(Processor):
    balance = value_store(default=0, readable=True)

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        self.balance.set(self.balance.get() + value)


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_a_readable_store_is_a_table_with_a_changelog(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    table = builder.stream("in").process(Balance, name="p").table("balance")
    table.to_stream().to("out")
    with InProcess(builder, shards=3, spread=True) as driver:
        for at, (key, value) in enumerate([("a", 1), ("b", 2), ("a", 5), ("b", -2)]):
            driver.send("in", value, key, timestamp=at)
        driver.run(batch_records)
        assert driver.table("p.balance").all() == {"a": 6}
        driver.restart()
        assert driver.table("p.balance").get("a") == 6
        last = {record.key: (record.value, record.timestamp_ms) for record in driver.read("out")}
        assert last["a"] == (6, 2)
        assert last.get("b", (None, 3)) == (None, 3)


def test_only_a_readable_store_is_a_table() -> None:
    made = StreamsBuilder("q").stream("in").process(lambda k, v, c: None, stores={"n": value_store()})
    with pytest.raises(TopologyError, match="readable store"):
        made.table("n")


def test_a_readable_store_is_found_by_the_key_that_comes_in() -> None:
    with pytest.raises(TopologyError, match="key of the stream"):
        StreamsBuilder("q").stream("in").process(Balance, key="bigint")


def test_a_store_of_a_function_may_have_any_name() -> None:
    def count(key: Any, value: Any, ctx: Any) -> list[int]:
        ctx.store("process").append(value)
        return [len(ctx.store("process"))]

    builder = StreamsBuilder("q")
    builder.stream("in").process(count, stores={"process": list_store()}, name="p").to("out")
    with InProcess(builder) as driver:
        for at in range(3):
            driver.send("in", 1, "k", timestamp=at)
        driver.run()
        assert [record.value for record in driver.read("out")] == [1, 2, 3]


def keeping(**stores: Any) -> StreamsBuilder:
    """Appends to, or counts in, each of its stores, and sends what they hold."""

    def process(key: Any, value: Any, ctx: Any) -> None:
        for name in stores:
            store = ctx.store(name)
            if hasattr(store, "append"):
                store.append(value)
            else:
                store.set(store.get() + 1)
        ctx.forward({name: list(s) if hasattr(s := ctx.store(name), "append") else s.get() for name in stores})

    builder = StreamsBuilder("q")
    builder.stream("in").process(process, stores=stores, name="p").to("out")
    return builder


def test_a_store_that_is_added_starts_empty_and_one_that_is_gone_does_not_come_back() -> None:
    with InProcess(keeping(a=list_store())) as driver:
        for at, stores in enumerate(({"a": list_store()}, {"a": list_store(), "n": value_store(0)}, None, None)):
            if at == 2:
                stores = {"n": value_store(0)}
            driver.replace(keeping(**(stores or {"a": list_store(), "n": value_store(0)})))
            driver.send("in", at, "k", timestamp=at)
            driver.run()
        assert [record.value for record in driver.read("out")] == [
            {"a": [0]},
            {"a": [0, 1], "n": 1},
            {"n": 2},
            {"a": [3], "n": 3},
        ]


def test_a_store_of_another_kind_does_not_fit() -> None:
    with InProcess(keeping(a=list_store())) as driver:
        driver.send("in", 1, "k", timestamp=0)
        driver.run()
        with pytest.raises(StateDoesNotFit, match="list store"):
            driver.replace(keeping(a=value_store(0)))
