"""Move what a listener has buffered to a topic, and acknowledge it once it is durable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.retry_policy import Retry, brief_calls
from potok.sources.arrival import Arrival, columns_of
from potok.sources.buffer import Buffer
from potok.sources.counters import EXPIRED, NOT_ACCEPTED, STOPPED

MOST_RECORDS = 20_000
MOST_BYTES = 16 << 20
LOOK_S = 1.0

_logger = logging.getLogger("potok.sources")


class Appender:
    """A thread that appends the arrivals of one buffer, in order. While the log is away, it retries."""

    def __init__(self, name: str, broker: Broker, topic: str, buffer: Buffer) -> None:
        self._name, self._broker, self._topic, self._buffer = name, broker, topic, buffer
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"potok-append-{name}", daemon=True)
        self.error: str | None = None
        """Why the log does not accept records at present."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Append what is buffered, for a limited time; what remains is lost, and its senders are notified."""
        self._buffer.close()
        self._thread.join(timeout_s)
        self._given_up.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._buffer.is_drained:
            taken = self._buffer.take(MOST_RECORDS, MOST_BYTES, LOOK_S)
            if self._given_up.is_set():
                self._buffer.settle(taken, STOPPED)
            elif taken:
                self._append(taken)

    def _append(self, taken: list[Arrival]) -> None:
        retry = Retry(0, self._given_up)
        while True:
            try:
                with brief_calls():
                    taken = self._append_once(taken)
            except (PotokError, OSError) as error:
                if self.error is None:
                    _logger.warning("%s: records cannot be appended yet: %s", self._name, error)
                self.error = str(error)
            if not taken:
                self.error = None
                return
            expired = {arrival for arrival in taken if self._buffer.is_expired(arrival)}
            taken = [arrival for arrival in taken if arrival not in expired]
            self._buffer.settle(expired, EXPIRED)
            if not taken:
                return
            if not retry.wait():
                self._buffer.settle(taken, STOPPED)
                return

    def _append_once(self, taken: list[Arrival]) -> list[Arrival]:
        """Append arrivals and settle them; return those that are left."""
        batch = columns_of(taken)
        unfit = self._broker.unfit(self._topic, batch)
        if unfit:
            taken = self._settle_unfit(taken, unfit)
            return self._append_once(taken) if taken else []
        failpoint("gateway-before-append")
        self._broker.append(self._topic, batch)
        failpoint("gateway-after-append")
        self._buffer.settle(taken, None)
        return []

    def _settle_unfit(self, taken: Sequence[Arrival], unfit: dict[int, str]) -> list[Arrival]:
        """Settle what the topic does not accept, and return the arrivals that have records left."""
        left, first = [], 0
        for arrival in taken:
            rows = {row - first: unfit[row] for row in range(first, first + len(arrival)) if row in unfit}
            first += len(arrival)
            if not rows:
                left.append(arrival)
                continue
            lost = len(arrival) if arrival.whole else len(rows)
            _logger.warning("%s: %d records were not accepted: %s", self._name, lost, next(iter(rows.values())))
            if lost == len(arrival):
                self._buffer.settle([arrival], NOT_ACCEPTED)
            else:
                self._buffer.settle_rows(arrival, rows, NOT_ACCEPTED)
                left.append(arrival)
        return left
