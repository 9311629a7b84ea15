"""Rewriting the state of a stopped query for another number of shards.

The cells are written anew under another name, beside those that the query has. One transaction of the ledger then says
how many shards there are and under which name they lie; before it nothing has happened, and after it the old cells are
only in the way.
"""

from __future__ import annotations

from dataclasses import replace

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.operators.exchange.placement import Placements, placements
from potok.operators.exchange.reshard_cells import Source, Target
from potok.runtime.operations.cell_swap import exchange, next_name, remove_gone
from potok.runtime.operations.reset_offsets import stopped
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.prepare import changes_of
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.fence import Attempt
from potok.state.location import StateLocation
from potok.state.session import TOMBSTONES
from potok.topology.compare import StateDoesNotFit
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer


class UnplacedTables(QueryError):
    """Cells of which nobody knows where they belong."""

    def __init__(self, query: str, tables: list[str]) -> None:
        super().__init__(
            f'query "{query}" has cells in {", ".join(tables)}, which no step of this program keeps',
            hint="start the query once with this program, which deletes what it does not keep, and stop it again",
        )


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
            _rewrite(topology, broker, ledger, shards)
        return before


def _rewrite(topology: Topology, broker: Broker, ledger: Ledger, shards: int) -> None:
    entry, old = ledger.entry, state_of(broker, topology.name).with_password()
    new = StateLocation(old.where, next_name(topology.name, old.name))
    remove_gone(broker, topology.name)
    # What an earlier try may have left there.
    new.remove()
    sources = [Source(old.store(shard), entry.fence) for shard in range(entry.shards)]
    attempt = Attempt(entry.epoch, entry.batch)
    targets = [Target(new.store(shard), attempt) for shard in range(shards)]
    for table, placement in _tables(topology, sources).items():
        placement.spread(table, sources, targets)
    for target in targets:
        target.settle()
    exchange(broker, topology.name, ledger, replace(entry, shards=shards), old, new, {})


def _tables(topology: Topology, sources: list[Source]) -> Placements:
    """The tables that there are, and how each is spread. Graves go with those whom they are for."""
    inferred = infer(topology)
    known: Placements = {}
    for node in topology.keepers:
        known |= placements(node, inferred)
    there = {table for source in sources for table in source.store.tables() if source.store.entries(table)}
    unknown = sorted(table for table in there if table not in known and table.removesuffix(TOMBSTONES) not in known)
    if unknown:
        raise UnplacedTables(topology.name, unknown)
    return {table: known[table] for table in sorted(there & known.keys())}
