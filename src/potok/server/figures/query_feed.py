"""The figures of a query, read from its log and its tables; the query may run in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.server.figures.dead_letters import RecentDeadLetters
from potok.server.figures.drawing import draw
from potok.server.figures.feed import UnknownTable
from potok.server.figures.panel import Panel, series, top
from potok.server.figures.rates import Rates
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import Progress, read_description, read_progress
from potok.snapshots.tables import NoSuchQuery, Tables
from potok.topology.describe import description_of
from potok.topology.graph import Topology

REST = 4
"""A panel that takes a second to read is read every five seconds, which bounds the cost of watching."""

MOST_PARTITIONS = 8
"""How many partitions with unread records are searched for the oldest one."""

NO_WATERMARK = -(1 << 60)
"""Lower values mean that a step has not seen a time yet."""


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
        self._arrivals: dict[tuple[str, int, int], int] = {}

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
        progress = read_progress(self._broker, self._query)
        found = self._figures(progress)
        if progress is None or "batch" not in found:
            return found
        return {
            **found,
            "open_dead_letters": self._dead_letters.open(),
            "recent_dead_letters": self._dead_letters.latest(),
            "panels": self._fill(progress),
        }

    def figures(self) -> dict[str, Any]:
        return self._figures(read_progress(self._broker, self._query))

    def _figures(self, progress: Progress | None) -> dict[str, Any]:
        now = self._clock()
        if progress is None or (progress.state == "starting" and not progress.total_in):
            return {"at": now, "query": self._query, "state": "starting", "error": ""}
        rates, pending = self._measure(progress, now), self._pending(progress)
        lag = progress.lag if pending is None else sum(end - first for (first, end) in pending.values())
        watermarks = [watermark for watermark in progress.watermarks.values() if watermark > NO_WATERMARK]
        entry = read_entry(self._broker, self._query)
        return {
            "at": now,
            "query": self._query,
            "state": progress.state,
            "idle": progress.state == "running" and not lag and not rates.get("in"),
            "error": progress.error or "",
            "uptime_ms": 0 if progress.state == "starting" else self._uptime(progress, now),
            "restarts": 0 if entry is None else max(0, entry.epoch - 1),
            "committed_at_ms": progress.committed_at_ms,
            "batch": progress.batch,
            "batch_ms": progress.batch_ms,
            "rate_in": rates.get("in", 0.0),
            "rate_out": rates.get("out", 0.0),
            "lag": lag,
            "lag_ms": self._lag_ms(pending or {}, lag, now),
            "watermark_ms": min(watermarks, default=None),
            "total_in": progress.total_in,
            "total_out": progress.total_out,
            "dead_letters": progress.dead_letters,
            "dead_letters_by_reason": dict(progress.dead_letters_by_reason),
            "failures": dict(progress.failures),
            "state_bytes": progress.state_bytes,
            "state_keys": sum(progress.state_keys.values()),
            "object_requests": progress.object_requests,
            "tables": dict(progress.state_keys),
            "steps": {
                name: {
                    "in": counts["in"],
                    "out": counts["out"],
                    "late": counts.get("late", 0),
                    "rate": rates.get(f"step {name}", 0.0),
                }
                for name, counts in progress.steps.items()
            },
        }

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

    def _pending(self, progress: Progress) -> dict[tuple[str, int], tuple[int, int]] | None:
        """Return the unread offsets of each partition that has some; None if the log does not answer.

        They are counted from the current ends of the topics, so that a batch that hangs does not hide the growing lag.
        """
        try:
            ends = self._broker.end_offsets_of(list(progress.offsets))
        except PotokError:
            return None
        found = {}
        for topic, partitions in ends.items():
            done = progress.offsets.get(topic, {})
            for partition, end in partitions.items():
                first = done.get(str(partition), 0)
                if first < end:
                    found[topic, partition] = (first, end)
        return found

    def _lag_ms(self, pending: dict[tuple[str, int], tuple[int, int]], lag: int, now: int) -> int | None:
        """Return how long the oldest unread record has been in the log; None where that costs a request to Kafka."""
        if not lag:
            return 0
        if not isinstance(self._broker, EmbeddedBroker):
            return None
        known, self._arrivals = self._arrivals, {}
        for (topic, partition), (first, end) in list(pending.items())[:MOST_PARTITIONS]:
            position = (topic, partition, first)
            self._arrivals[position] = (
                known[position] if position in known else self._arrival(topic, partition, first, end)
            )
        return max((max(0, now - at) for at in self._arrivals.values()), default=None)

    def _arrival(self, topic: str, partition: int, first: int, end: int) -> int:
        try:
            for batch in self._broker.read(topic, partition, first, min(end, first + 1)):
                if batch.num_rows:
                    return int(batch.column("ingested")[0].as_py())
        except PotokError:  # retention has just removed it
            pass
        return self._clock()

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
