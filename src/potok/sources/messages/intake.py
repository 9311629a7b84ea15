"""Hand messages over to the buffer, each at most once if they have ids."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from potok.clock import now_ms
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival, Done
from potok.sources.deduplication import AnotherBody, Deduplication, digest_of
from potok.sources.listener import ListenerContext

CONFLICT = "conflict"
"""Why a message is lost whose id belongs to another one."""


class Message(NamedTuple):
    """A message as a record, with its id if it has one."""

    record: LogRecord
    identifier: str | None = None


class Intake:
    """Offers messages to a buffer. A message whose id has landed before, or is on its way, is counted as a duplicate.

    Those that are handed over together are acknowledged together, duplicates too: the buffer keeps the order, so the
    first message with an id is settled before a later one is acknowledged.
    """

    def __init__(self, context: ListenerContext, known: Deduplication[None] | None = None) -> None:
        self._context, self._known = context, known
        # An arrival may be settled while it is offered: by the thread that appends, or because it drops another.
        self._lock = threading.RLock()

    def offer(self, messages: Sequence[Message], done: Done | None = None) -> bool:
        """Hand messages over; False if there is no room and their sender has to keep them."""
        if self._known is None:
            return self._context.buffer.offer(Arrival.of([message.record for message in messages], done))
        with self._lock:
            return self._offer_once(self._known, messages, done)

    def _offer_once(self, known: Deduplication[None], messages: Sequence[Message], done: Done | None) -> bool:
        records: list[LogRecord] = []
        started: list[str] = []
        duplicates: int = 0
        conflicts: list[bytes] = []
        for record, identifier in messages:
            if identifier is None:
                records.append(record)
                continue
            digest = digest_of(record.value or b"")
            try:
                new = known.find(identifier, digest, now_ms()) is False
            except AnotherBody:
                conflicts.append(record.value or b"")
                continue
            if new:
                known.begin(identifier, digest, None)
                started.append(identifier)
                headers = (*record.headers, *known.headers(identifier, digest))
                records.append(LogRecord(record.key, record.value, record.timestamp_ms, headers))
            else:
                duplicates += 1

        def finish(problem: str | None) -> None:
            with self._lock:
                self._end(known, started, landed=problem is None)
            if done is not None:
                done(problem)

        if not self._context.buffer.offer(Arrival.of(records, finish)):
            self._end(known, started, landed=False)
            return False
        self._context.counters.duplicates(duplicates)
        if conflicts:
            self._context.lose(conflicts, CONFLICT, "the id belongs to another message")
        return True

    def _end(self, known: Deduplication[None], started: list[str], *, landed: bool) -> None:
        for identifier in started:
            known.end(identifier, landed=landed, now_ms=now_ms())
