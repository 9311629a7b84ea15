"""Cells that take the place of others: written beside them, and exchanged by one transaction of the ledger."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from potok.backends.state_url import Where
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.ledger import Ledger
from potok.snapshots.state_location import cells_key, encoded_location
from potok.state.entry import Entry, metadata_key_of
from potok.state.location import StateLocation


def next_name(query: str, name: str) -> str:
    """Another name for cells of a query than the one they have; no query can be called so."""
    own, _, number = name.rpartition("@")
    return f"{query}@{int(number) + 1 if own and number.isdigit() else 1}"


def exchange(
    broker: Broker,
    query: str,
    ledger: Ledger,
    entry: Entry,
    old: StateLocation | None,
    new: StateLocation,
    metadata_keys: Mapping[str, bytes],
) -> None:
    """Let a query go on with cells in another place; those it had are removed.

    Where they are is written down until they are gone, so that whoever comes after a crash can remove them.
    """
    gone = None if old is None else f"{old.where}\n{old.name}".encode()
    changes: dict[str, bytes | None] = {
        **metadata_keys,
        metadata_key_of(query, "state"): encoded_location(broker, new.where),
        cells_key(query): new.name.encode(),
        _gone(query): gone,
    }
    directory = query_directory(broker, query)
    failpoint("exchange.before")
    ledger.replace(entry, changes)
    failpoint("exchange.done")
    new.close(entry.shards)
    remove_gone(broker, query)
    if query_directory(broker, query) != directory:
        # What Spark has written down there are batches over the cells that are gone; without it, it goes by the ledger.
        shutil.rmtree(directory, ignore_errors=True)


def remove_gone(broker: Broker, query: str) -> None:
    """Remove the cells that an exchange has left behind."""
    data = broker.get_metadata(_gone(query))
    if data is not None:
        url, name = data.decode().split("\n")
        StateLocation(Where.of(url), name).remove()
        broker.set_metadata({_gone(query): None})


def _gone(query: str) -> str:
    return metadata_key_of(query, "gone")
