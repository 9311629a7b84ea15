"""All tables of a query."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.log.errors import BrokerClosed
from potok.log.open import open_broker
from potok.snapshots.tables import NoSuchQuery, NoSuchTable, known_queries, open_tables


def counts() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    builder.stream("t").group_by_key().count(name="order_counts")
    builder.table("users")
    return builder


def test_tables_are_found_by_directory_and_name(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        driver.send("t", 1, "k", timestamp=1)
        driver.run()
        tables = open_tables(f"file:{tmp_path}", "shop")
        assert list(tables) == ["order_counts", "users"]
        assert tables["order_counts"].get("k") == 1


def test_a_query_that_has_not_run_a_batch_has_empty_tables(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        assert driver.tables.snapshot() == {"order_counts": {}, "users": {}}


def test_an_unknown_table_is_reported_with_the_most_similar_name(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        with pytest.raises(NoSuchTable) as caught:
            driver.tables["order_count"]
        assert "order_counts" in caught.value.hint
        with pytest.raises(NoSuchTable, match="zzz") as caught:
            driver.tables["zzz"]
        assert "users" in caught.value.hint


def test_an_unknown_table_is_a_key_error(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        with pytest.raises(KeyError) as caught:
            driver.tables["zzz"]
        assert str(caught.value).startswith('query "shop" has no table "zzz"\n')
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), NoSuchTable)


def test_a_with_block_closes_only_what_it_opened(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        driver.send("t", 1, "k", timestamp=1)
        driver.run()
        with open_tables(tmp_path, "shop") as tables:
            assert tables["order_counts"].get("k") == 1
        with pytest.raises(BrokerClosed):
            tables["order_counts"].get("k")
        assert repr(tables) == '<Tables of query "shop", closed>'
        shared = open_broker(tmp_path)
        assert "users" in shared.topics()
        assert driver.tables["order_counts"].get("k") == 1
    shared.close()


def test_a_table_keeps_its_connection_open(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        driver.send("t", 1, "k", timestamp=1)
        driver.run()
        counted = open_tables(tmp_path, "shop")["order_counts"]
        assert counted.get("k") == 1


def test_an_unknown_query_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    open_broker(tmp_path)
    with pytest.raises(NoSuchQuery) as caught:
        open_tables(tmp_path, "shop")
    assert "no query" in caught.value.hint
    with InProcess(counts(), directory=tmp_path) as driver:
        assert known_queries(driver.broker) == ["shop"]
        with pytest.raises(NoSuchQuery) as caught:
            open_tables(tmp_path, "other")
        assert "shop" in caught.value.hint
    open_broker(tmp_path).close()


def test_the_repr_lists_the_tables(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        assert repr(driver.tables) == '<Tables of query "shop": order_counts, users>'
        assert str(driver.table("users")) == '<Table "users" of query "shop", keys string>'


def test_a_snapshot_is_of_one_batch(tmp_path: Path) -> None:
    with InProcess(counts(), directory=tmp_path) as driver:
        driver.send("t", 1, "k", timestamp=1)
        driver.send("users", {"name": "x"}, "u", timestamp=1)
        driver.run()
        assert driver.tables.snapshot() == {"order_counts": {"k": 1}, "users": {"u": {"name": "x"}}}


@pytest.mark.parametrize("name", ["a.deleted", "a.by_end", "a.by_end.deleted", "potok.meta"])
def test_tables_with_any_names_are_separate(name: str) -> None:
    """Either the name is rejected when the topology is built, or it works like any other."""
    builder = StreamsBuilder("q")
    builder.stream("t").to_table(name="a")
    builder.stream("u").to_table(name=name)
    try:
        builder.build()
    except TopologyError:
        return
    with InProcess(builder, shards=1) as driver:
        for value in (1, None, 2):
            driver.send("t", value, "k", timestamp=1)
            driver.send("u", value, "z" * 20, timestamp=1)
            driver.run()
        assert driver.tables.snapshot() == {"a": {"k": 2}, name: {"z" * 20: 2}}
