"""Report the status of listeners and captures to their log while they run."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.snapshots.source_status import encode_status, status_key

REPORT_S = 2.0

_logger = logging.getLogger(__name__)


class StatusReport:
    """Writes the statuses every few seconds, and once more at the end.

    A log that does not answer is no reason to stop receiving: the next report follows.

    Args:
        statuses: Returns the status of each source by its name.
    """

    def __init__(self, broker: Broker, kind: str, statuses: Callable[[], Mapping[str, dict[str, Any]]]) -> None:
        self._broker, self._kind, self._statuses = broker, kind, statuses
        self._stopping = threading.Event()
        self._process = f"process {os.getpid()} on {socket.gethostname()}"
        self._thread = threading.Thread(target=self._run, name=f"potok-{kind}-status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            ended = self._stopping.is_set()
            self._write(running=not ended)
            if ended:
                return
            self._stopping.wait(REPORT_S)

    def _write(self, *, running: bool) -> None:
        now = now_ms()
        found = {
            status_key(self._kind, name): encode_status(now, self._process, running=running, status=status)
            for name, status in self._statuses().items()
        }
        try:
            self._broker.set_metadata(found)
        except (PotokError, OSError) as error:
            _logger.debug("the status of %s was not written: %s", self._kind, error)
