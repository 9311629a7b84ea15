"""What would be gone on from if a query were started: its ledger, and the batch that Spark has begun and not ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from potok.log.broker import Broker
from potok.state.entry import Entry
from potok.state.offsets import Offsets
from potok.state.place import Place
from potok.state.store import StateMissing
from potok.views.cells import cells_of
from potok.views.ledger_view import read_entry
from potok.views.progress import Progress, read_progress
from potok.views.state_of import state_of
from potok.views.tables import NoSuchQuery, Tables, known_queries


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch that was begun and not committed. It is run again under its number, up to these offsets."""

    number: int
    records: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class Void:
    """The batches after `committed` of an earlier start never counted."""

    epoch: int
    committed: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`state` says where the cells are, `shards` how many bytes each has; `bytes` is what Spark writes down."""

    query: str
    entry: Entry
    progress: Progress | None
    pending: Pending | None
    voids: tuple[Void, ...]
    state: str
    shards: tuple[int, ...]
    keys: dict[str, int]
    bytes: int


def read_checkpoint(broker: Broker, query: str) -> Checkpoint:
    entry = read_entry(broker, query)
    if entry is None:
        raise NoSuchQuery(query, known_queries(broker))
    directory = _directory(broker, query)
    pending = None if directory is None else _pending(directory, entry)
    size = 0 if directory is None else sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    voids = tuple(Void(epoch, batch) for epoch, batch in sorted(entry.ended.items()))
    place = state_of(broker, query)
    shards = tuple(_shard_bytes(place.with_password(), shard) for shard in range(entry.shards))
    progress = read_progress(broker, query)
    keys = _keys(broker, query, progress)
    return Checkpoint(query, entry, progress, pending, voids, str(place.where), shards, keys, size)


def _keys(broker: Broker, query: str, progress: Progress | None) -> dict[str, int]:
    """The keys of each table, as the last batch counted them; they are counted if there was none since the start."""
    tables = Tables(broker, query)
    counted = progress.state_keys if progress else {}
    return {name: counted[name] if name in counted else len(tables[name]) for name in tables.names()}


def _shard_bytes(place: Place, shard: int) -> int:
    try:
        store = place.store(shard, create=False)
    except StateMissing:
        return 0
    try:
        return store.size_bytes()
    finally:
        store.close()


def _directory(broker: Broker, query: str) -> Path | None:
    """Where Spark keeps its offsets; a query that never ran a batch has none."""
    root = getattr(broker, "directory", None)
    path = None if root is None else Path(root) / "queries" / cells_of(broker, query) / "checkpoint"
    return path if path is not None and path.exists() else None


def _pending(directory: Path, entry: Entry) -> Pending | None:
    """The last batch that Spark wrote down, if the ledger does not know its end."""
    batches = [int(path.name) for path in (directory / "offsets").glob("*") if path.name.isdigit()]
    if not batches:
        return None
    try:
        text = (directory / "offsets" / str(max(batches))).read_text()
        offsets = Offsets.of_json(json.loads(text.splitlines()[-1]))
    except (OSError, ValueError, IndexError):
        return None  # being written at this very moment
    if entry.offsets.reached(offsets):
        return None
    return Pending(entry.batch + 1, entry.offsets.pending(offsets.topics), offsets)
