"""Where a query would resume: its ledger, and the batch that was started and not committed."""

from __future__ import annotations

from dataclasses import dataclass

from potok.log.broker import Broker
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import Progress, read_progress
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import NoSuchQuery, Tables, known_queries
from potok.state.entry import Entry
from potok.state.offsets import Offsets
from potok.state.open import StateLocation
from potok.state.store import StateMissing


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch that was started and not committed. It is run again under its number, up to these offsets."""

    number: int
    records: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class Void:
    """The batches after `committed` of an earlier epoch, which are void."""

    epoch: int
    committed: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`state` is the location of the cells, `shards` the size of each in bytes."""

    query: str
    entry: Entry
    progress: Progress | None
    pending: Pending | None
    voids: tuple[Void, ...]
    state: str
    shards: tuple[int, ...]
    keys: dict[str, int]


def read_checkpoint(broker: Broker, query: str) -> Checkpoint:
    entry = read_entry(broker, query)
    if entry is None:
        raise NoSuchQuery(query, known_queries(broker))
    voids = tuple(Void(epoch, batch) for epoch, batch in sorted(entry.ended.items()))
    location = state_of(broker, query)
    shards = tuple(_shard_bytes(location.with_password(), shard) for shard in range(entry.shards))
    progress = read_progress(broker, query)
    keys = _keys(broker, query, progress)
    return Checkpoint(query, entry, progress, _pending(entry), voids, str(location.where), shards, keys)


def _keys(broker: Broker, query: str, progress: Progress | None) -> dict[str, int]:
    """Return the number of keys of each table, as counted by the last batch, or counted here if there was none since
    the start."""
    tables = Tables(broker, query)
    counted = progress.state_keys if progress else {}
    return {name: counted[name] if name in counted else len(tables[name]) for name in tables.names()}


def _shard_bytes(location: StateLocation, shard: int) -> int:
    try:
        store = location.store(shard, create=False)
    except StateMissing:
        return 0
    try:
        return store.size_bytes()
    finally:
        store.close()


def _pending(entry: Entry) -> Pending | None:
    end = entry.intended
    return None if end is None else Pending(entry.batch + 1, entry.offsets.pending(end.topics), end)
