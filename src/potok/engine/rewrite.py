"""Writing all cells of a query anew, each on the shard where a topology looks for it.

The cells are written under another name, beside those that the query has. One transaction of the ledger then says how
many shards there are and under which name they lie; before it nothing has happened, and after it the old cells are only
in the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from potok.engine.exchange import exchange, next_name, remove_gone
from potok.engine.ledger import Ledger
from potok.errors import QueryError
from potok.kernels.placement import Placements, placements
from potok.kernels.spread import Source, Target
from potok.log.broker import Broker
from potok.state.fence import Attempt
from potok.state.place import Place
from potok.state.session import GRAVES
from potok.topology.graph import Topology
from potok.topology.infer import infer
from potok.views.state_of import state_of


class UnplacedTables(QueryError):
    """Cells of which nobody knows where they belong."""

    def __init__(self, query: str, tables: list[str]) -> None:
        super().__init__(
            f'query "{query}" has cells in {", ".join(tables)}, which no step of this program keeps',
            hint="start the query once with this program, which deletes what it does not keep, and stop it again",
        )


def rewrite(
    topology: Topology,
    broker: Broker,
    ledger: Ledger,
    shards: int,
    marks: Mapping[str, bytes],
    *,
    leave_unplaced: bool = False,
) -> None:
    """Rewrite the state of a query that nobody runs. Tables that the topology does not keep are an error, or stay
    behind; `marks` are set with the new cells."""
    entry, old = ledger.entry, state_of(broker, topology.name).with_password()
    new = Place(old.where, next_name(topology.name, old.name))
    remove_gone(broker, topology.name)
    # What an earlier try may have left there.
    new.remove()
    sources = [Source(old.store(shard), entry.fence) for shard in range(entry.shards)]
    attempt = Attempt(entry.epoch, entry.batch)
    targets = [Target(new.store(shard), attempt) for shard in range(shards)]
    for table, placement in _tables(topology, sources, leave_unplaced=leave_unplaced).items():
        placement.spread(table, sources, targets)
    for target in targets:
        target.settle()
    exchange(broker, topology.name, ledger, replace(entry, shards=shards), old, new, marks)


def _tables(topology: Topology, sources: list[Source], *, leave_unplaced: bool) -> Placements:
    """The tables that there are, and how each is spread. Graves go with those whom they are for."""
    inferred = infer(topology)
    known: Placements = {}
    for node in topology.keepers:
        known |= placements(node, inferred)
    there = {table for source in sources for table in source.store.tables() if source.store.entries(table)}
    unknown = sorted(table for table in there if table not in known and table.removesuffix(GRAVES) not in known)
    if unknown and not leave_unplaced:
        raise UnplacedTables(topology.name, unknown)
    return {table: known[table] for table in sorted(there & known.keys())}
