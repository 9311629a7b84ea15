"""Building the tables of a changed program from old records while the query serves the old ones, and swapping.

The shadow is a query of its own, beside the live one. It never passes the live one, so that at the swap it stands
exactly where the live one stands: nothing is written twice to the live topics, and nothing is left out.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from potok.errors import QueryError
from potok.log.failpoint import failpoint
from potok.runtime.batches.executor import ExecutorFactory
from potok.runtime.operations.replay import SHADOW, beside
from potok.runtime.operations.reset_offsets import stopped
from potok.runtime.planning.start_offsets import protect
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query import Query
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import cells_key, cells_of, chosen_state
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.entry import Entry, metadata_key_of
from potok.state.location import StateLocation
from potok.state.store import StateMissing
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.state.offsets import Ends

_MOVED = ("ledger", "shape", "description", "tables", "progress", "pace", "gates", "state")
"""The marks that change their owner at a swap."""


class ShadowBehind(QueryError):
    """A shadow that cannot come to where the live query stands."""

    def __init__(self, query: str, topics: list[str]) -> None:
        super().__init__(
            f'the shadow of query "{query}" and the query itself do not read the same topics: {", ".join(topics)}',
            hint="a program that reads other topics gets another name, and a table of its own",
        )


class NoShadow(QueryError):
    """A swap without anything to swap."""

    def __init__(self, query: str) -> None:
        super().__init__(
            f'query "{query}" has no shadow to take its place', hint="build one first: potok run PROGRAM --shadow"
        )


class NotAShadow(QueryError):
    """A query that has the name of a shadow and was not begun as one: nobody knows what its tables hold."""

    def __init__(self, query: str) -> None:
        super().__init__(
            f'query "{query}" was not begun by potok run PROGRAM --shadow, so it can take nobody\'s place',
            hint=f"remove it, and build a shadow: potok offsets reset {query} --forget",
        )


def shadow_of(topology: Topology) -> Topology:
    return beside(topology, SHADOW)


def start_shadow(
    topology: Topology, broker: Broker, settings: Settings, start_executor: ExecutorFactory, *, until_end: bool = False
) -> Query:
    """Start building; it goes on as the live query does, or stops where that stands."""
    live = _live(broker, topology.name)
    _check_topics(topology, live)
    return _start(topology, broker, settings, start_executor, live.offsets.topics if until_end else None)


def catch_up(topology: Topology, broker: Broker, settings: Settings, start_executor: ExecutorFactory) -> Query:
    """Let the shadow come to where the live query, which must have stopped, stands."""
    live = _live(broker, topology.name)
    _check_topics(topology, live)
    if read_entry(broker, shadow_of(topology).name) is None:
        raise NoShadow(topology.name)
    with stopped(broker, topology.name):
        target = _standing(broker, topology.name).offsets.topics
    return _start(topology, broker, settings, start_executor, target)


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
    """A new shadow gets cells of its own: the live query may have those of an earlier one, or have left them behind."""
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


def _has_cells(place: StateLocation) -> bool:
    try:
        place.store(0, create=False).close()
    except StateMissing:
        return False
    return True


def swap(broker: Broker, name: str) -> str:
    """Put the shadow in the place of the live query; returns the name under which the old cells are kept.

    All marks change in one transaction, so that a reader sees the old tables or the new ones.
    """
    shadow = SHADOW + name
    with ExitStack() as stack:
        for query in (name, shadow):
            stack.enter_context(stopped(broker, query))
        live, built = _standing(broker, name), _live(broker, shadow)
        _check_follows(broker, shadow, name)
        if not _at_one_place(broker, live, built):
            raise QueryError(
                f'the shadow of query "{name}" does not stand where the query stands',
                hint="potok promote PROGRAM runs it up to there; nothing else may run the query meanwhile",
            )
        old_cells, new_cells = cells_of(broker, name), cells_of(broker, shadow)
        metadata_keys = {
            metadata_key_of(name, what): broker.get_metadata(metadata_key_of(shadow, what)) for what in _MOVED
        }
        # Starts and batches are numbered on from the higher of both: what is out under a number stays out.
        metadata_keys[metadata_key_of(name, "ledger")] = built.sealed(after=live).to_bytes()
        metadata_keys[cells_key(name)] = new_cells.encode()
        expect = {
            metadata_key_of(query, "ledger"): broker.get_metadata(metadata_key_of(query, "ledger"))
            for query in (name, shadow)
        }
        gone = dict.fromkeys(broker.list_metadata(metadata_key_of(shadow, "")))
        # The live query stands at the same offsets, and protects them.
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


def _standing(broker: Broker, name: str) -> Entry:
    """Where a stopped query stands. What Kafka has of its output is out, although the process may have died before the
    ledger was told: the shadow has to begin behind that, or it would come twice."""
    entry, out = _live(broker, name), broker.published(name)
    if out is None or out.number != entry.batch + 1:
        return entry
    topics = {topic: dict(parts) for topic, parts in out.offsets.items()}
    return replace(entry, batch=out.number, offsets=replace(entry.offsets, topics=topics))


def _at_one_place(broker: Broker, live: Entry, built: Entry) -> bool:
    """Whether both go on with the same records. One may know of a partition that was added since the other stopped, and
    that neither has read."""
    here, there = live.offsets.topics, built.offsets.topics
    return here.keys() == there.keys() and all(
        here[topic].get(part, start) == there[topic].get(part, start)
        for topic in here
        for part, start in broker.start_offsets(topic).items()
    )


def _follows(shadow: str) -> str:
    """The mark that tells a shadow from a query that merely has such a name."""
    return metadata_key_of(shadow, "follows")


def _check_follows(broker: Broker, shadow: str, name: str) -> None:
    if broker.get_metadata(_follows(shadow)) != name.encode():
        raise NotAShadow(shadow)


def _check_topics(topology: Topology, live: Entry) -> None:
    other = set(topology.source_topics) ^ set(live.offsets.topics)
    if other:
        raise ShadowBehind(topology.name, sorted(other))
