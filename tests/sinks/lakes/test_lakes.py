"""What holds for Delta and Iceberg tables alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from potok.errors import TopologyError
from potok.sinks import errors
from potok.sinks.errors import DeliveryFailed, SinkMisfit
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Types
from tests.sinks.lakes.lake import DeltaLake, IcebergLake, Lake
from tests.sinks.rows import typed
from tests.sinks.table_contract import TableContract
from tests.sinks.tables import ANN, BOB, EVE


@pytest.fixture(params=[DeltaLake, IcebergLake])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Lake = request.param(tmp_path)
    return made


class TestLakeTable(TableContract):
    @pytest.fixture
    def table(self, lake: Lake) -> Lake:
        return lake


def test_the_table_is_created_and_batches_are_appended(lake: Lake) -> None:
    lake.put([ANN, BOB])
    lake.put([EVE, ANN], Batch(1, 2))
    assert lake.table().column_names == ["name", "amount"]
    assert lake.rows() == [("ann", 1), ("ann", 1), ("bob", 2), ("eve", 3)]


def test_a_batch_that_comes_again_is_recognised_by_its_number_and_its_content(lake: Lake) -> None:
    lake.put([ANN, BOB])
    versions = lake.versions()
    assert lake.put([ANN, BOB], Batch(2, 1)) == {}
    assert lake.versions() == versions
    lake.put([EVE], Batch(2, 2))
    assert lake.rows() == [("ann", 1), ("bob", 2), ("eve", 3)]


def test_a_batch_that_comes_again_with_other_rows_replaces_what_the_dead_attempt_left(lake: Lake) -> None:
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    lake.append(pa.table({"name": ["other"], "amount": [0]}))
    lake.put([EVE, EVE], Batch(2, 2))
    lake.put([BOB], Batch(2, 3))
    assert lake.rows() == [("other", 0), ("ann", 1), ("bob", 2), ("eve", 3), ("eve", 3)]


def test_an_attempt_that_died_is_removed_even_if_the_batch_has_no_rows_any_more(lake: Lake) -> None:
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    lake.types = Types(lake.types.key, typed("name string, amount bigint not null"))
    assert lake.put([("b", None)], Batch(2, 2)) == {0: _NO_VALUE}
    assert lake.rows() == [("ann", 1)]


_NO_VALUE = 'a null value is no row: pass with_key=True, or mode="upsert", where it deletes the row of its key'


def test_writers_that_commit_at_the_same_time_lose_nothing(lake: Lake) -> None:
    sink_writer = lake.open()
    for number in (1, 2, 3):
        lake.append(pa.table({"name": ["other"], "amount": [number * 10]}))
        lake.put([ANN], Batch(1, number), sink_writer)
    assert lake.rows() == [("ann", 1)] * 3 + [("other", 10), ("other", 20), ("other", 30)]


def test_rows_are_replaced_by_fields_of_the_value_and_others_stay(lake: Lake) -> None:
    lake.mode, lake.options = "upsert", {"key": ("shop", "item"), "renamed": (("price", "cents"),)}
    lake.types = Types(None, typed("shop string, item bigint, price bigint"))

    def row(shop: str, item: int | None, price: int) -> tuple[Any, Any]:
        return None, {"shop": shop, "item": item, "price": price}

    lake.put([row("north", 1, 10), row("north", 2, 20), row("south", 1, 30), row("south", 2, 40)])
    # Every row has a shop and an item of these, and two of them both.
    failures = lake.put([row("north", 2, 21), row("south", 1, 31), row("south", None, 1), (None, None)], Batch(1, 2))
    assert lake.rows("cents") == [("north", 1, 10), ("north", 2, 21), ("south", 1, 31), ("south", 2, 40)]
    assert failures[2] == 'the key column "item" is null'
    assert "does not say which row to delete" in failures[3]


def test_changes_are_appended_with_their_keys(lake: Lake) -> None:
    lake.options = {"with_key": True}
    lake.put([ANN, ("a", None)])
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert lake.rows("timestamp") == [("a", at, ANN[1]), ("a", at.replace(microsecond=1_000), None)]


def test_every_type_is_stored(lake: Lake) -> None:
    declared = (
        "s string, b boolean, i int, l bigint, f float, d double, n decimal(10, 2), day date, at timestamp, "
        "raw binary, list array<string>, m map<string, bigint>, o struct<x bigint, y array<timestamp>>"
    )
    lake.types = Types(typed("string"), typed(declared))
    at = dt.datetime(2026, 5, 4, 3, 2, 1, 5_000, dt.UTC)
    value = {
        "s": "x",
        "b": True,
        "i": 1,
        "l": 1 << 40,
        "f": 0.5,
        "d": 0.1,
        "n": Decimal("1.25"),
        "day": dt.date(2026, 5, 4),
        "at": at,
        "raw": b"\x00\xff",
        "list": ["a", None],
        "m": [("k", 1)],
        "o": {"x": 1, "y": [at]},
    }
    lake.put([("a", value), ("b", dict.fromkeys(value))])
    assert lake.table().sort_by("s").to_pylist() == [value, dict.fromkeys(value)]


def test_a_row_that_cannot_fit_the_table_is_rejected_and_the_others_are_written(lake: Lake) -> None:
    lake.make(pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("amount", pa.int32())]))
    big, nameless = ("x", {"name": "big", "amount": 1 << 40}), ("y", {"name": None, "amount": 4})
    failures = lake.put([ANN, big, nameless, BOB])
    assert lake.rows() == [("ann", 1), ("bob", 2)]
    assert failures[1].startswith('column "amount": Integer value 1099511627776 not in range')
    assert failures[2] == 'the column "name" is required'
    assert lake.put([ANN, big, nameless, BOB], Batch(2, 1)) == failures
    assert lake.rows() == [("ann", 1), ("bob", 2)]


def test_a_batch_that_the_table_rejects_as_a_whole_stops_the_query(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.make(pa.schema([pa.field("name", pa.string()), pa.field("amount", pa.int32())]))
    monkeypatch.setattr(errors, "MOST_REFUSED", 3)
    with pytest.raises(DeliveryFailed, match="rejected more than 3 records, the first with"):
        lake.put([("x", {"name": "big", "amount": 1 << 40})] * 5)


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ([("name", pa.string())], 'it has no column "amount" of type int64'),
        ([("name", pa.list_(pa.string())), ("amount", pa.int64())], 'its column "name" is'),
    ],
)
def test_a_table_that_does_not_fit_is_refused_when_the_sink_is_opened(
    lake: Lake, columns: list[tuple[str, pa.DataType]], cause: str
) -> None:
    lake.make(pa.schema(columns))
    with pytest.raises(SinkMisfit, match=cause):
        lake.open()


def test_a_required_column_without_values_is_refused(lake: Lake) -> None:
    lake.make(pa.schema([("name", pa.string()), ("amount", pa.int64()), pa.field("day", pa.date32(), nullable=False)]))
    with pytest.raises(SinkMisfit, match='"day" is required, and the records have none'):
        lake.open()


def test_other_columns_of_the_table_are_null_and_are_kept(lake: Lake) -> None:
    lake.mode = "upsert"
    lake.make(pa.schema([("key", pa.string()), ("note", pa.string()), ("name", pa.string()), ("amount", pa.int64())]))
    lake.put([ANN])
    assert lake.rows() == [("a", None, "ann", 1)]


def test_a_table_is_created_with_partitions(lake: Lake) -> None:
    lake.options = {"partition_by": ("name",)}
    lake.put([ANN, BOB])
    lake.put([EVE], Batch(1, 2))
    lake.put([BOB], Batch(2, 2))
    assert lake.rows() == [("ann", 1), ("bob", 2), ("bob", 2)]


def test_impossible_options_are_refused_before_anything_runs(lake: Lake) -> None:
    for types, options, mode, cause in (
        (Types(None, None), {}, "append", "these values have no type"),
        (lake.types, {"key": ("name",)}, "append", "key= is for rows that are replaced"),
        (lake.types, {"with_key": True}, "upsert", "with_key= is for appended rows"),
        (lake.types, {"key": ("nothing",)}, "upsert", 'key= names "nothing"'),
        (lake.types, {"renamed": (("nothing", "x"),)}, "append", 'renames "nothing"'),
        (lake.types, {"partition_by": ("nothing",)}, "append", 'names "nothing", which is not a column'),
        (Types(typed("double"), lake.types.value), {}, "upsert", "rows cannot be identified"),
        (lake.types, {}, "replace", 'no mode "replace"'),
    ):
        lake.options, lake.mode = options, mode  # type: ignore[assignment]
        with pytest.raises(TopologyError, match=cause):
            lake.target().check(types, Guarantee.EXACTLY_ONCE)
