"""What Potok writes can be read by its owner alone, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import potok
from potok import StreamsBuilder
from potok.log.kafka.staged_rows import INLINE_BYTES, stage_rows
from potok.log.open import open_broker
from potok.permissions import private_directory, write_private
from potok.runtime.operations.backup import backup

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.fixture(autouse=True, params=[0o022, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def open_to_others(directory: Path) -> list[str]:
    """Directories and files under this one, and itself, that others could read or write."""
    found = [directory, *directory.rglob("*")]
    assert len(found) > 1
    return [f"{path} {oct(path.stat().st_mode)}" for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_a_directory_is_private_with_all_that_were_missing_above_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(0o755)
    private_directory(shared / "a" / "b")
    private_directory(shared / "a" / "b")
    assert not open_to_others(shared / "a")
    assert stat.S_IMODE(shared.stat().st_mode) & 0o055


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"theirs")
    path.chmod(0o666)
    with path.open("rb") as theirs:
        write_private(path, b"ours")
        assert theirs.read() == b"theirs"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"ours", 0o600)


def test_the_log_is_private(tmp_path: Path) -> None:
    data = tmp_path / "here" / "data"
    broker = open_broker(data)
    archive = tmp_path / "archive"
    broker.create_topic("orders", segment_bytes=1000, archive=archive)
    with potok.Producer(data) as producer:
        for number in range(200):
            producer.send("orders", {"n": number, "text": "x" * 100}, key=f"k{number % 7}")
    with potok.Consumer(data, "orders", group="g", start="earliest", until_end=True) as consumer:
        assert list(consumer)
    assert broker.archive_topic("orders", seal=True)
    broker.create_topic("prices", cleanup_policy="compact")
    with potok.Producer(data) as producer:
        for number in range(20):
            producer.send("prices", {"n": number}, key="k")
    assert broker.compact_topic("prices", seal=True)
    assert not open_to_others(tmp_path / "here")
    assert not open_to_others(archive)


def test_staged_output_is_private(tmp_path: Path) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"x": pa.array([b"x" * INLINE_BYTES])})
    stage_rows(tmp_path / "staging", "topic", 0, batch)
    assert not open_to_others(tmp_path / "staging")


@pytest.mark.spark
def test_all_that_a_query_keeps_is_private(spark: SparkContext, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with potok.Producer(data) as producer:
        for number in range(100):
            producer.send("orders", {"n": number}, key=f"k{number % 7}")
    builder = StreamsBuilder("counting")
    builder.stream("orders").group_by_key().count(name="counts").to_stream().to("counted")
    potok.run(builder, broker=data, until_end=True)
    assert not open_to_others(data)
    backup(open_broker(data), "counting", tmp_path / "backups" / "first")
    assert not open_to_others(tmp_path / "backups")
