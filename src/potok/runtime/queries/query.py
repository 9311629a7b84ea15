"""A running topology."""

from __future__ import annotations

from typing import Any

from potok.errors import PotokError
from potok.redact import redact_url
from potok.runtime.batches.executor import Executor
from potok.runtime.output.dead_letter_reporter import DeadLetterReporter
from potok.runtime.planning.pace import FIRST, FIRST_ONE_BY_ONE
from potok.runtime.queries.group_query import GroupQuery
from potok.runtime.queries.prepare import Prepared
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import Tables
from potok.state.offsets import Ends, Offsets
from potok.topology.nodes import Agents, Process


class Query:
    """A topology that runs in the background of this process: a group of one query.

    >>> with potok.start(builder) as query:
    ...     query.wait(60)
    ...     query.table("order_counts").get("user_001")
    """

    def __init__(
        self,
        prepared: Prepared,
        executor: Executor,
        settings: Settings,
        *,
        target: Ends | None = None,
        leader: str = "",
        own: frozenset[str] = frozenset(),
    ) -> None:
        """Start the query; `Planner` describes `target`, `own` and `leader`."""
        topology = prepared.plan.topology
        self.name, self._broker = topology.name, prepared.broker
        self.stop_timeout_ms = settings.stop_timeout_ms
        one_by_one = any(isinstance(node, Agents | Process) for node in topology.nodes)
        first = FIRST_ONE_BY_ONE if one_by_one else FIRST
        self._query = GroupQuery.start(prepared, executor, settings, first=first, target=target, leader=leader, own=own)
        found_anyway = settings.broker == Settings.load().broker
        self._query.reporter = DeadLetterReporter(topology, "" if found_anyway else redact_url(settings.broker))
        self.group = QueryGroup(self._broker, settings, executor, self.name, lock=False, ends_with_query=True)
        self.group.take(self._query)

    def start(self) -> Query:
        """Start the batch loop in a thread of this process."""
        self.group.start()
        return self

    def stop(self) -> None:
        """Stop at the next batch boundary, and wait for it."""
        self.group.stop()

    def pause(self) -> None:
        """Pause between two batches: records wait in the log."""
        self.group.pause(self.name)

    def resume(self) -> None:
        """Continue after `pause`."""
        self.group.resume(self.name)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return whether it was reached. Raise the error if the query failed."""
        return self.group.wait(timeout)

    def has_ended(self, timeout: float) -> bool:
        """Wait for the end; return whether it was reached, by an error or otherwise."""
        try:
            return self.wait(timeout)
        except PotokError:
            return True

    @property
    def is_active(self) -> bool:
        """Whether the batch loop runs."""
        return self.group.is_active

    @property
    def waiting_for(self) -> PotokError | None:
        """What the query waits for: Kafka, the state server or a sink that does not respond."""
        waiting = self._query.waiting
        return waiting.error if waiting is not None else self.group.waiting_for

    @property
    def tables(self) -> Tables:
        """The tables of the query, as of the last committed batch."""
        return Tables(self._broker, self.name)

    def table(self, name: str) -> TableView:
        """Read a table as of the last committed batch."""
        return self.tables[name]

    @property
    def offsets(self) -> Offsets:
        """The next offset of each partition, as of the last committed batch."""
        return self._query.runner.ledger.entry.offsets

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
