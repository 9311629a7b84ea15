"""A snapshot of a shard as objects: the compact LMDB file in compressed parts, and a manifest that is written last."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path

import pyarrow as pa

from potok.backends.objects.object_client import ObjectDamaged
from potok.permissions import private_opener
from potok.state.cell import REPAIR
from potok.state.objects.chain import AT_ONCE, Chain
from potok.state.objects.delta import Base, Position, digest_of
from potok.state.objects.shard_copy import CopyDirectory, ShardCopy
from potok.storage.compact_copy import seal_compact_copy
from potok.storage.page_format import DATA_FILE, PageDamage

FORMAT = 1
PART = 16 << 20
"""Bytes of the file per part, before compression."""

_CODEC = "zstd"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: int
    digest: str


def write_snapshot(chain: Chain, directory: CopyDirectory, copy: ShardCopy) -> tuple[Position, Base]:
    """Write a snapshot of a copy; return its position, and the base of the deltas that follow."""
    path = directory.new_path()
    try:
        position = copy.copy_to(path)
        name = f"{chain.prefix}snapshot/{position.number:016d}-{position.digest[:16]}"
        run = secrets.token_hex(4)
        parts: list[Part] = []
        with ThreadPoolExecutor(AT_ONCE) as threads:
            pieces = _pieces(path / DATA_FILE)
            while some := list(islice(pieces, AT_ONCE)):
                numbers = count(len(parts))
                parts += threads.map(lambda data, n: _put_part(chain, f"{name}/{run}-{n:06d}", data), some, numbers)
        manifest = {"format": FORMAT, "position": str(position), "parts": [asdict(part) for part in parts]}
        # If there is one already, another process has written the same snapshot.
        chain.client.create(f"{name}/manifest", json.dumps(manifest).encode())
        return position, Base(position.number, name)
    finally:
        directory.discard(path)


def _put_part(chain: Chain, name: str, data: bytes) -> Part:
    chain.client.create(name, pa.compress(data, codec=_CODEC, asbytes=True))
    return Part(name, len(data), digest_of(data))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(PART):
            yield data


def restore_snapshot(chain: Chain, base: Base, path: Path) -> Position:
    """Write the file of a snapshot into a directory; return its position."""
    name = f"{base.name}/manifest"
    data = chain.content(name)
    try:
        manifest = json.loads(data)
        parts = [Part(**part) for part in manifest["parts"]]
        position, is_known = Position.of(manifest["position"]), manifest["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise ObjectDamaged(chain.client.location, name, str(error), REPAIR) from error
    if not is_known:
        why = f"its format is {manifest['format']}, not {FORMAT}"
        raise ObjectDamaged(chain.client.location, name, why, "use the version of Potok that wrote it")
    with open(path / DATA_FILE, "xb", opener=private_opener) as file, ThreadPoolExecutor(AT_ONCE) as threads:
        for first in range(0, len(parts), AT_ONCE):
            for data in threads.map(lambda part: _part(chain, part), parts[first : first + AT_ONCE]):
                file.write(data)
    try:
        seal_compact_copy(path)
    except PageDamage as error:
        raise ObjectDamaged(chain.client.location, name, str(error), REPAIR) from error
    return position


def _part(chain: Chain, part: Part) -> bytes:
    data = chain.content(part.name)
    try:
        plain: bytes = pa.decompress(data, decompressed_size=part.size, codec=_CODEC, asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ObjectDamaged(chain.client.location, part.name, str(error), REPAIR) from error
    if digest_of(plain) != part.digest:
        raise ObjectDamaged(chain.client.location, part.name, "its checksum does not match", REPAIR)
    return plain
