"""Read a table as Arrow columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import state_of
from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt
from potok.topology.nodes.windows import session, tumbling

INSTANT = pa.timestamp("us", "UTC")


@dataclass
class Purchase:
    key: str
    amount: float
    at: datetime


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=repr)


def test_an_aggregate_is_two_typed_columns() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t", value="amount double").group_by_key().sum("amount", name="total")
    with InProcess(builder, shards=3) as driver:
        for key, amount in [("a", 1.5), ("b", 2.0), ("a", 2.0), ("", 7.0), ("k" * 600, 8.0)]:
            driver.send("t", {"amount": amount}, key)
        driver.run()
        found = driver.table("total").to_arrow()
        assert found.schema == pa.schema([("key", pa.string()), ("value", pa.float64())])
        assert dict(zip(*found.to_pydict().values(), strict=True)) == driver.table("total").all()


def test_fields_are_columns_and_one_named_key_gets_a_prefix() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", key=int, value=Purchase)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    with InProcess(builder, shards=2) as driver:
        driver.send("t", {"key": "x", "amount": 1.0, "at": at.isoformat()}, 7)
        driver.send("t", {"key": "y", "amount": 2.0, "at": at.isoformat()}, -8)
        driver.send("t", None, -8)
        driver.run()
        assert rows(driver.table("t")) == [{"key": 7, "value_key": "x", "amount": 1.0, "at": at}]


def test_keys_and_values_without_a_type_are_json() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", key=None)
    with InProcess(builder) as driver:
        driver.send("t", {"a": [1, None]}, b'"plain"')
        driver.send("t", 3, [1, "x"])
        driver.run()
        assert rows(driver.table("t")) == [
            {"key": '[1,"x"]', "value": "3"},
            {"key": "plain", "value": '{"a":[1,null]}'},
        ]


@pytest.mark.parametrize("window", [tumbling("10 ms"), session("10 ms")])
def test_windows_are_two_columns_of_instants(window: Any) -> None:
    builder = StreamsBuilder("q")
    builder.stream("t").group_by_key().windowed_by(window).count(name="n")
    with InProcess(builder, shards=2) as driver:
        for at, key in [(3, "a"), (5, "b"), (7, "a"), (25, "a"), (60, "b")]:
            driver.send("t", 1, key, timestamp=at)
        driver.run()
        table = driver.table("n")
        found = table.to_arrow()
        assert found.schema.field("window_start").type == found.schema.field("window_end").type == INSTANT
        millis = [found[name].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()) for name in found.column_names[1:3]]
        keyed = zip(found["key"].to_pylist(), *(part.to_pylist() for part in millis), strict=True)
        assert dict(zip(keyed, found["value"].to_pylist(), strict=True)) == table.all()


@pytest.mark.parametrize(("table", "expected"), [("most", 5), ("counts", 1)])
def test_cells_of_the_running_batch_count_with_their_old_value(table: str, expected: int) -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("t", value="n int").group_by_key()
    grouped.max("n", name="most")
    grouped.count(name="counts")
    with InProcess(builder, shards=1) as driver:
        for key in "ab":
            driver.send("t", {"n": 5}, key)
        driver.run()
        entry = read_entry(driver.broker, "q")
        assert entry is not None
        running = Attempt(entry.epoch, entry.batch + 1)
        store = state_of(driver.broker, "q").store(0)
        key, data = store.page(table, limit=1)[0]
        before = decode_cell(data).new
        assert before is not None
        store.put_many(running, [(table, [(key, encode_cell(running, bytes(len(before)), before))])])
        if table == "most":
            store.put_many(running, [(table, [(b"new", encode_cell(running, before, None))])])
        assert rows(driver.table(table)) == [{"key": "a", "value": expected}, {"key": "b", "value": expected}]


def test_an_empty_table_has_its_schema() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t", value="n int").group_by_key().max("n", name="most")
    with InProcess(builder) as driver:
        driver.run()
        assert driver.table("most").to_arrow().column_names == ["key", "value"]


def test_pandas_and_polars_have_the_same_rows() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", value="name string, age long")
    with InProcess(builder) as driver:
        driver.send("t", {"name": "Ada", "age": 36}, "a")
        driver.run()
        table = driver.table("t")
        assert table.to_pandas().to_dict("records") == [{"key": "a", "name": "Ada", "age": 36}]
        polars = table.to_polars()
        assert isinstance(polars, pl.DataFrame)
        assert polars.to_dicts() == [{"key": "a", "name": "Ada", "age": 36}]


def test_the_rows_of_an_instant_are_columns_too() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", value="n int", history="1 day")
    with InProcess(builder) as driver:
        for at, n in [(10, 1), (20, 2)]:
            driver.send("t", {"n": n}, "a", timestamp=at)
        driver.run()
        table = driver.table("t")
        assert [table.to_arrow(as_of=at).to_pylist() for at in (9, 10, 25)] == [
            [],
            [{"key": "a", "n": 1}],
            [{"key": "a", "n": 2}],
        ]
        assert table.to_arrow().to_pylist() == [{"key": "a", "n": 2}]
