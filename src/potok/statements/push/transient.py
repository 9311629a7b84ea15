"""Topologies that run for one push query and are removed with it, even after a crash."""

from __future__ import annotations

import contextlib
import logging
import uuid
from typing import TYPE_CHECKING, Literal

from potok.dead_letters.read import dead_letter_topic
from potok.errors import PotokError, QueryError
from potok.log.broker import Broker
from potok.runtime.operations import reset_offsets
from potok.snapshots.progress import read_progress
from potok.snapshots.tables import known_queries
from potok.statements.errors import NotRunningHere
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from potok.runtime.queries.query_group import QueryGroup
    from potok.statements.database import Database

log = logging.getLogger(__name__)

PREFIX = "_potok_push_"


class PushFailed(QueryError):
    """The topology of a push query failed."""

    def __init__(self, error: str) -> None:
        super().__init__(f"the query failed: {error}", hint="correct the error, and send the query again")


def transient_name(query_id: str) -> str:
    """Return a name for a topology and its topic that is unique across processes."""
    return f"{PREFIX}{query_id.lower()}_{uuid.uuid4().hex[:8]}"


def is_transient(query: str) -> bool:
    return query.startswith(PREFIX)


class Transient:
    """A running topology of one push query."""

    def __init__(self, broker: Broker, shared: QueryGroup, name: str) -> None:
        self._broker, self._shared, self._name = broker, shared, name
        self._ended = False
        self.dead_letters = 0
        """How many dead letters it had when it ended; they are deleted with it."""

    @classmethod
    def started(cls, database: Database, topology: Topology, name: str, start: str) -> Transient:
        database.start()
        shared = database.shared
        if shared is None:
            raise NotRunningHere("a push query with GROUP BY, JOIN or WINDOW")
        database.broker.create_topic(name, 1, exist_ok=True)
        run = cls(database.broker, shared, name)
        try:
            at: Literal["earliest", "latest"] = "earliest" if start == "earliest" else "latest"
            shared.add(topology, start=at)
        except BaseException:
            run.end()
            raise
        return run

    def check(self) -> None:
        """Raise the error that ended the topology, if any."""
        status = self._shared.statuses().get(self._name)
        if self._ended or (status is not None and status.state.value != "FAILED"):
            return
        raise PushFailed("the queries were stopped" if status is None else status.error)

    def end(self) -> None:
        """Stop the topology. Calling it again has no effect."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(PotokError):
            self._shared.remove(self._name)
            progress = read_progress(self._broker, self._name)
            self.dead_letters = 0 if progress is None else progress.dead_letters
        try:
            _remove(self._broker, self._name)
        except PotokError:
            log.warning("%s could not be removed; it is removed when the catalog is opened again", self._name)


def _remove(broker: Broker, name: str) -> None:
    """Raise if the topology runs in another process."""
    if name in known_queries(broker):
        reset_offsets.forget(broker, name)
    for topic in (name, dead_letter_topic(name)):
        if broker.has_topic(topic):
            broker.delete_topic(topic)


def remove_leftovers(broker: Broker) -> None:
    """Remove push queries of killed processes; keep those that are still running."""
    names = {topic for topic in broker.topics() if topic.startswith(PREFIX)}
    names |= {query for query in known_queries(broker) if query.startswith(PREFIX)}
    for name in sorted(name.removesuffix("-dead-letters") for name in names):
        try:
            _remove(broker, name)
        except PotokError as error:
            log.info("%s is not removed: %s", name, error)
