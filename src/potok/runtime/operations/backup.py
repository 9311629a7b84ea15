"""Back up the state of a query with its batch and its offsets, and restore it."""

from __future__ import annotations

import shutil
from pathlib import Path

from potok.backends.state_url import Where
from potok.clock import now_ms
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.permissions import private_directory
from potok.runtime.operations.cell_swap import exchange, next_name, remove_replaced
from potok.runtime.operations.reset_offsets import stopped
from potok.runtime.queries.ledger import Ledger
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.snapshot import Committed, Snapshot, read_snapshot
from potok.snapshots.state_location import next_to_log, state_of
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.backup import Manifest, check_file, read_shard, write_shard
from potok.state.entry import Entry, metadata_key_of
from potok.state.fence import Attempt
from potok.state.open import StateLocation
from potok.state.verify import Findings

_COPIED = ("shape", "description", "tables")
"""The metadata keys that say how the cells are read, and which program they fit."""


class BackupExists(QueryError):
    """A backup into a directory that is not empty."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory} is not empty", hint="choose a directory that does not exist yet")


class QueryHasState(QueryError):
    """A restore over existing state."""

    def __init__(self, query: str, batch: int) -> None:
        super().__init__(
            f'query "{query}" already has state, up to batch {batch}',
            hint="--force replaces it by the backup; the existing state is lost",
        )


def backup(broker: Broker, query: str, directory: Path) -> Manifest:
    """Copy the state of a query as of one committed batch, whether or not it is running."""
    if directory.exists() and any(directory.iterdir()):
        raise BackupExists(directory)
    partial = directory.with_name(f"{directory.name}.partial")
    entries: list[Entry] = []

    def look() -> Committed:
        entry = read_entry(broker, query)
        if entry is None:
            raise NoSuchQuery(query, known_queries(broker))
        entries.append(entry)
        return Committed(state_of(broker, query), entry.shards, entry.fence)

    def work(snapshot: Snapshot) -> Manifest:
        shutil.rmtree(partial, ignore_errors=True)
        private_directory(partial)
        files = tuple(write_shard(partial, shard, found) for shard, found in enumerate(snapshot.shard_snapshots))
        metadata_keys = {what: broker.get_metadata(metadata_key_of(query, what)) for what in _COPIED}
        copied = {what: data for what, data in metadata_keys.items() if data is not None}
        # The last entry is the batch of the snapshot: read_snapshot has compared them.
        location = str(state_of(broker, query).where)
        return Manifest(query, entries[-1], copied, files, now_ms(), location)

    try:
        manifest = read_snapshot(look, work, frozen=True)
        manifest.write(partial)
        if directory.exists():
            directory.rmdir()
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def restore(broker: Broker, directory: Path, state: str | None = None, *, force: bool = False) -> Manifest:
    """Replace the state of a query by a backup; the query resumes from the batch of the backup.

    The cells are written next to the existing ones, and one transaction of the ledger switches to them: before it,
    nothing has changed.
    """
    manifest = Manifest.read(directory)
    query = manifest.query
    with stopped(broker, query):
        ledger = Ledger(broker, query)
        is_new = ledger.is_new
        if not is_new and not force:
            raise QueryHasState(query, ledger.entry.batch)
        for file in manifest.files:
            check_file(directory, file)
        old = state_of(broker, query).with_password()
        where = Where.of(state).with_password() if state else next_to_log(broker) if is_new else old.where
        new = StateLocation(where, query if is_new else next_name(query, old.name))
        remove_replaced(broker, query)
        _write(manifest, directory, new)
        metadata_keys = {metadata_key_of(query, what): data for what, data in manifest.metadata_keys.items()}
        entry = manifest.entry.sealed(after=ledger.entry, batch=ledger.entry.batch + 1)
        exchange(broker, query, ledger, entry, None if is_new else old, new, metadata_keys)
    return manifest


def _write(manifest: Manifest, directory: Path, location: StateLocation) -> None:
    location.remove()
    attempt = Attempt(manifest.entry.epoch, manifest.entry.batch)
    for shard, file in enumerate(manifest.files):
        store = location.store(shard)
        store.put_many(attempt, [])
        for table, rows in read_shard(directory, file):
            store.put_many(attempt, [(table, rows)])


def verify_backup(directory: Path) -> Findings:
    """Check every cell of a backup; a file that differs from what was written is an error."""
    found = Findings()
    for shard, file in enumerate(Manifest.read(directory).files):
        check_file(directory, file)
        for table, rows in read_shard(directory, file):
            found.check(shard, table, rows)
    return found
