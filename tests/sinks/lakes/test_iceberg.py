from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.lakes.iceberg import IcebergTarget
from potok.sinks.sink_spec import Batch, Types
from potok.sinks.typed_rows import RowShape
from tests.sinks.lakes.lake import IcebergLake
from tests.sinks.rows import opening, typed
from tests.sinks.tables import ANN, BOB, TYPES


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def test_a_batch_is_recognised_when_its_snapshot_is_gone(lake: IcebergLake) -> None:
    lake.put([ANN])
    table = lake.catalog.load_table("shop.orders")
    table.append(lake.table())
    with table.maintenance.expire_snapshots() as expire:
        expire.older_than(dt.datetime.now() + dt.timedelta(days=1))
    assert lake.versions() == 1
    lake.put([ANN], Batch(2, 1))
    assert lake.rows() == [("ann", 1), ("ann", 1)]


def test_a_lost_race_is_repeated_only_after_the_fence_was_read_again(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library by itself would append again what a successor has just appended."""
    before, after = lake.open(1), lake.open(2)
    refresh = type(lake.catalog.load_table("shop.orders")).refresh
    seen: list[int] = []

    def overtaken(table: object) -> object:
        found = refresh(table)  # type: ignore[arg-type]
        seen.append(1)
        if len(seen) == 1:
            lake.put([ANN], Batch(2, 1), after)
        return found

    monkeypatch.setattr("pyiceberg.table.Table.refresh", overtaken)
    with pytest.raises(SinkTaken):
        lake.put([ANN], Batch(1, 1), before)
    assert len(seen) > 2
    assert lake.rows() == [("ann", 1)]


def test_a_race_that_is_lost_for_ever_stops_the_query(lake: IcebergLake, monkeypatch: pytest.MonkeyPatch) -> None:
    sink_writer = lake.open()

    def lost(*_: object, **__: object) -> None:
        raise CommitFailedException("branch main has changed")

    monkeypatch.setattr("pyiceberg.catalog.sql.SqlCatalog.commit_table", lost)
    with pytest.raises(DeliveryFailed, match="branch main has changed"):
        lake.put([ANN], Batch(1, 1), sink_writer)


def test_rows_of_a_dead_attempt_that_were_rewritten_stop_the_query(lake: IcebergLake) -> None:
    lake.put([ANN, BOB])
    lake.catalog.load_table("shop.orders").delete("amount = 1")
    with pytest.raises(DeliveryFailed, match="left other rows, and the table was compacted since"):
        lake.put([BOB], Batch(2, 1))


def test_thousands_of_keys_of_two_columns_are_replaced(lake: IcebergLake) -> None:
    lake.mode, lake.options = "upsert", {"key": ("a", "b")}
    lake.types = Types(None, typed("a bigint, b string, amount bigint"))
    lake.put([(None, {"a": n % 70, "b": str(n), "amount": n}) for n in range(5_000)])
    lake.put([(None, {"a": n % 70, "b": str(n), "amount": -n}) for n in range(0, 5_000, 2)], Batch(1, 2))
    assert [row[2] for row in lake.rows()] == sorted(n if n % 2 else -n for n in range(5_000))


def test_a_process_that_dies_while_it_creates_a_table_leaves_none_without_its_partitions(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.options = {"partition_by": ("name",)}
    with monkeypatch.context() as dying:
        dying.setattr("pyiceberg.table.update.spec.UpdateSpec.add_identity", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lake.open()
    assert not lake.catalog.table_exists("shop.orders")
    lake.put([ANN])
    assert [field.name for field in lake.catalog.load_table("shop.orders").spec().fields] == ["name"]


def test_a_table_that_another_process_creates_at_the_same_time_is_used(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = SqlCatalog.create_table_transaction

    def overtaken(catalog: SqlCatalog, *arguments: Any) -> Any:
        creation = begin(catalog, *arguments)
        lake.make(pa.schema([("name", pa.string()), ("amount", pa.int64())]))
        return creation

    with monkeypatch.context() as racing:
        racing.setattr(SqlCatalog, "create_table_transaction", overtaken)
        lake.put([ANN])
    assert lake.rows() == [("ann", 1)]


def test_a_catalog_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/no/catalog.db", "warehouse": f"file://{tmp_path}"}
    target = IcebergTarget("shop.orders", "potok", tuple(properties.items()), RowShape("append"), (), 100)
    with pytest.raises(DeliveryFailed, match="unable to open database file"):
        target.open(opening(TYPES))
    unknown = IcebergTarget("shop.orders", "nowhere", (), RowShape("append"), (), 100)
    with pytest.raises(DeliveryFailed, match="URI missing"):
        unknown.open(opening(TYPES))


def test_a_table_without_a_namespace_is_refused() -> None:
    target = IcebergTarget("orders", "", (), RowShape("append"), (), None)
    with pytest.raises(TopologyError, match='"orders" has no namespace'):
        target.check(TYPES, Guarantee.EXACTLY_ONCE)
