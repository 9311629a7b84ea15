"""Replace the cells of a query: write new ones next to them, and switch in one transaction of the ledger."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace

from potok.backends.state_url import Where
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.ledger import Ledger
from potok.snapshots.state_location import cells_key, encoded_location
from potok.state.entry import Entry, metadata_key_of
from potok.state.open import StateLocation


def next_name(query: str, name: str) -> str:
    """Return another name for the cells of a query; no query can have such a name."""
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
    """Switch a query to cells at another location, and remove those it had.

    Their location is recorded until they are removed, so that they can be removed after a crash.
    """
    replaced = None if old is None else f"{old.where}\n{old.name}".encode()
    changes: dict[str, bytes | None] = {
        **metadata_keys,
        metadata_key_of(query, "state"): encoded_location(broker, new.where),
        cells_key(query): new.name.encode(),
        _replaced(query): replaced,
    }
    directory = query_directory(broker, query)
    failpoint("exchange.before")
    ledger.replace(replace(entry, positions=new.positions(entry.shards)), changes)
    failpoint("exchange.done")
    new.close(entry.shards)
    remove_replaced(broker, query)
    if query_directory(broker, query) != directory:
        # Files of the directory refer to batches over the removed cells.
        shutil.rmtree(directory, ignore_errors=True)


def remove_replaced(broker: Broker, query: str) -> None:
    """Remove the cells that a switch has left behind."""
    data = broker.get_metadata(_replaced(query))
    if data is not None:
        url, name = data.decode().split("\n")
        StateLocation(Where.of(url), name).remove()
        broker.set_metadata({_replaced(query): None})


def _replaced(query: str) -> str:
    return metadata_key_of(query, "gone")
