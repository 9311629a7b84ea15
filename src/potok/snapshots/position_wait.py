"""Wait until a query has committed past a position, also through the queries that feed it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.records.position import Ends, Position
from potok.snapshots.progress import read_progress
from potok.state.entry import Entry, decoding, metadata_key_of
from potok.state.output_history import OutputHistory

LOOK_S = 0.005


class PositionNotReachedError(QueryError):
    """A query that did not commit past a position in time; `reached` is how far it is."""

    def __init__(self, query: str, wanted: Position, reached: Position, state: str = "") -> None:
        runs = f'query "{query}" is {state}' if state else f'query "{query}" has committed nothing yet'
        super().__init__(
            f'query "{query}" has reached {reached}, not {wanted}',
            hint=f"{runs}; wait longer, or read without a position",
        )
        self.query, self.wanted, self.reached = query, wanted, reached

    def __reduce__(self) -> tuple[object, ...]:
        return PositionNotReachedError, (self.query, self.wanted, self.reached)


@dataclass(frozen=True, slots=True)
class Links:
    """The topics of a query."""

    reads: frozenset[str]
    writes: frozenset[str]


class Ledgers:
    """What queries have committed, decoded once per commit. Used by one thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._raw: dict[str, tuple[bytes | None, bytes | None]] = {}
        self._offsets: dict[str, Ends] = {}
        self._outputs: dict[str, OutputHistory] = {}
        self._links: dict[bytes, Links] = {}

    def links(self) -> dict[str, Links]:
        """Return the topics of all queries that ever ran."""
        found: dict[str, Links] = {}
        known: dict[bytes, Links] = {}
        for name, data in self._broker.list_metadata("query/").items():
            query, _, what = name.removeprefix("query/").rpartition("/")
            if what == "description":
                known[data] = found[query] = self._links.get(data) or _links_of(query, data)
        self._links = known
        return found

    def look(self, queries: Collection[str]) -> set[str]:
        """Read what these queries have committed; return those that committed since the last look."""
        names = sorted(queries)
        # The history is read last: it is never older than the ledger.
        keys = [metadata_key_of(query, what) for what in ("ledger", "outputs") for query in names]
        data = self._broker.get_metadata_of(keys)
        changed = set()
        for query, ledger, outputs in zip(names, data, data[len(names) :], strict=False):
            if self._raw.get(query) != (ledger, outputs):
                changed.add(query)
                self._offsets[query] = {} if ledger is None else Entry.of_bytes(ledger).offsets.topics
                self._outputs[query] = OutputHistory.of_bytes(outputs)
                self._raw[query] = ledger, outputs
        for query in self._raw.keys() - queries:
            del self._raw[query], self._offsets[query], self._outputs[query]
        return changed

    def offsets(self, query: str) -> Ends:
        """Return the offsets up to which a query has read; none for one that has committed nothing."""
        return self._offsets.get(query, {})

    def written(self, query: str, position: Position, links: Links) -> Position:
        """Return the ends of the output of a query that has read up to a position."""
        found = self._outputs[query].written_by(position) if query in self._outputs else None
        if found is not None:
            return found
        # Committed by an earlier version, or its offsets were moved: wait for all available records.
        topics = [topic for topic in sorted(links.writes) if self._broker.has_topic(topic)]
        ends = self._broker.end_offsets_of(topics) if topics else {}
        return Position(ends)


def _links_of(query: str, data: bytes) -> Links:
    with decoding(f'the description of query "{query}"'):
        found = orjson.loads(data)
        return Links(frozenset(found["reads"]), frozenset(found["writes"]))


@dataclass(slots=True)
class _Stage:
    """Queries that feed each other, or one alone; `rounds` is how often output may return to them."""

    queries: list[str]
    rounds: int


@dataclass(slots=True)
class PositionWait:
    """A wait for one query. The queries that feed it, directly or not, are waited for first, in the order of the data.

    Output that returns to a query of the same stage, such as that of an app whose agents feed each other, is followed
    once per topic.
    """

    query: str
    position: Position
    links: Mapping[str, Links]
    _wanted: dict[str, Position] = field(default_factory=dict)
    _stages: list[_Stage] = field(default_factory=list)
    _behind: str = ""

    def __post_init__(self) -> None:
        above = {query: _upstream(query, self.links) for query in _upstream(self.query, self.links)}
        for query in above:
            self._wanted[query] = self.position.within(self.links[query].reads)
        placed: set[str] = set()
        for query in sorted(above, key=lambda found: (len(above[found]), found)):
            if query not in placed:
                together = [other for other in above[query] if query in above[other]]
                placed |= set(together)
                topics = {topic for name in together for topic in self.links[name].writes}
                self._stages.append(_Stage(sorted(together), sum(self._is_read_by(t, together) for t in topics)))

    def _is_read_by(self, topic: str, queries: Iterable[str]) -> bool:
        return any(topic in self.links[query].reads for query in queries)

    @property
    def queries(self) -> set[str]:
        """The queries that this waits for."""
        return {query for stage in self._stages for query in stage.queries} or {self.query}

    def is_over(self, ledgers: Ledgers) -> bool:
        """Return whether the query has committed past the position, as of the last look at the ledgers."""
        while self._stages:
            stage = self._stages[0]
            for query in stage.queries:
                if not self._wanted[query].is_reached(ledgers.offsets(query)):
                    self._behind = query
                    return False
            if self._hand_on(stage, ledgers) and stage.rounds:
                stage.rounds -= 1
            else:
                self._stages.pop(0)
        return self.query in self.links

    def _hand_on(self, stage: _Stage, ledgers: Ledgers) -> bool:
        """Let the readers of what these queries have written wait for it; return whether they wait for each other."""
        returns = False
        for query in stage.queries:
            if not self._wanted[query]:
                continue
            readers = [other for other in self._wanted if self.links[query].writes & self.links[other].reads]
            if not readers:
                continue
            written = ledgers.written(query, self._wanted[query], self.links[query])
            for reader in readers:
                wanted = self._wanted[reader] | written.within(self.links[reader].reads & self.links[query].writes)
                if wanted != self._wanted[reader]:
                    self._wanted[reader] = wanted
                    returns = returns or reader in stage.queries
        return returns

    def error(self, ledgers: Ledgers, broker: Broker) -> PositionNotReachedError:
        """Return the error that names the query that is behind, and how far it is."""
        query = self._behind or self.query
        wanted = self._wanted.get(query, self.position)
        progress = read_progress(broker, query)
        return PositionNotReachedError(
            query, wanted, wanted.reached(ledgers.offsets(query)), "" if progress is None else progress.state
        )


def _upstream(query: str, links: Mapping[str, Links]) -> set[str]:
    """Return the queries whose output reaches a query, and the query itself; none if it is unknown."""
    found, new = set[str](), {query} & links.keys()
    while new:
        found |= new
        topics = {topic for name in new for topic in links[name].reads}
        new = {name for name, link in links.items() if link.writes & topics} - found
    return found


def wait_for_position(broker: Broker, query: str, position: Position | str, timeout_s: float) -> None:
    """Wait until a query has committed past a position; raise `PositionNotReachedError` after the timeout."""
    position = Position.parse(position) if isinstance(position, str) else position
    ledgers, deadline = Ledgers(broker), time.monotonic() + timeout_s
    wait = PositionWait(query, position, ledgers.links())
    while True:
        ledgers.look(wait.queries)
        if wait.is_over(ledgers):
            return
        if time.monotonic() >= deadline:
            raise wait.error(ledgers, broker)
        time.sleep(max(LOOK_S, broker.poll_interval_s))
        if query not in wait.links:
            wait = PositionWait(query, position, ledgers.links())
