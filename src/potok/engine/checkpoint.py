"""What Spark writes down of a query, looked at before Spark reads it: there, damage ends in a stack trace.

Nothing that counts is in a checkpoint. Where a query stands is told by its ledger; Spark's files say where the batch
under way should end.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from zlib import crc32

from potok.errors import QueryError

_SUMS = struct.Struct(">4sI")
_MAGIC = b"crc\x00"
_VERSION = "v1"

_READ = {"offsets": 2, "commits": 1}
"""How many of the last files Spark reads at a start; older ones are deleted in time."""


class CheckpointDamaged(QueryError):
    """A file of Spark's checkpoint that is not what Spark wrote: often an empty one, after a power loss."""

    def __init__(self, query: str, path: Path, checkpoint: Path, why: str) -> None:
        super().__init__(
            f'the checkpoint of query "{query}" is damaged: {path} {why}',
            hint=f"delete it and start again: rm -r {checkpoint}; tables, topics and offsets are not in it. A batch "
            "that was under way is cut anew: a sink that goes by batches (HTTP, a function) may get its records twice",
        )


def drop_unbegun(checkpoint: Path) -> None:
    """Remove a checkpoint without a single batch. Spark, ended while it wrote the first one down, leaves a draft, and
    refuses to begin where it finds one."""
    if not any(path.name.isdigit() for name in _READ for path in (checkpoint / name).glob("*")):
        shutil.rmtree(checkpoint, ignore_errors=True)


def check_checkpoint(query: str, checkpoint: Path) -> None:
    """Raise if Spark could not go on from what is there."""
    for path in _read_by_spark(checkpoint):
        why = _damage(path)
        if why:
            raise CheckpointDamaged(query, path, checkpoint, why)


def _read_by_spark(checkpoint: Path) -> list[Path]:
    found = [checkpoint / "metadata"] if (checkpoint / "metadata").exists() else []
    for name, count in _READ.items():
        batches = sorted(int(path.name) for path in (checkpoint / name).glob("*") if path.name.isdigit())
        found += [checkpoint / name / str(batch) for batch in batches[-count:]]
    return found


def _damage(path: Path) -> str:
    """What is wrong with a file; nothing, if all is well."""
    data = path.read_bytes()
    if not data:
        return "is empty"
    if not _sums_fit(data, path.with_name(f".{path.name}.crc")):
        return "does not fit its checksum"
    lines = data.decode(errors="replace").splitlines()
    if path.name != "metadata" and lines[0] != _VERSION:
        return f"does not begin with {_VERSION}"
    try:
        documents = [json.loads(line) for line in lines if line not in (_VERSION, "-")]
    except ValueError:
        return "is not what Spark wrote"
    return "" if documents else "is cut off"


def _sums_fit(data: bytes, sums: Path) -> bool:
    """Whether the checksums that Hadoop keeps beside a file are those of its bytes. There may be none."""
    try:
        kept = sums.read_bytes()
        magic, size = _SUMS.unpack_from(kept)
    except (FileNotFoundError, struct.error):
        return True
    if magic != _MAGIC or not size:
        return True
    found = b"".join(crc32(data[start : start + size]).to_bytes(4, "big") for start in range(0, len(data), size))
    return found == kept[_SUMS.size :]
