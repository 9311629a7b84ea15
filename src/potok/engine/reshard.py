"""Rewriting the state of a stopped query for another number of shards."""

from __future__ import annotations

from potok.engine.ledger import Ledger
from potok.engine.prepare import changes_of
from potok.engine.repair import stopped
from potok.engine.rewrite import UnplacedTables, rewrite
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.topology.compare import StateDoesNotFit
from potok.topology.graph import Topology
from potok.views.tables import NoSuchQuery, known_queries

__all__ = ["UnplacedTables", "reshard"]


def reshard(topology: Topology, broker: Broker, shards: int) -> int:
    """Rewrite the state of the query that this topology runs; returns how many shards it had."""
    query = topology.name
    if shards < 1:
        raise QueryError(f"state cannot be cut into {shards} shards", hint="1 is the least")
    with stopped(broker, query):
        ledger = Ledger(broker, query)
        if ledger.is_new:
            raise NoSuchQuery(query, known_queries(broker))
        misfits = [change for change in changes_of(topology, broker) if not change.fits]
        if misfits:
            raise StateDoesNotFit(query, misfits)
        before = ledger.entry.shards
        if shards != before:
            rewrite(topology, broker, ledger, shards, {})
        return before
