from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.lakes.iceberg import IcebergTarget
from potok.testing import TestDriver
from potok.topology.nodes import Deliver


def targets(builder: StreamsBuilder) -> list[object]:
    return [node.target for node in builder.build().of_type(Deliver)]


def test_streams_are_appended_and_tables_maintained_by_key(tmp_path: Path) -> None:
    builder = StreamsBuilder("lake")
    orders = builder.stream("orders", value="user string, amount double")
    orders.to_delta(tmp_path / "orders")
    counts = orders.group_by("user").count(name="counts")
    counts.to_delta(tmp_path / "counts", columns={"value": "n"})
    with TestDriver(builder) as driver:
        for user in ("ann", "bob", "ann"):
            driver.send("orders", {"user": user, "amount": 1.0})
            driver.run()
    assert len(DeltaTable(str(tmp_path / "orders")).to_pyarrow_table()) == 3
    rows = DeltaTable(str(tmp_path / "counts")).to_pyarrow_table().sort_by("key").to_pylist()
    assert rows == [{"key": "ann", "n": 2}, {"key": "bob", "n": 1}]


def test_rows_that_do_not_fit_become_dead_letters(tmp_path: Path) -> None:
    builder = StreamsBuilder("lake")
    builder.stream("orders", value="user string, amount double").to_delta(tmp_path / "orders")
    with TestDriver(builder) as driver:
        driver.send("orders", {"user": "ann", "amount": 1.0})
        driver.run()
        DeltaTable(str(tmp_path / "orders")).alter.add_constraint({"positive": "amount > 0"})
        driver.send("orders", {"user": "bob", "amount": -1.0})
        driver.send("orders", {"user": "eve", "amount": 2.0})
        driver.run()
        [dead_letter] = driver.dead_letters()
        assert (dead_letter.offset, dead_letter.error) == (1, "it violates a constraint: amount > 0")
    assert sorted(DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().column("user").to_pylist()) == ["ann", "eve"]


def test_a_catalog_is_a_name_or_properties_with_a_name() -> None:
    builder = StreamsBuilder("lake")
    orders = builder.stream("orders", value="user string")
    orders.to_iceberg("shop.a", catalog="prod")
    orders.to_iceberg("shop.b", catalog={"name": "dev", "type": "sql", "uri": "postgresql://me:secret@localhost/c"})
    orders.to_iceberg("shop.c", catalog={"uri": "http://localhost:8181"})
    found = [target for target in targets(builder) if isinstance(target, IcebergTarget)]
    assert [target.catalog for target in found] == ["prod", "dev", "potok"]
    assert "secret" not in repr(found)


def test_a_url_stays_as_it_is_and_a_path_becomes_absolute() -> None:
    builder = StreamsBuilder("lake")
    orders = builder.stream("orders", value="user string")
    orders.to_delta("s3://lake/a", storage_options={"AWS_SECRET_ACCESS_KEY": "secret"})
    orders.to_delta("lake/b")
    found = [target for target in targets(builder) if isinstance(target, DeltaTarget)]
    assert [target.uri for target in found] == ["s3://lake/a", str(Path("lake/b").resolve())]
    assert "secret" not in repr(found)


def test_an_untyped_stream_is_refused_with_its_line() -> None:
    builder = StreamsBuilder("lake")
    builder.stream("orders").to_delta("lake/orders")
    with pytest.raises(TopologyError, match="these values have no type") as caught:
        builder.build()
    assert caught.value.at is not None
