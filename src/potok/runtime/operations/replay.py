"""Running a topology over old records, beside the query that runs it on new ones."""

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
"""Stands before the name of a query that is being built anew; see `potok.runtime.operations.shadow`."""


class ReplayExists(QueryError):
    """A replay into a name that an earlier one has taken."""

    def __init__(self, query: str, prefix: str) -> None:
        super().__init__(
            f'query "{query}" exists already, so a replay cannot begin under that name',
            hint=f"choose another prefix: --into {prefix}2-; or remove it: potok offsets reset {query} --forget",
        )


class NothingToReplay(QueryError):
    """A time to end that does not lie after the time to begin."""


class NotBeside(QueryError):
    """A replay without a prefix would be the query itself."""

    def __init__(self, query: str) -> None:
        super().__init__(f'a replay of "{query}" needs a name of its own', hint="--into try-, for example")


class NoPrefix(QueryError):
    """A replay that would be taken for a shadow."""

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f'"{prefix}" cannot stand before the names of a replay: "{SHADOW}" is for queries that are to be promoted',
            hint="--into try-, for example; to build tables that take the place of others: potok run PROGRAM --shadow",
        )


def beside(topology: Topology, prefix: str) -> Topology:
    """The same steps under another name, writing to other topics: a prefix before each.

    What goes out of the log altogether is left out: nobody asked for a second delivery. The fields that it reads are
    decoded all the same, so that the same records are dead letters.
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
    """Start a replay of the records from one instant to another (not included), by their timestamps."""
    if until_ms <= since_ms:
        raise NothingToReplay(
            "the end of a replay must lie after its beginning", hint="--from yesterday --to now, for example"
        )
    if prefix.startswith(SHADOW):
        raise NoPrefix(prefix)
    copy = beside(topology, prefix)
    if copy.name == topology.name:
        raise NotBeside(topology.name)
    # One that never came to its first batch as well: it would go on from where that one began.
    if read_entry(broker, copy.name) is not None:
        raise ReplayExists(copy.name, prefix)
    topics = copy.source_topics
    begin = offsets_at(broker, topics, since_ms)
    target = offsets_at(broker, topics, until_ms)
    prepared = prepare(copy, broker, settings, begin=begin)
    try:
        return Query(prepared, start_executor(settings), settings, target=target).start()
    except BaseException:
        prepared.release()
        raise
