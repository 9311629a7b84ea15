"""Run a topology over old records, next to the query that runs it on new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from potok.errors import QueryError
from potok.runtime.batches.executor import ExecutorFactory
from potok.runtime.planning.start_offsets import offsets_at
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query import Query
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.topology.graph import Topology
from potok.topology.nodes import Sink

if TYPE_CHECKING:
    from potok.log.broker import Broker


SHADOW = "shadow-"
"""The prefix of a query that is being rebuilt; see `potok.runtime.operations.shadow`."""


class ReplayExists(QueryError):
    """A replay under a name that an earlier one uses."""

    def __init__(self, query: str, prefix: str) -> None:
        super().__init__(
            f'query "{query}" already exists, so a replay cannot use that name',
            hint=f"choose another prefix: --into {prefix}2-; or remove it: potok offsets reset {query} --forget",
        )


class NothingToReplay(QueryError):
    """A replay that ends before it starts."""


class PrefixMissing(QueryError):
    """A replay without a prefix, which would be the query itself."""

    def __init__(self, query: str) -> None:
        super().__init__(f'a replay of "{query}" needs a prefix', hint="for example --into try-")


class PrefixReserved(QueryError):
    """A replay whose prefix is that of shadows."""

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f'"{prefix}" cannot be the prefix of a replay: "{SHADOW}" is reserved for shadow queries',
            hint="for example --into try-; to build tables that replace others: potok run PROGRAM --shadow",
        )


def with_prefix(topology: Topology, prefix: str) -> Topology:
    """Return the same steps under another name, writing to other topics: a prefix is added to each.

    Deliveries to external sinks are left out, so that nothing is delivered twice. The fields they read are decoded
    all the same, so that the same records are dead letters.
    """
    kept = [node for node in topology if not node.leaves_the_log]
    nodes = tuple(replace(node, topic=prefix + node.topic) if isinstance(node, Sink) else node for node in kept)
    return Topology(prefix + topology.name, nodes, topology)


def start_replay(
    topology: Topology,
    broker: Broker,
    since_ms: int,
    until_ms: int,
    prefix: str,
    settings: Settings,
    start_executor: ExecutorFactory,
) -> Query:
    """Start a replay of the records from one instant to another (exclusive), by their timestamps."""
    if until_ms <= since_ms:
        raise NothingToReplay(
            "the end of a replay must be after its start", hint="for example --from yesterday --to now"
        )
    if prefix.startswith(SHADOW):
        raise PrefixReserved(prefix)
    copy = with_prefix(topology, prefix)
    if copy.name == topology.name:
        raise PrefixMissing(topology.name)
    # Also one that never reached its first batch: the replay would resume where that one started.
    if read_entry(broker, copy.name) is not None:
        raise ReplayExists(copy.name, prefix)
    topics = copy.source_topics
    start = offsets_at(broker, topics, since_ms)
    target = offsets_at(broker, topics, until_ms)
    prepared = prepare(copy, broker, settings, start=start)
    try:
        return Query(prepared, start_executor(settings), settings, target=target).start()
    except BaseException:
        prepared.release()
        raise
