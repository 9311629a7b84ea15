"""Where the parts of a process register what they measure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from potok.errors import PotokError
from potok.monitoring import families
from potok.monitoring.exposition import Exposition, expose
from potok.monitoring.process import collect_process
from potok.monitoring.scrape import Scrape

log = logging.getLogger(__name__)

Collector = Callable[[Scrape], None]
"""Adds the current samples of a part of the process. It reads what exists; nothing is counted twice for metrics."""


class Registry:
    """The collectors of a process. Any thread may add one, and scrape.

    >>> registry = Registry()
    >>> registry.add(query_metrics)
    >>> registry.expose("application/openmetrics-text").body
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collectors: list[Collector] = []

    def add(self, collector: Collector) -> Callable[[], None]:
        """Add a collector; return a function that removes it."""
        with self._lock:
            self._collectors.append(collector)
        return lambda: self._remove(collector)

    def _remove(self, collector: Collector) -> None:
        with self._lock:
            if collector in self._collectors:
                self._collectors.remove(collector)

    def scrape(self) -> Scrape:
        """Collect from all parts. One that cannot be read, for example because its log does not answer, is left out."""
        scrape = Scrape()
        collect_process(scrape)
        with self._lock:
            collectors = list(self._collectors)
        failed = 0
        for collector in collectors:
            try:
                collector(scrape)
            except PotokError as error:
                failed += 1
                log.info("some metrics cannot be collected: %s", error.message)
        scrape.add(families.SCRAPE_FAILURES, failed)
        scrape.add(families.SERIES_LEFT_OUT, scrape.left_out)
        return scrape

    def expose(self, accept: str | None = None) -> Exposition:
        return expose(self.scrape(), accept)
