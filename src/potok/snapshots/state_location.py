"""Where a query stores its state: the location is stored next to its ledger, so that readers find it."""

from __future__ import annotations

from potok.backends.state_url import OBJECTS, Where
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.metadata.metadata_store import MetadataStore
from potok.snapshots.ledger_view import read_entry
from potok.state.entry import metadata_key_of
from potok.state.open import StateLocation


class StateIsElsewhere(QueryError):
    """A query would resume with state in another location than its own."""

    def __init__(self, query: str, there: Where, wanted: Where) -> None:
        super().__init__(
            f'query "{query}" stores its state at {there}, not at {wanted}',
            hint=f"leave out the setting state, or move it: potok state backup {query} --to DIR, then "
            f"potok state restore DIR --state {wanted} --force",
        )


def cells_key(query: str) -> str:
    return metadata_key_of(query, "cells")


def cells_of(metadata: MetadataStore, query: str) -> str:
    """Return the name under which the cells of a query are stored: its own, unless a shadow has replaced it."""
    found = metadata.get_metadata(cells_key(query))
    return query if found is None else found.decode()


def next_to_log(broker: Broker) -> Where:
    """Return the default state location: next to the log, or on the server that holds the metadata."""
    return Where.of(broker.home_url) if broker.home_url else Where.of(broker.directory)


def state_of(broker: Broker, query: str) -> StateLocation:
    """Return the location of the cells of a query; next to the log by default."""
    written = broker.get_metadata(metadata_key_of(query, "state"))
    found = StateLocation(Where.of(written.decode()) if written else next_to_log(broker), cells_of(broker, query))
    entry = read_entry(broker, query) if found.where.kind == OBJECTS else None
    return found if entry is None else found.at(entry)


def encoded_location(broker: Broker, where: Where) -> bytes:
    """Encode the location that a query stores: empty for state next to the log, which may be moved with it; never a
    password."""
    return b"" if str(where) == str(next_to_log(broker)) else str(where).encode()


def chosen_state(broker: Broker, query: str, setting: str, copies: str = "") -> StateLocation:
    """Return where a query that starts stores its cells: where they are or, for a new query, where the setting says.

    `copies` is the directory for copies of cells in object storage; empty for the cache directory of each machine.
    """
    wanted, there = Where.of(setting) if setting else None, state_of(broker, query)
    is_new = broker.get_metadata(metadata_key_of(query, "ledger")) is None
    if wanted is not None and not is_new and str(wanted) != str(there.where):
        raise StateIsElsewhere(query, there.where, wanted)
    return StateLocation(wanted or there.where, there.name, there.named, copies).with_password()
