"""Rewrite the state of a stopped query for another number of shards.

The cells are written under another name, next to those of the query. One transaction of the ledger then switches to
the new number of shards and the new name; before it nothing has changed, and after it the old cells can be deleted.
"""

from __future__ import annotations

from dataclasses import replace

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.operators.exchange.placement import Placements, placements
from potok.operators.exchange.reshard_cells import Source, Target
from potok.runtime.operations.cell_swap import exchange, next_name, remove_replaced
from potok.runtime.operations.reset_offsets import stopped
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.prepare import changes_of
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.fence import Attempt
from potok.state.open import StateLocation
from potok.state.session import TOMBSTONES
from potok.topology.compare import StateDoesNotFit
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer


class UnplacedTables(QueryError):
    """Cells whose shard is unknown."""

    def __init__(self, query: str, tables: list[str]) -> None:
        super().__init__(
            f'query "{query}" has cells in {", ".join(tables)}, which no step of this program uses',
            hint="start the query once with this program, which deletes tables it does not use, and stop it again",
        )


def reshard(topology: Topology, broker: Broker, shards: int) -> int:
    """Rewrite the state of the query that this topology runs; return how many shards it had."""
    query = topology.name
    if shards < 1:
        raise QueryError(f"state cannot be split into {shards} shards", hint="the minimum is 1")
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
    remove_replaced(broker, topology.name)
    # Left there by an earlier attempt.
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
    """Return the tables that exist, and how each is placed. Tombstones belong to the shard of their table."""
    inferred = infer(topology)
    known: Placements = {}
    for node in topology.keepers:
        known |= placements(node, inferred)
    there = {table for source in sources for table in source.store.tables() if source.store.entries(table)}
    unknown = sorted(table for table in there if table not in known and table.removesuffix(TOMBSTONES) not in known)
    if unknown:
        raise UnplacedTables(topology.name, unknown)
    return {table: known[table] for table in sorted(there & known.keys())}
