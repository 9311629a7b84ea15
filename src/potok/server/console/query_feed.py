"""The figures of a query, read from its broker and its tables; the query may run in another process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.server.console.dead_letters import RecentDeadLetters
from potok.server.console.drawing import draw
from potok.server.console.feed import UnknownTable
from potok.server.console.panel import Panel, series, top
from potok.server.console.rates import Rates
from potok.snapshots.progress import Progress, read_description, read_progress
from potok.snapshots.snapshot import Snapshot
from potok.snapshots.table_view import WindowedKey
from potok.snapshots.tables import NoSuchQuery, Tables
from potok.topology.describe import description_of
from potok.topology.graph import Topology

REST = 4
"""A panel that takes a second to read is read every five seconds, which bounds the cost of watching."""

LOOKED_AT = 20_000
"""How many rows of a table are searched for a key."""


class QueryFeed:
    """A feed over a query that runs, or ran, on a broker."""

    def __init__(
        self,
        broker: Broker,
        query: str,
        *,
        topology: Topology | None = None,
        panels: Sequence[Panel] = (),
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._broker = broker
        self._query = query
        self._topology = topology
        self._panels = tuple(panels)
        self._clock = clock
        self._rates = Rates()
        self._dead_letters = RecentDeadLetters(broker, query)
        self._filled: list[dict[str, Any] | None] = [None] * len(self._panels)
        self._filled_at: tuple[int, int] | None = None
        self._next_fill_ms = 0

    def topology(self) -> dict[str, Any]:
        description = self._describe()
        shape = draw(description) if description else {"query": self._query, "nodes": [], "tables": []}
        return {**shape, "panels": [panel.describe() for panel in self._panels]}

    def _describe(self) -> dict[str, Any] | None:
        """Return the recorded topology of the query; before it has started, the one that is about to start."""
        stored = read_description(self._broker, self._query)
        if stored is None and self._topology is not None:
            return description_of(self._topology)
        return stored

    def snapshot(self) -> dict[str, Any]:
        now = self._clock()
        progress = read_progress(self._broker, self._query)
        if progress is None or (progress.state == "starting" and not progress.total_in):
            return {"at": now, "query": self._query, "state": "starting", "error": ""}
        rates, lag = self._measure(progress, now), self._lag(progress)
        return {
            "at": now,
            "query": self._query,
            "state": progress.state,
            "idle": progress.state == "running" and not lag and not rates.get("in"),
            "error": progress.error or "",
            "uptime_ms": 0 if progress.state == "starting" else self._uptime(progress, now),
            "batch": progress.batch,
            "batch_ms": progress.batch_ms,
            "rate_in": rates.get("in", 0.0),
            "rate_out": rates.get("out", 0.0),
            "lag": lag,
            "total_in": progress.total_in,
            "total_out": progress.total_out,
            "dead_letters": progress.dead_letters,
            "dead_letters_by_reason": dict(progress.dead_letters_by_reason),
            "failures": dict(progress.failures),
            "open_dead_letters": self._dead_letters.open(),
            "recent_dead_letters": self._dead_letters.latest(),
            "state_bytes": progress.state_bytes,
            "state_keys": sum(progress.state_keys.values()),
            "tables": dict(progress.state_keys),
            "steps": {
                name: {"in": counts["in"], "out": counts["out"], "rate": rates.get(f"step {name}", 0.0)}
                for name, counts in progress.steps.items()
            },
            "panels": self._fill(progress),
        }

    def rows(self, table: str, find: str, limit: int) -> dict[str, Any]:
        tables = self._tables(table)
        view = tables[table]
        looked_at = tables.read(lambda snapshot: view.rows_of(FirstCells(snapshot, LOOKED_AT)))
        wanted = find.lower()
        found = [row for key, value in looked_at if wanted in str((row := _row(key, value))["key"]).lower()]
        return {"rows": found[:limit], "more": len(found) > limit or len(looked_at) >= LOOKED_AT}

    def _measure(self, progress: Progress, now: int) -> dict[str, float]:
        totals = {"in": progress.total_in, "out": progress.total_out}
        totals |= {f"step {name}": counts["out"] for name, counts in progress.steps.items()}
        # The number of records that each step sent in the last batch is not recorded.
        began = {"in": progress.total_in - progress.records_in, "out": progress.total_out - progress.records_out}
        self._rates.begin(progress.committed_at_ms - max(progress.batch_ms, 1), totals | began)
        self._rates.record(progress.committed_at_ms, totals)
        if progress.state != "running":
            return {}
        return self._rates.at(now)

    def _uptime(self, progress: Progress, now: int) -> int:
        until = now if progress.state == "running" else progress.committed_at_ms
        return max(0, until - progress.started_at_ms)

    def _lag(self, progress: Progress) -> int:
        """Count from the current ends of the topics, so that a batch that hangs does not hide the growing lag."""
        try:
            ends = self._broker.end_offsets_of(list(progress.offsets))
        except PotokError:
            return progress.lag
        lag = 0
        for topic, partitions in ends.items():
            done = progress.offsets.get(topic, {})
            lag += sum(max(0, end - done.get(str(partition), 0)) for partition, end in partitions.items())
        return lag

    def _fill(self, progress: Progress) -> list[dict[str, Any] | None]:
        """Return the panels as of the last commit, because tables change only then."""
        commit = (progress.started_at_ms, progress.batch)
        began = self._clock()
        if commit == self._filled_at or began < self._next_fill_ms:
            return self._filled
        self._filled = [self._panel(panel) for panel in self._panels]
        self._filled_at = commit
        ended = self._clock()
        self._next_fill_ms = ended + REST * (ended - began)
        return self._filled

    def _panel(self, panel: Panel) -> dict[str, Any]:
        tables = self._tables(panel.table)
        views = [tables[panel.table], *([tables[panel.beside[0]]] if panel.beside else [])]
        rows, *beside = tables.read(lambda snapshot: [dict(view.rows_of(snapshot)) for view in views])
        if panel.kind == "series":
            return series(rows, panel.limit, panel.parts)
        return {"rows": top(rows, beside[0] if beside else {}, panel.limit)}

    def _tables(self, wanted: str) -> Tables:
        try:
            tables = Tables(self._broker, self._query)
        except NoSuchQuery as error:
            raise UnknownTable(self._query, wanted) from error
        if wanted not in tables:
            raise UnknownTable(self._query, wanted)
        return tables


class FirstCells(Snapshot):
    """Read the beginning of each table of a snapshot; reading millions of rows would take too long."""

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self._snapshot, self._most = snapshot, most

    @property
    def shards(self) -> int:
        return self._snapshot.shards

    def get(self, table: str, shard: int, key: bytes) -> bytes | None:
        return self._snapshot.get(table, shard, key)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, shard: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        return itertools.islice(self._snapshot.scan(table, start, stop, shard=shard), self._most)


def _row(key: Any, value: Any) -> dict[str, Any]:
    if isinstance(key, WindowedKey):
        return {"key": key.key, "start": key.start_ms, "end": key.end_ms, "value": value}
    return {"key": key, "value": value}
