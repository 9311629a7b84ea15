"""Build the tables of a changed program from old records while the query serves the old ones, then swap.

The shadow is a query of its own, next to the live one. It never overtakes the live one, so at the swap both are at
the same offsets: nothing is written twice to the live topics, and nothing is missing.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from potok.errors import QueryError
from potok.log.failpoint import failpoint
from potok.runtime.batches.executor import ExecutorFactory
from potok.runtime.operations.replay import SHADOW, with_prefix
from potok.runtime.operations.reset_offsets import stopped
from potok.runtime.planning.start_offsets import protect
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query import Query
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import cells_key, cells_of, chosen_state
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.entry import Entry, metadata_key_of
from potok.state.open import StateLocation
from potok.state.store import StateMissing
from potok.topology.graph import Topology
from potok.topology.nodes import StreamSource

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.state.offsets import Ends

_MOVED = ("ledger", "shape", "description", "tables", "progress", "pace", "gates", "state")
"""The metadata keys that change their owner at a swap."""


class ShadowBehind(QueryError):
    """A shadow that cannot reach the offsets of the live query."""

    def __init__(self, query: str, topics: list[str]) -> None:
        super().__init__(
            f'the shadow of query "{query}" and the query itself do not read the same topics: {", ".join(topics)}',
            hint="a program that reads other topics needs another name, and its own tables",
        )


class NoShadow(QueryError):
    """A swap without a shadow."""

    def __init__(self, query: str) -> None:
        super().__init__(f'query "{query}" has no shadow', hint="build one first: potok run PROGRAM --shadow")


class NotAShadow(QueryError):
    """A query that has the name of a shadow and was not started as one: the content of its tables is unknown."""

    def __init__(self, query: str) -> None:
        super().__init__(
            f'query "{query}" was not started by potok run PROGRAM --shadow, so it cannot be promoted',
            hint=f"remove it, and build a shadow: potok offsets reset {query} --forget",
        )


def shadow_of(topology: Topology) -> Topology:
    return with_prefix(topology, SHADOW)


def start_shadow(
    topology: Topology, broker: Broker, settings: Settings, start_executor: ExecutorFactory, *, until_end: bool = False
) -> Query:
    """Start building; it continues as long as the live query does, or stops at its offsets."""
    live = _live(broker, topology.name)
    _check_topics(topology, live)
    return _start(topology, broker, settings, start_executor, live.offsets.topics if until_end else None)


def catch_up(topology: Topology, broker: Broker, settings: Settings, start_executor: ExecutorFactory) -> Query:
    """Run the shadow up to the offsets of the live query, which must have stopped."""
    live = _live(broker, topology.name)
    _check_topics(topology, live)
    if read_entry(broker, shadow_of(topology).name) is None:
        raise NoShadow(topology.name)
    with stopped(broker, topology.name):
        target = dict(_position(broker, topology.name).offsets.topics)
    # The query knows the events that it has written since it last read their topic; the shadow has to read them.
    target |= broker.end_offsets_of(sorted(topics_read_ahead(topology)))
    return _start(topology, broker, settings, start_executor, target)


def topics_read_ahead(topology: Topology) -> frozenset[str]:
    """Return the topics in which a query does not read what it has written itself, but its shadow does."""
    return frozenset(source.topic for source in topology.of_type(StreamSource) if source.own is not None)


def _start(
    topology: Topology, broker: Broker, settings: Settings, start_executor: ExecutorFactory, target: Ends | None
) -> Query:
    _begin(broker, topology.name, settings)
    prepared = prepare(shadow_of(topology), broker, settings)
    try:
        query = Query(prepared, start_executor(settings), settings, target=target, leader=topology.name)
        return query.start()
    except BaseException:
        prepared.release()
        raise


def _begin(broker: Broker, name: str, settings: Settings) -> None:
    """Give a new shadow its own cells: the live query may use those of an earlier one, or have left them behind."""
    shadow = SHADOW + name
    if broker.get_metadata(metadata_key_of(shadow, "ledger")) is not None:
        _check_follows(broker, shadow, name)
    else:
        where = chosen_state(broker, shadow, settings.state).where
        live, _, number = cells_of(broker, name).rpartition(".")
        following = count(int(number) + 1 if live == shadow else 1)
        cells = (f"{shadow}.{number}" for number in following)
        free = next(found for found in cells if not _has_cells(StateLocation(where, found)))
        broker.set_metadata({cells_key(shadow): free.encode(), _follows(shadow): name.encode()})


def _has_cells(location: StateLocation) -> bool:
    try:
        location.store(0, create=False).close()
    except StateMissing:
        return False
    return True


def swap(broker: Broker, name: str, ahead: Collection[str] = ()) -> str:
    """Replace the live query by the shadow; return the name under which the old cells are kept. In the topics `ahead`
    the shadow has read to the end.

    All metadata keys change in one transaction, so a reader sees the old tables or the new ones.
    """
    shadow = SHADOW + name
    with ExitStack() as stack:
        for query in (name, shadow):
            stack.enter_context(stopped(broker, query))
        live, built = _position(broker, name), _live(broker, shadow)
        _check_follows(broker, shadow, name)
        if not _at_same_offsets(broker, live, built, ahead):
            raise QueryError(
                f'the shadow of query "{name}" is not at the offsets of the query',
                hint="potok promote PROGRAM runs it up to them; no other process may run the query meanwhile",
            )
        old_cells, new_cells = cells_of(broker, name), cells_of(broker, shadow)
        metadata_keys = {
            metadata_key_of(name, what): broker.get_metadata(metadata_key_of(shadow, what)) for what in _MOVED
        }
        # Epochs and batches continue from the higher of both: output visible under a number stays visible.
        metadata_keys[metadata_key_of(name, "ledger")] = built.sealed(after=live).to_bytes()
        metadata_keys[cells_key(name)] = new_cells.encode()
        expect = {
            metadata_key_of(query, "ledger"): broker.get_metadata(metadata_key_of(query, "ledger"))
            for query in (name, shadow)
        }
        gone = dict.fromkeys(broker.list_metadata(metadata_key_of(shadow, "")))
        # The live query is at the same offsets, and protects them.
        protect(broker, shadow, {})
        failpoint("swap.before")
        broker.set_metadata({**gone, **metadata_keys}, expect)
        failpoint("swap.done")
    return old_cells


def _live(broker: Broker, name: str) -> Entry:
    entry = read_entry(broker, name)
    if entry is None:
        raise NoSuchQuery(name, known_queries(broker))
    return entry


def _position(broker: Broker, name: str) -> Entry:
    """Return the position of a stopped query. Output in Kafka is visible even if the process died before the ledger
    was updated: the shadow has to start after it, or it would be written twice.
    """
    entry, out = _live(broker, name), broker.published(name)
    if out is None or out.number != entry.batch + 1:
        return entry
    topics = {topic: dict(parts) for topic, parts in out.offsets.items()}
    return replace(entry, batch=out.number, offsets=replace(entry.offsets, topics=topics))


def _at_same_offsets(broker: Broker, live: Entry, built: Entry, ahead: Collection[str]) -> bool:
    """Whether both resume with the same records. One may know of a partition that was added since the other stopped,
    and that neither has read.
    """
    here, there = live.offsets.topics, built.offsets.topics
    ends = broker.end_offsets_of(sorted(ahead)) if ahead else {}
    return here.keys() == there.keys() and all(
        there[topic].get(part, start) == (ends[topic][part] if topic in ends else here[topic].get(part, start))
        for topic in here
        for part, start in broker.start_offsets(topic).items()
    )


def _follows(shadow: str) -> str:
    """Return the metadata key that distinguishes a shadow from a query that merely has such a name."""
    return metadata_key_of(shadow, "follows")


def _check_follows(broker: Broker, shadow: str, name: str) -> None:
    if broker.get_metadata(_follows(shadow)) != name.encode():
        raise NotAShadow(shadow)


def _check_topics(topology: Topology, live: Entry) -> None:
    other = set(topology.source_topics) ^ set(live.offsets.topics)
    if other:
        raise ShadowBehind(topology.name, sorted(other))
