"""The readers of the data source, called as Spark calls them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan, StringStartsWith

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.tables import NoSuchTable
from potok.spark.data_source.filters import part_of
from potok.spark.data_source.options import BadOptionError
from potok.spark.data_source.source import PotokDataSource
from potok.spark.data_source.table_source import (
    FilteredTableReader,
    NoSuchBatchError,
    ShardPartition,
    SnapshotOvertakenError,
    TableReader,
    TableSource,
)
from potok.spark.data_source.table_stream import CopyMissingError, TableStreamReader
from potok.spark.data_source.topic_columns import UndecodableRecordError
from potok.spark.data_source.topic_source import FilteredTopicReader, RecordsGoneError
from potok.topology.nodes.windows import tumbling


def shop(directory: Path, *, shards: int = 2) -> InProcess:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="amount double").group_by_key()
    orders.count(name="counts")
    orders.windowed_by(tumbling("10 ms")).count(name="windows")
    builder.table("users", value="name string", history="1 day")
    return InProcess(builder, directory=directory, shards=shards)


def sent(driver: InProcess, keys: str) -> None:
    for key in keys:
        driver.send("orders", {"amount": 1.0}, key)
    driver.run()


def source(directory: Path, **options: Any) -> PotokDataSource:
    return PotokDataSource({"broker": f"file:{directory}", **{name: str(given) for name, given in options.items()}})


def opened(directory: Path, **options: Any) -> Any:
    """A reader as it arrives in a task."""
    found = source(directory, **options)
    return pickle.loads(pickle.dumps(found.reader(found.schema())))


def rows(reader: Any, partitions: Any = None) -> list[dict[str, Any]]:
    planned = reader.partitions() if partitions is None else partitions
    return sorted((row for part in planned for batch in reader.read(part) for row in batch.to_pylist()), key=repr)


def counts(**found: int) -> list[dict[str, Any]]:
    return [{"key": key, "value": count} for key, count in found.items()]


def test_a_plan_reads_its_batch_while_the_next_one_is_committed(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        sent(driver, "abca")
        reader = opened(tmp_path, table="counts", snapshot="direct")
        planned = reader.partitions()
        sent(driver, "aax")
        assert rows(reader, planned) == counts(a=2, b=1, c=1)


def test_a_plan_that_two_batches_have_overtaken_is_an_error(tmp_path: Path) -> None:
    with shop(tmp_path, shards=1) as driver:
        sent(driver, "abca")
        reader = opened(tmp_path, table="counts", snapshot="direct")
        planned = reader.partitions()
        sent(driver, "a")
        sent(driver, "a")
        with pytest.raises(SnapshotOvertakenError, match="batch 1 any more"):
            rows(reader, planned)


def test_the_table_of_a_running_query_is_copied_first(tmp_path: Path) -> None:
    with shop(tmp_path / "data") as driver:
        sent(driver, "abca")
        reader = opened(tmp_path / "data", table="counts", snapshot="copy", copies=tmp_path / "copies")
        planned = reader.partitions()
        for _ in range(3):
            sent(driver, "ax")
        assert rows(reader, planned) == counts(a=2, b=1, c=1)


def test_the_batch_before_the_last_one_can_be_read(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        sent(driver, "ab")
        sent(driver, "ac")
        sent(driver, "ad")
        last = driver.tables.read(lambda snapshot: snapshot.batch)
    for snapshot in ("direct", "copy"):
        found = rows(opened(tmp_path, table="counts", as_of_batch=last - 1, snapshot=snapshot))
        assert found == counts(a=2, b=1, c=1)
    assert rows(opened(tmp_path, table="counts", as_of_batch=last)) == counts(a=3, b=1, c=1, d=1)
    with pytest.raises(NoSuchBatchError, match=f"its last batch is {last}"):
        opened(tmp_path, table="counts", as_of_batch=last - 2)


def test_a_table_with_a_history_is_read_as_of_an_instant(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        for at, name in [(10, "Ada"), (20, "Eve")]:
            driver.send("users", {"name": name}, "u", timestamp=at)
        driver.run()
        assert rows(opened(tmp_path, table="users", as_of=15)) == [{"key": "u", "name": "Ada"}]


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([EqualTo(("key",), "b")], "b"),
        ([In(("key",), ("a", "d", "z"))], "ad"),
        ([In(("key",), ("a", "d")), EqualTo(("key",), "d")], "d"),
        ([GreaterThanOrEqual(("key",), "c")], "cd"),
        ([GreaterThanOrEqual(("key",), "b"), LessThan(("key",), "d")], "bc"),
        ([StringStartsWith(("key",), "b")], "b"),
        ([EqualTo(("value",), 1)], "abcd"),
    ],
)
def test_filters_on_keys_narrow_what_is_read(tmp_path: Path, filters: Any, keys: str) -> None:
    with shop(tmp_path, shards=3) as driver:
        sent(driver, "abcd")
    found = source(tmp_path, table="counts")
    reader = FilteredTableReader(TableSource(_table(tmp_path)).options, found.schema())
    assert reader.pushFilters(filters) == filters
    assert [row["key"] for row in rows(reader)] == list(keys)


def test_a_filter_on_one_key_reads_one_shard(tmp_path: Path) -> None:
    with shop(tmp_path, shards=3) as driver:
        sent(driver, "abcd")
    reader = FilteredTableReader(_table(tmp_path), source(tmp_path, table="counts").schema())
    reader.pushFilters([EqualTo(("key",), "a")])
    assert len(reader.partitions()) == 1


def test_filters_on_windows_narrow_what_is_read(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        for at in (5, 15, 25):
            driver.send("orders", {"amount": 1.0}, "k", timestamp=at)
        driver.run()
        found = sorted(rows(opened(tmp_path, table="windows")), key=lambda row: row["window_start"])
        assert len(found) == 3
        layout = TableSource(_table(tmp_path, "windows")).layout
        part = part_of([GreaterThanOrEqual(("window_start",), found[1]["window_start"])], layout)
        assert part.starts[0] == 10
        reader = FilteredTableReader(_table(tmp_path, "windows"), source(tmp_path, table="windows").schema())
        reader.pushFilters([GreaterThanOrEqual(("window_start",), found[1]["window_start"])])
        assert sorted(rows(reader), key=lambda row: row["window_start"]) == found[1:]


def _table(directory: Path, table: str = "counts") -> Any:
    from potok.spark.data_source.options import parse_options

    return parse_options({"broker": f"file:{directory}", "table": table})


def produced(directory: Path, count: int = 10) -> None:
    with shop(directory) as driver:
        for at in range(count):
            driver.send("orders", {"amount": float(at)}, "k", timestamp=1_000 * at)


def offsets(directory: Path, **options: Any) -> list[int]:
    return [row["offset"] for row in rows(opened(directory, topic="orders", **options))]


def test_a_topic_is_read_by_offsets_or_by_time(tmp_path: Path) -> None:
    produced(tmp_path)
    assert sorted(offsets(tmp_path)) == list(range(10))
    assert sorted(offsets(tmp_path, starting_offsets='{"0": 7}')) == [7, 8, 9]
    assert sorted(offsets(tmp_path, ending_offsets='{"0": 2}')) == [0, 1]
    assert sorted(offsets(tmp_path, starting_timestamp=2_000, ending_timestamp="1970-01-01T00:00:04Z")) == [2, 3]
    with pytest.raises(RecordsGoneError, match="offsets 0 to 10, and 11"):
        offsets(tmp_path, starting_offsets='{"0": 11}')


def test_a_range_of_offsets_is_split_into_partitions(tmp_path: Path) -> None:
    produced(tmp_path)
    reader = opened(tmp_path, topic="orders", records_per_partition=4)
    assert [(part.start, part.end) for part in reader.partitions()] == [(0, 4), (4, 8), (8, 10)]


def test_filters_on_offset_and_time_narrow_the_range(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from potok.spark.data_source.options import parse_options

    produced(tmp_path)
    options: Any = parse_options({"broker": f"file:{tmp_path}", "topic": "orders"})
    reader = FilteredTopicReader(options, source(tmp_path, topic="orders").schema())
    since = GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC))
    reader.pushFilters([since, LessThan(("offset",), 6)])
    assert [(part.start, part.end) for part in reader.partitions()] == [(3, 7)]  # type: ignore[attr-defined]


def test_a_record_that_cannot_be_decoded_is_an_error_or_null(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        driver.send("orders", {"amount": 1.5}, "k")
        driver.send("orders", b"{", "k")
    with pytest.raises(UndecodableRecordError, match="record orders/0@1 cannot be decoded: value: "):
        rows(opened(tmp_path, topic="orders", value="amount double"))
    good, bad = sorted(
        rows(opened(tmp_path, topic="orders", value="amount double", mode="permissive")), key=lambda row: row["offset"]
    )
    assert (good["value"], good["error"]) == ({"amount": 1.5}, None)
    assert bad["value"] is None and bad["error"].startswith("value: ")


def stream(directory: Path, **options: Any) -> Any:
    found = source(directory, **options)
    return found.streamReader(found.schema())


def changes(reader: Any, start: dict[str, int], end: dict[str, int]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(reader, reader.partitions(start, end))]


def test_changes_between_two_offsets_are_the_same_whenever_they_are_read(tmp_path: Path) -> None:
    options = {"table": "users", "changes": True, "copies": tmp_path / "copies"}
    with shop(tmp_path / "data") as driver:
        for key, name in [("a", "Ada"), ("b", "Bob"), ("c", "Cid")]:
            driver.send("users", {"name": name}, key)
        driver.run()
        reader = stream(tmp_path / "data", **options)
        begin = reader.initialOffset()
        first = reader.latestOffset(begin, None)
        driver.send("users", {"name": "Bea"}, "b")
        driver.send("users", None, "c")
        driver.run()
        second = reader.latestOffset(first, None)
        driver.send("users", {"name": "Ann"}, "a")
        driver.run()
        for again in (reader, stream(tmp_path / "data", **options)):
            written = [("a", "Ada", "upsert"), ("b", "Bob", "upsert"), ("c", "Cid", "upsert")]
            assert changes(again, begin, first) == written
            assert changes(again, first, second) == [("b", "Bea", "upsert"), ("c", "Cid", "delete")]
            assert changes(again, second, second) == []
        reader.commit(second)
        with pytest.raises(CopyMissingError):
            changes(reader, first, second)


def test_a_stream_of_changes_needs_a_directory_of_its_own(tmp_path: Path) -> None:
    produced(tmp_path)
    with pytest.raises(BadOptionError, match="keeps copies") as caught:
        stream(tmp_path, table="counts", changes=True)
    assert 'option("copies", "DIRECTORY")' in caught.value.hint
    with pytest.raises(BadOptionError, match="is that of its changes"):
        stream(tmp_path, table="counts")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one table or one topic"),
        ({"table": "t", "topic": "t"}, "one table or one topic"),
        ({"table": "counts", "quary": "shop"}, 'no option "quary"'),
        ({"topic": "orders", "records_per_partition": "many"}, "not a number"),
        ({"topic": "orders", "records_per_partition": "0"}, "too small"),
        ({"topic": "orders", "max_offsets_per_trigger": "0"}, "too small"),
        ({"topic": "orders", "starting_offsets": "[1]"}, "cannot be read"),
        ({"topic": "orders", "starting_timestamp": "soon"}, "not an instant"),
        ({"table": "counts", "snapshot": "none"}, 'cannot be "none"'),
        ({"table": "counts", "changes": "true"}, "changes are read as a stream"),
    ],
)
def test_a_wrong_option_is_an_error(tmp_path: Path, options: dict[str, str], message: str) -> None:
    produced(tmp_path)
    with pytest.raises(BadOptionError, match=message):
        opened(tmp_path, **options)


def test_an_unknown_table_is_reported(tmp_path: Path) -> None:
    produced(tmp_path)
    with pytest.raises(NoSuchTable):
        opened(tmp_path, table="count", query="shop")
    with pytest.raises(NoSuchTable):
        opened(tmp_path, table="count")


def test_the_reader_of_a_stopped_query_reads_its_state_without_a_copy(tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        sent(driver, "ab")
    reader = opened(tmp_path, table="counts")
    assert isinstance(reader, TableReader) and not isinstance(reader, TableStreamReader)
    assert [part.copy for part in reader.partitions() if isinstance(part, ShardPartition)] == [None, None]
