"""Log the dead letters of the queries of a catalog while they run, as `potok run` does for its query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from potok.redact import redact_url
from potok.runtime.output.dead_letter_reporter import DeadLetterReporter
from potok.settings import Settings
from potok.statements.catalog.catalog_state import Wanted

if TYPE_CHECKING:
    from potok.runtime.batches.group_batch import Committed


class DeadLetterLog:
    """Logs the first dead letter of each step of a query, then counts at growing intervals.

    Push queries are excluded: their clients receive the number of records left out. Thread-safe.

    Args:
        queries: Returns the queries of the catalog.
        broker: The URL of the log.
    """

    def __init__(self, queries: Callable[[], Mapping[str, Wanted]], broker: str) -> None:
        self._queries = queries
        self._broker = "" if broker == Settings.load().broker else redact_url(broker)
        self._reporters: dict[str, tuple[int, DeadLetterReporter]] = {}
        self._lock = threading.Lock()

    def heard(self, done: Mapping[str, Committed]) -> None:
        """Report the dead letters of a batch."""
        with self._lock:
            for name, committed in done.items():
                wanted = self._queries().get(name)
                if wanted is not None and committed.reason_counts:
                    self._reporter(wanted).report(committed.reason_counts)

    def report_more(self, *, now: bool = False) -> None:
        """Report the dead letters counted since the last report, if it is due or `now` is set."""
        with self._lock:
            known = self._queries()
            for name, (_, reporter) in list(self._reporters.items()):
                reporter.report_pending(now=now or name not in known)
                if name not in known:
                    del self._reporters[name]

    def _reporter(self, wanted: Wanted) -> DeadLetterReporter:
        """Return the reporter of a definition of a query: CREATE OR REPLACE changes its steps."""
        known = self._reporters.get(wanted.query_id)
        if known is None or known[0] != wanted.sequence:
            if known is not None:
                known[1].report_pending(now=True)
            known = self._reporters[wanted.query_id] = (
                wanted.sequence,
                DeadLetterReporter(wanted.topology, self._broker),
            )
        return known[1]
