"""Run the queries of a catalog: start and stop them as the catalog says, and restart failed ones."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from potok.errors import PotokError
from potok.retry_policy import Retry
from potok.statements.catalog.catalog_state import Wanted

if TYPE_CHECKING:
    from potok.runtime.queries.group_query import QueryStatus
    from potok.runtime.queries.query_group import QueryGroup

log = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0

QUERY_ACTIONS = ("pause", "resume", "restart", "terminate")
"""What can be done to a query of a catalog."""


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A persistent query and its state: RUNNING, PAUSED, WAITING, ERROR, or STOPPED if no process runs it."""

    query_id: str
    text: str
    kind: str
    source: str
    state: str
    error: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lag: int = 0
    records_per_second: float = 0.0


class BackOff:
    """The time of the next attempt: after one second, then at growing intervals."""

    def __init__(self) -> None:
        self._retry = Retry(0, first_s=FIRST_RETRY_S, most_s=LAST_RETRY_S)
        self._due_at = self._next()

    def is_due(self) -> bool:
        """Return whether an attempt is due; if so, schedule the next one."""
        if time.monotonic() < self._due_at:
            return False
        self._due_at = self._next()
        return True

    def _next(self) -> float:
        return time.monotonic() + (self._retry.pause() or 0.0)


class Runner:
    """Keeps the queries of a group in line with the catalog. The owner holds a lock around every call.

    A failure of a single query raises nothing, because its statement is already committed: a query that cannot start,
    pause or stop is shown with the reason and does not affect the others.

    Args:
        check: Raises if a query must not start or be retried.
    """

    def __init__(self, shared: QueryGroup, check: Callable[[Wanted], None] = lambda _: None) -> None:
        self.shared, self._check = shared, check
        self._running: dict[str, Wanted] = {}
        self._refused: dict[str, str] = {}
        """Queries that could not start, and why."""
        self._held_up: dict[str, str] = {}
        """Queries that failed and are not retried, and why."""
        self._retries: dict[str, BackOff] = {}

    def state_of(self, wanted: Wanted, members: Mapping[str, QueryStatus]) -> tuple[str, str]:
        """Return the state of a query and its error. A failed query that was paused is PAUSED and is not retried."""
        status, refused = members.get(wanted.query_id), self._refused.get(wanted.query_id, "")
        error = refused or self._held_up.get(wanted.query_id, "") or ("" if status is None else status.error)
        if wanted.paused:
            return "PAUSED", error
        if refused or (status is not None and status.state.value == "FAILED"):
            return "ERROR", error
        return ("RUNNING" if status is None else status.state.value), error

    def settle(self, queries: Mapping[str, Wanted]) -> None:
        """Start the queries that should run, and stop all others."""
        for query_id in [query_id for query_id in self._running if query_id not in queries]:
            self._end(query_id)
        for wanted in queries.values():
            known = self._running.get(wanted.query_id)
            if known is not None and (known.sequence, known.broken) != (wanted.sequence, wanted.broken):
                self._end(wanted.query_id)
                known = None
            if known is None:
                self._begin(wanted)
            elif known.paused != wanted.paused:
                self._turn(wanted)

    def look_after(self) -> None:
        """Retry failed queries, at growing intervals."""
        failed = {name for name, status in self.shared.statuses().items() if status.state.value == "FAILED"}
        troubled = {name for name in failed | self._refused.keys() if self._can_be_tried(name)}
        self._retries = {name: when for name, when in self._retries.items() if name in self._running}
        for name in troubled:
            if self._retries.setdefault(name, BackOff()).is_due():
                self._try_again(name)

    def _can_be_tried(self, name: str) -> bool:
        wanted = self._running.get(name)
        return wanted is not None and not wanted.paused and not wanted.broken

    def _turn(self, wanted: Wanted) -> None:
        """Pause or resume a query; resuming a failed query retries it."""
        name = wanted.query_id
        self._running[name] = wanted
        if name not in self._refused:
            try:
                (self.shared.pause if wanted.paused else self.shared.resume)(name)
                return
            except PotokError as error:
                log.info("query %s: %s", name, error)
        if self._can_be_tried(name):
            self._try_again(name)

    def _try_again(self, name: str) -> None:
        if name in self._refused:
            self._begin(self._running[name])
            return
        self._held_up.pop(name, None)
        try:
            self._check(self._running[name])
        except PotokError as error:
            self._held_up[name] = str(error)
            return
        with contextlib.suppress(PotokError):
            self.shared.retry(name)

    def _begin(self, wanted: Wanted) -> None:
        name, self._running[wanted.query_id] = wanted.query_id, wanted
        self._refused.pop(name, None)
        if wanted.broken:
            self._refused[name] = wanted.broken
            return
        try:
            self._check(wanted)
            self.shared.add(wanted.topology, start=_beginning(wanted), paused=wanted.paused)
        except PotokError as error:
            self._refused[name] = str(error)
            log.warning("query %s cannot start: %s", name, error)

    def _end(self, query_id: str) -> None:
        try:
            if query_id in self.shared.statuses():
                self.shared.remove(query_id)
        except PotokError as error:
            # The query has left the group but could not record that; its next start detects it.
            log.warning("query %s failed to stop: %s", query_id, error)
        self._running.pop(query_id, None)
        self._refused.pop(query_id, None)
        self._held_up.pop(query_id, None)
        self._retries.pop(query_id, None)


def _beginning(wanted: Wanted) -> Literal["earliest", "latest"]:
    return "latest" if wanted.start.lower() == "latest" else "earliest"
