from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkMisfit, SinkTaken
from potok.sinks.files import FilesTarget, batches_in
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, PartWriter, Types
from tests.sinks.rows import deliver, opening, prepared, rows_of, typed

TYPES = Types(typed("string"), typed("user string, amount bigint"))
DYNAMIC = Types(typed("string"), None)
ORDERS = [("a", {"user": "ann", "amount": 1}), ("b", {"user": "bob", "amount": 2})]
MORE = [("c", {"user": "cid", "amount": 3})]


def target(path: Path, format_name: str = "parquet", compression: str = "zstd", with_key: bool = False) -> FilesTarget:
    return FilesTarget(str(path), format_name, compression, with_key)


def write(path: Path, sink_writer: PartWriter, records: list[tuple[str, dict[str, object]]], batch: Batch) -> None:
    deliver(target(path), sink_writer, rows_of(records, TYPES), TYPES, batch)


def visible(path: Path) -> list[str]:
    """What somebody sees who globs for Parquet files."""
    return sorted(found.name for found in path.glob("*.parquet"))


def test_a_batch_becomes_files_and_a_manifest_that_names_them(tmp_path: Path) -> None:
    sink_writer = target(tmp_path).open(opening(TYPES))
    parts = [target(tmp_path).write(rows_of(records, TYPES), "q", "orders.sink") for records in (ORDERS, MORE)]
    assert visible(tmp_path) == []
    sink_writer.accept(Batch(1, 7), parts)
    assert visible(tmp_path) == ["part-0000000007-000.parquet", "part-0000000007-001.parquet"]
    assert pq.read_table(tmp_path).to_pylist() == [value for _, value in ORDERS + MORE]
    manifest = json.loads((tmp_path / "_potok" / "0000000007.json").read_text())
    assert (manifest["query"], manifest["step"], manifest["batch"], manifest["rows"]) == ("q", "orders.sink", 7, 3)
    names = visible(tmp_path)
    assert [(file["name"], file["rows"]) for file in manifest["files"]] == [(names[0], 2), (names[1], 1)]
    assert batches_in(tmp_path) == {7: [tmp_path / name for name in names]}


def test_a_batch_that_comes_again_replaces_its_files_also_if_there_are_fewer(tmp_path: Path) -> None:
    first = target(tmp_path).open(opening(TYPES))
    first.accept(Batch(1, 1), [target(tmp_path).write(rows_of(r, TYPES), "q", "orders.sink") for r in (ORDERS, MORE)])
    again = target(tmp_path).open(opening(TYPES, epoch=2))
    write(tmp_path, again, ORDERS + MORE, Batch(2, 1))
    assert visible(tmp_path) == ["part-0000000001-000.parquet"]
    assert len(pq.read_table(tmp_path)) == 3


def test_a_batch_that_comes_again_without_records_leaves_no_files_behind(tmp_path: Path) -> None:
    write(tmp_path, target(tmp_path).open(opening(TYPES)), ORDERS, Batch(1, 1))
    write(tmp_path, target(tmp_path).open(opening(TYPES, epoch=2)), MORE, Batch(2, 2))
    assert visible(tmp_path) == ["part-0000000002-000.parquet"]
    assert list(batches_in(tmp_path)) == [2]


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_without_exactly_once_nothing_is_replaced_or_owned(tmp_path: Path, guarantee: Guarantee) -> None:
    for epoch in (1, 2):
        write(tmp_path, target(tmp_path).open(opening(TYPES, guarantee, epoch=epoch)), ORDERS, Batch(epoch, 1))
    other = target(tmp_path).open(opening(TYPES, guarantee, query="other"))
    write(tmp_path, other, MORE, Batch(1, 1))
    assert len(visible(tmp_path)) == 3
    assert len(pq.read_table(tmp_path)) == 5
    assert batches_in(tmp_path) == {}


def test_what_dead_tasks_wrote_is_removed_at_the_next_start_and_at_the_next_batch(tmp_path: Path) -> None:
    sink_writer = target(tmp_path).open(opening(TYPES))
    target(tmp_path).write(rows_of(MORE, TYPES), "q", "orders.sink")
    write(tmp_path, sink_writer, ORDERS, Batch(1, 1))
    assert list(tmp_path.rglob("*.tmp")) == []
    target(tmp_path).write(rows_of(MORE, TYPES), "q", "orders.sink")
    target(tmp_path).open(opening(TYPES, epoch=2, committed=1))
    assert list(tmp_path.rglob("*.tmp")) == []
    assert len(pq.read_table(tmp_path)) == 2


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    target(tmp_path).open(opening(TYPES))
    with pytest.raises(SinkTaken, match='of query "q"'):
        target(tmp_path).open(opening(TYPES, query="other"))


def test_a_query_that_was_started_over_does_not_mix_its_batches_with_old_ones(tmp_path: Path) -> None:
    write(tmp_path, target(tmp_path).open(opening(TYPES, committed=4)), ORDERS, Batch(1, 5))
    target(tmp_path).open(opening(TYPES, epoch=2, committed=4))
    with pytest.raises(SinkAhead, match="has seen batch 5, but the query has committed 0"):
        target(tmp_path).open(opening(TYPES))


def test_json_lines_hold_the_value_or_key_time_and_value(tmp_path: Path) -> None:
    plain, whole = target(tmp_path / "a", "json", "none"), target(tmp_path / "b", "json", "gzip", with_key=True)
    records = [("a", {"n": [1, 2]}), ("ж", "text\nof two lines"), ("c", None)]
    refused = deliver(plain, plain.open(opening(DYNAMIC)), rows_of(records, DYNAMIC, 5), DYNAMIC, Batch(1, 1))
    assert list(refused) == [2]
    assert "with_key=True" in refused[2]
    (found,) = (tmp_path / "a").glob("*.json")
    assert [json.loads(line) for line in found.read_text().splitlines()] == [value for _, value in records[:2]]
    assert deliver(whole, whole.open(opening(DYNAMIC)), rows_of(records, DYNAMIC, 5), DYNAMIC, Batch(1, 1)) == {}
    (found,) = (tmp_path / "b").glob("*.json.gz")
    assert [json.loads(line) for line in gzip.decompress(found.read_bytes()).splitlines()] == [
        {"key": key, "timestamp": 5 + n, "value": value} for n, (key, value) in enumerate(records)
    ]


def test_parquet_with_the_key_has_three_columns_and_keeps_null_values(tmp_path: Path) -> None:
    whole = target(tmp_path, with_key=True)
    records = [("a", ORDERS[0][1]), ("a", None)]
    assert deliver(whole, whole.open(opening(TYPES)), rows_of(records, TYPES, 1_000), TYPES, Batch(1, 1)) == {}
    found = pq.read_table(tmp_path)
    assert found.column("key").to_pylist() == ["a", "a"]
    assert found.column("value").to_pylist() == [ORDERS[0][1], None]
    assert [at.timestamp() for at in found.column("timestamp").to_pylist()] == [1.0, 1.001]
    assert prepared(target(tmp_path), rows_of(records, TYPES), TYPES)[1].keys() == {1}


@pytest.mark.parametrize(
    ("made", "types", "hint"),
    [
        (target(Path("x"), "csv"), TYPES, "parquet or json"),
        (target(Path("x"), "json", "snappy"), TYPES, "none, gzip, zstd"),
        (target(Path("x")), DYNAMIC, 'format="json"'),
        (target(Path("x"), with_key=True), Types(None, TYPES.value), 'format="json"'),
    ],
)
def test_what_can_never_be_written_is_refused_before_anything_runs(made: FilesTarget, types: Types, hint: str) -> None:
    with pytest.raises(TopologyError) as caught:
        made.check(types, Guarantee.EXACTLY_ONCE)
    assert hint in caught.value.hint


def test_a_directory_that_cannot_be_written_to_stops_the_query_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DeliveryFailed, match="rejected batch"):
        target(tmp_path / "file" / "x").open(opening(TYPES))


def test_a_part_that_vanished_is_an_error_and_not_a_smaller_batch(tmp_path: Path) -> None:
    sink_writer = target(tmp_path).open(opening(TYPES))
    part = target(tmp_path).write(rows_of(ORDERS, TYPES), "q", "orders.sink")
    os.unlink(part.path)
    with pytest.raises(DeliveryFailed, match="batch 1"):
        sink_writer.accept(Batch(1, 1), [part])
    assert batches_in(tmp_path) == {}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"null", b"[]", b'{"query": "q"}', b'{"query": 1, "step": []}', b"[" * 100_000]
)
def test_a_damaged_owner_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    target(tmp_path).open(opening(TYPES)).close()
    owner = tmp_path / "_potok" / "owner.json"
    owner.write_bytes(content)
    with pytest.raises(SinkMisfit, match=r"owner\.json does not name the step") as raised:
        target(tmp_path).open(opening(TYPES))
    assert "restore the file from a backup" in str(raised.value)


@pytest.mark.parametrize("name", ["1 copy.json", "0000000001 (2).json", "2\u00b2.json"])
def test_foreign_files_next_to_manifests_are_ignored(tmp_path: Path, name: str) -> None:
    sink_writer = target(tmp_path).open(opening(TYPES))
    write(tmp_path, sink_writer, ORDERS, Batch(1, 1))
    (tmp_path / "_potok" / name).write_text("not ours")
    target(tmp_path).open(opening(TYPES, epoch=2)).close()
    assert list(batches_in(tmp_path)) == [1]
