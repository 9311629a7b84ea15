"""Damage in what Spark wrote down of a query is found before Spark reads it."""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

import pytest

from potok import StreamsBuilder
from potok.engine.checkpoint import CheckpointDamaged, check_checkpoint, drop_unbegun
from potok.engine.prepare import prepare
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings

OFFSETS = b'v1\n{"batchWatermarkMs":0}\n{"topics": {"orders": {"0": %d}}}'
COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
SUM_SIZE = 512


def write(path: Path, data: bytes, *, summed: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if summed:
        sums = [crc32(data[start : start + SUM_SIZE]) for start in range(0, len(data), SUM_SIZE)]
        path.with_name(f".{path.name}.crc").write_bytes(struct.pack(f">4sI{len(sums)}I", b"crc\x00", SUM_SIZE, *sums))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Ten batches begun, nine ended; in the last file, a line longer than what one checksum is of."""
    directory = tmp_path / "checkpoint"
    write(directory / "metadata", b'{"id":"51c0e96f"}')
    for number in range(11):
        write(directory / "offsets" / str(number), OFFSETS % number + b" " * 100 * number)
    for number in range(10):
        write(directory / "commits" / str(number), COMMIT)
    return directory


def test_what_spark_wrote_is_well(checkpoint: Path) -> None:
    check_checkpoint("shop", checkpoint)
    check_checkpoint("shop", checkpoint.with_name("of a query that never ran"))


@pytest.mark.parametrize("name", ["metadata", "offsets/9", "offsets/10", "commits/9"])
@pytest.mark.parametrize("length", [0, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_named_with_what_to_type(checkpoint: Path, name: str, length: float) -> None:
    path = checkpoint / name
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * length)])
    with pytest.raises(CheckpointDamaged, match=f'"shop" is damaged: .*{name} ') as caught:
        check_checkpoint("shop", checkpoint)
    assert f"rm -r {checkpoint}" in caught.value.hint


@pytest.mark.parametrize("position", [0, 30, 900])
def test_a_changed_byte_does_not_fit_its_checksum(checkpoint: Path, position: int) -> None:
    path = checkpoint / "offsets" / "10"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointDamaged, match="checksum"):
        check_checkpoint("shop", checkpoint)


@pytest.mark.parametrize("data", [b"", b"v1", b"v1\n", b"garbage", b'v1\n{"a": 1}\n{"b', b"\x00" * 50])
def test_damage_is_found_without_checksums_too(checkpoint: Path, data: bytes) -> None:
    path = checkpoint / "offsets" / "10"
    path.with_name(".10.crc").unlink()
    write(path, data, summed=False)
    with pytest.raises(CheckpointDamaged):
        check_checkpoint("shop", checkpoint)


def test_files_that_spark_does_not_read_again_may_be_as_they_are(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "3").write_bytes(b"")
    (checkpoint / "offsets" / ".11.crc.tmp").write_bytes(b"")
    check_checkpoint("shop", checkpoint)


def test_a_query_does_not_start_on_a_damaged_checkpoint_and_gives_its_lock_back(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    builder = StreamsBuilder("shop")
    builder.stream("orders").to("copy")
    last = tmp_path / "queries" / "shop" / "checkpoint" / "offsets" / "0"
    write(last, b"")
    with pytest.raises(CheckpointDamaged):
        prepare(builder, broker, Settings())
    write(last, OFFSETS % 0)
    prepare(builder, broker, Settings()).release()


def test_a_checkpoint_that_spark_was_ended_in_before_its_first_batch_does_not_keep_the_query_from_starting(
    tmp_path: Path,
) -> None:
    checkpoint = tmp_path / "queries" / "copying" / "checkpoint"
    write(checkpoint / "metadata", b'{"id":"51c0e96f"}')
    write(checkpoint / "offsets" / ".0.3629d098.tmp", b"")
    builder = StreamsBuilder("copying")
    builder.stream("orders").to("copies")
    prepare(builder, EmbeddedBroker.shared(tmp_path), Settings(broker=str(tmp_path))).release()
    assert not checkpoint.exists(), "Spark begins only where there is nothing"


@pytest.mark.parametrize("kept", ["offsets/0", "commits/0"])
def test_a_checkpoint_with_a_batch_is_left_as_it_is(tmp_path: Path, kept: str) -> None:
    write(tmp_path / kept, OFFSETS % 0)
    drop_unbegun(tmp_path)
    assert (tmp_path / kept).exists()
