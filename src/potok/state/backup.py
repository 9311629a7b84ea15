"""A backup of the state of a query: a directory with a file of cells for each shard, and a manifest.

Cells have the same format in every store, so a backup of one store can be restored into any other. Files are Arrow
streams of (table, key, cell); the manifest has their checksums, and each cell has its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from potok.errors import StateError
from potok.permissions import private_opener
from potok.state.cell_batches import OPTIONS, SCHEMA, cell_batch, cell_rows
from potok.state.entry import Entry
from potok.state.store import Row, ShardSnapshot

MANIFEST = "backup.json"
FORMAT = 3

_FILE_NAME = re.compile(r"shard-\d+\.arrow")

PAGE = 20_000
"""Cells per record batch of a file."""


class NoBackup(StateError):
    """A directory that holds no backup, or one in another format."""

    def __init__(self, directory: Path, why: str) -> None:
        super().__init__(
            f"{directory} does not contain a readable backup: {why}",
            hint="create one with potok state backup QUERY --to DIR",
        )


class DamagedBackup(StateError):
    """A damaged file of a backup."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged: {why}", hint="use another copy of the backup")


@dataclass(frozen=True, slots=True)
class ShardFile:
    name: str
    cells: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains: a batch with its offsets and watermarks, and the metadata needed to read its cells."""

    query: str
    entry: Entry
    metadata_keys: Mapping[str, bytes]
    files: tuple[ShardFile, ...]
    created_at_ms: int
    location: str

    @property
    def cells(self) -> int:
        return sum(file.cells for file in self.files)

    def write(self, directory: Path) -> None:
        data = {
            "format": FORMAT,
            "query": self.query,
            "created_at_ms": self.created_at_ms,
            "location": self.location,
            "entry": json.loads(self.entry.to_bytes()),
            "metadata": {name: base64.b64encode(value).decode() for name, value in self.metadata_keys.items()},
            "files": [asdict(file) for file in self.files],
        }
        _durable(directory / MANIFEST, json.dumps(data | {"sha256": _sum(data)}, indent=2).encode())

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        try:
            data: Any = json.loads((directory / MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            raise NoBackup(directory, str(error)) from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            found = data.get("format") if isinstance(data, dict) else None
            raise NoBackup(directory, f"its format is {found}, not {FORMAT}")
        if data.pop("sha256", None) != _sum(data):
            raise DamagedBackup(directory / MANIFEST, "its checksum does not match")
        return cls(
            data["query"],
            Entry.of_bytes(json.dumps(data["entry"]).encode()),
            {name: base64.b64decode(text) for name, text in data["metadata"].items()},
            tuple(_listed(directory, file) for file in data["files"]),
            data["created_at_ms"],
            data["location"],
        )


def _listed(directory: Path, file: Mapping[str, Any]) -> ShardFile:
    """Return the path of a file in a manifest, which must be in the directory of the manifest."""
    if not _FILE_NAME.fullmatch(str(file["name"])):
        raise NoBackup(directory, f"it lists a file {file['name']!r}")
    return ShardFile(**file)


def write_shard(directory: Path, shard: int, snapshot: ShardSnapshot) -> ShardFile:
    """Write the cells of a shard to a file that is durable when this returns."""
    name, count = f"shard-{shard}.arrow", 0
    with open(directory / name, "wb", opener=private_opener) as file:
        with pa.ipc.new_stream(file, SCHEMA, options=OPTIONS) as writer:
            tables = snapshot.tables()
            for number, table in enumerate(tables):
                for page in _pages(snapshot.rows(table)):
                    writer.write_batch(cell_batch(tables, number, page))
                    count += len(page)
        file.flush()
        os.fsync(file.fileno())
    return ShardFile(name, count, (directory / name).stat().st_size, _digest(directory / name))


def _pages(rows: Iterable[Row]) -> Iterator[list[Row]]:
    page: list[Row] = []
    for row in rows:
        page.append(row)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def check_file(directory: Path, file: ShardFile) -> None:
    """Verify the checksum of a file."""
    path = directory / file.name
    try:
        found = _digest(path)
    except OSError as error:
        raise DamagedBackup(path, str(error)) from error
    if found != file.sha256:
        raise DamagedBackup(path, "its checksum does not match")


def read_shard(directory: Path, file: ShardFile) -> Iterator[tuple[str, list[Row]]]:
    """Read the cells of a file, table by table, in pages."""
    path = directory / file.name
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from cast("Iterator[tuple[str, list[Row]]]", cell_rows(reader))
    except (OSError, pa.ArrowException) as error:
        raise DamagedBackup(path, str(error)) from error


def _sum(data: Mapping[str, Any]) -> str:
    """Compute the checksum of a manifest, whatever its whitespace."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _durable(path: Path, data: bytes) -> None:
    with open(path, "wb", opener=private_opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
