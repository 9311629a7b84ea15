"""Report what a push query could not decode or compute to the processing log; the query continues."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from potok.errors import PotokError
from potok.expressions.failures import LONGEST, MOST
from potok.log.broker import Broker
from potok.runtime.output.processing_log import PROCESSING_LOG, Failed, comes_from_log, log_records, make_log
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.statements.frames import Frame

log = logging.getLogger(__name__)

OFFSET = "record.offset"
"""The slot with the index of the record of a row."""

REPORT_S = 1.0
"""The shortest interval between two writes of a push query to the log, so that a client cannot flood it."""


class PushFailures:
    """Collects the failures of one push query and writes them periodically. One thread computes, any thread may close
    it."""

    def __init__(self, broker: Broker, query_id: str, topic: str) -> None:
        self._broker, self._query_id, self._topic = broker, query_id, topic
        self._counts: Counter[str] = Counter()
        self._failed: list[Failed] = []
        self._due_at, self._noting = 0.0, threading.Lock()
        self.left_out = 0

    def unreadable(self, partition: int, errors: Mapping[int, str]) -> None:
        """Add records that could not be decoded, by offset, with the reason."""
        if errors:
            self.left_out += len(errors)
            self._note(
                "", partition, {offset: f"the record cannot be decoded: {why}" for offset, why in errors.items()}
            )

    def computed(self, expressions: Sequence[Typed], frame: Frame, partition: int, now_ms: int) -> list[pa.Array]:
        return [self._computed(expression, frame, partition, now_ms) for expression in expressions]

    def _computed(self, expression: Typed, frame: Frame, partition: int, now_ms: int) -> pa.Array:
        context = Context(now_ms=now_ms)
        found = compute(expression, frame.columns, frame.rows, context)
        if context.failures:
            offsets = frame.columns[OFFSET]
            reasons = {offsets[row].as_py(): why for row, why in sorted(context.failures.items(), reverse=True)}
            self._note(str(expression), partition, reasons)
        return found

    def _note(self, expression: str, partition: int, reasons: Mapping[int, str]) -> None:
        with self._noting:
            room = max(MOST - self._counts[expression], 0)
            self._counts[expression] += len(reasons)
            for offset in sorted(reasons)[:room]:
                message = reasons[offset][:LONGEST]
                self._failed.append(Failed(expression, message, self._topic, partition, offset))

    def report(self, *, at_once: bool = False) -> None:
        """Write the failures since the last write, if a write is due."""
        if not self._counts or (not at_once and time.monotonic() < self._due_at):
            return
        with self._noting:
            counts, failed = self._counts, self._failed
            self._counts, self._failed, self._due_at = Counter(), [], time.monotonic() + REPORT_S
        try:
            if not comes_from_log(self._broker, [self._topic]):
                make_log(self._broker)
                self._broker.append(PROCESSING_LOG, log_records(self._query_id, counts, failed), 0)
        except PotokError as error:
            # The rows of the query must not wait for a log that cannot be written.
            log.warning("failures of %s could not be written to the processing log: %s", self._query_id, error)
