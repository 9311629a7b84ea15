"""Where a query keeps its state: it wrote that down beside its ledger, so that readers need not be told."""

from __future__ import annotations

from potok.backends.state_url import Where
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.metadata.metadata_store import MetadataStore
from potok.state.entry import mark_of
from potok.state.location import Place


class StateIsElsewhere(QueryError):
    """A query is to go on with state in another place than where it is."""

    def __init__(self, query: str, there: Where, wanted: Where) -> None:
        super().__init__(
            f'query "{query}" keeps its state at {there}, not at {wanted}',
            hint=f"leave out the setting state, or move it: potok state backup {query} --to DIR, then "
            f"potok state restore DIR --state {wanted} --force",
        )


def cells_mark(query: str) -> str:
    return mark_of(query, "cells")


def cells_of(metadata: MetadataStore, query: str) -> str:
    """The name under which the cells of a query are kept: its own, unless a shadow has replaced it."""
    found = metadata.get_metadata(cells_mark(query))
    return query if found is None else found.decode()


def beside(broker: Broker) -> Where:
    """State that lies beside the log, or on the server that keeps the metadata."""
    return Where.of(broker.home_url) if broker.home_url else Where.of(broker.directory)


def state_of(broker: Broker, query: str) -> Place:
    """Where the cells of a query are; beside the log, unless it says otherwise."""
    written = broker.get_metadata(mark_of(query, "state"))
    return Place(Where.of(written.decode()) if written else beside(broker), cells_of(broker, query))


def written_place(broker: Broker, where: Where) -> bytes:
    """What a query writes down: nothing for state beside the log, which may be moved with it; never a password."""
    return b"" if str(where) == str(beside(broker)) else str(where).encode()


def chosen_state(broker: Broker, query: str, setting: str) -> Place:
    """Where a query that starts is to keep its cells: where it has them or, if it is new, where the setting says."""
    wanted, there = Where.of(setting) if setting else None, state_of(broker, query)
    is_new = broker.get_metadata(mark_of(query, "ledger")) is None
    if wanted is not None and not is_new and str(wanted) != str(there.where):
        raise StateIsElsewhere(query, there.where, wanted)
    return Place(wanted or there.where, there.name).with_password()
