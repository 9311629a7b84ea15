"""Hand messages over to the buffer, each at most once if they have ids."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from potok.clock import now_ms
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival, Done, after
from potok.sources.counters import MALFORMED
from potok.sources.deduplication import AnotherBody, Deduplication, digest_of
from potok.sources.listener import ListenerContext

CONFLICT = "conflict"
"""Why a message is lost whose id belongs to another one."""


class Message(NamedTuple):
    """A message as a record, with its id if it has one."""

    record: LogRecord
    identifier: str | None = None
    problem: str | None = None
    """Why it cannot become a record, if it cannot; the value of `record` is then what was received."""


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
        bad = [message for message in messages if message.problem is not None]
        if bad:
            return self._offer_without(bad, messages, done)
        if self._known is None:
            return self._context.buffer.offer(Arrival.of([message.record for message in messages], done))
        with self._lock:
            return self._offer_once(self._known, messages, done)

    def _offer_without(self, bad: list[Message], messages: Sequence[Message], done: Done | None) -> bool:
        """Hand over the messages that can become records, and lose the others once these are accepted."""
        ended = None if done is None else after(1 + len(bad), done)
        if not self.offer([message for message in messages if message.problem is None], ended):
            return False
        for message in bad:
            self._context.lose([message.record.value or b""], MALFORMED, message.problem or "", ended)
        return True

    def _offer_once(self, known: Deduplication[None], messages: Sequence[Message], done: Done | None) -> bool:
        records: list[LogRecord] = []
        started: list[str] = []
        duplicates: int = 0
        conflicts: list[bytes] = []
        for record, identifier, _ in messages:
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

        ended = done if done is None or not conflicts else after(2, done)

        def finish(problem: str | None) -> None:
            with self._lock:
                self._end(known, started, landed=problem is None)
            if ended is not None:
                ended(problem)

        if not self._context.buffer.offer(Arrival.of(records, finish)):
            self._end(known, started, landed=False)
            return False
        self._context.counters.duplicates(duplicates)
        if conflicts:
            self._context.lose(conflicts, CONFLICT, "the id belongs to another message", ended)
        return True

    def _end(self, known: Deduplication[None], started: list[str], *, landed: bool) -> None:
        for identifier in started:
            known.end(identifier, landed=landed, now_ms=now_ms())
