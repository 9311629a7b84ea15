"""Maintain the log while a query runs: retention, archive and compaction, in the background."""

from __future__ import annotations

import logging
import threading

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.errors import BrokerClosed

EVERY_S = 60.0

log = logging.getLogger(__name__)


class LogMaintenance:
    """Call `Broker.maintain` periodically in its own thread, so that a batch never waits for it.

    Several queries on one log take turns: the first one takes a partition, and the others skip it. Work interrupted
    by the end of the process is repeated by the next.
    """

    def __init__(self, broker: Broker, every_s: float = EVERY_S) -> None:
        self._broker, self._every_s = broker, every_s
        self._over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="potok-upkeep", daemon=True).start()

    def stop(self) -> None:
        """Start nothing more; running work is not awaited."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self._broker.maintain()
            except BrokerClosed:
                return
            except (PotokError, OSError) as error:
                # An error does not stop the query; the next round tries again.
                log.warning("log maintenance failed: %s", error)
