"""The pending deliveries of one endpoint and when they are due: bookkeeping without threads, clocks or requests."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from potok.runtime.webhooks.records import Attempt, Delivery, Outcome

MOST_PENDING = 10_000
"""With more deliveries that wait for a retry, an endpoint reads no new ones."""

READ_AHEAD = 64
"""How many deliveries an endpoint reads before they are sent; their bodies are in memory."""

UNHEALTHY = 5
"""After this many failures in a row an endpoint gets one request at a time, until one succeeds."""


@dataclass(slots=True)
class Pending:
    """A delivery that was not accepted, the number of attempts so far, and when the next one is due."""

    offset: int
    identifier: str
    attempts: int
    due_ms: int
    body: bytes | None = None
    """None after the first attempt: then it is read from the log again."""


@dataclass(slots=True)
class Receiver:
    """The deliveries of one endpoint. Everything below `cursor` was accepted, has failed, or is in `pending`."""

    step: str
    endpoint: str
    cursor: int
    disabled: bool = False
    pending: dict[int, Pending] = field(default_factory=dict)
    ahead: dict[int, Pending | None] = field(default_factory=dict)
    """The outcome of deliveries from `cursor` on that another process has read; None means done."""
    resume_ms: int = 0
    failures: int = 0
    in_flight: set[int] = field(default_factory=set)
    _queue: list[tuple[int, int]] = field(default_factory=list)

    @property
    def wanted(self) -> int:
        """How many more deliveries to read."""
        if self.disabled or len(self.pending) >= MOST_PENDING:
            return 0
        return max(READ_AHEAD - sum(1 for each in self.pending.values() if each.body is not None), 0)

    def read(self, delivery: Delivery, now_ms: int) -> None:
        """Add one delivery from the topic; deliveries come in the order of their offsets."""
        self.cursor = delivery.offset + 1
        if delivery.offset in self.ahead:
            known = self.ahead.pop(delivery.offset)
            if known is not None:
                self._put(known)
        elif delivery.step == self.step:
            self._put(Pending(delivery.offset, delivery.identifier, 0, now_ms, delivery.body))

    def skip_to(self, offset: int) -> None:
        """Move the cursor over offsets without deliveries."""
        self.cursor = max(self.cursor, offset)
        for each in [number for number in self.ahead if number < self.cursor]:
            known = self.ahead.pop(each)
            if known is not None:
                self._put(known)

    def start(self, now_ms: int, concurrency: int) -> list[Pending]:
        """Return the deliveries to send, and count them as in flight."""
        if self.disabled or now_ms < self.resume_ms:
            return []
        slots = (1 if self.failures >= UNHEALTHY else concurrency) - len(self.in_flight)
        found: list[Pending] = []
        while len(found) < slots and self._queue and self._queue[0][0] <= now_ms:
            due_ms, offset = heapq.heappop(self._queue)
            known = self.pending.get(offset)
            # An entry is out of date if the delivery was completed or rescheduled.
            if known is not None and known.due_ms == due_ms and offset not in self.in_flight:
                self.in_flight.add(offset)
                found.append(known)
        return found

    def next_due_ms(self) -> int | None:
        """Return when the next delivery is due; None if none is scheduled."""
        if self.disabled or not self._queue:
            return None
        return max(self._queue[0][0], self.resume_ms)

    def busy(self, now_ms: int) -> bool:
        """Return whether a delivery is being sent or is due."""
        due_ms = self.next_due_ms()
        return bool(self.in_flight) or (due_ms is not None and due_ms <= now_ms)

    def completed(self, attempt: Attempt, resume_ms: int) -> None:
        """Apply an attempt that this process has made and recorded."""
        self.in_flight.discard(attempt.delivery)
        self.resume_ms = max(self.resume_ms, resume_ms)
        self.failures = 0 if attempt.outcome is Outcome.DELIVERED else self.failures + 1
        self.apply(attempt)

    def apply(self, attempt: Attempt) -> None:
        """Apply an attempt, of this process or of an earlier one, or a request of an operator."""
        match attempt.outcome:
            case Outcome.DELIVERED | Outcome.FAILED:
                self._done(attempt.delivery)
            case Outcome.RETRY:
                due_ms = attempt.at if attempt.next_at is None else attempt.next_at
                self._wait(Pending(attempt.delivery, attempt.id, attempt.attempt, due_ms))
            case Outcome.DISABLED:
                self.disabled = True
                self._wait(Pending(attempt.delivery, attempt.id, attempt.attempt, attempt.at))
            case Outcome.REDRIVE:
                self._redrive(attempt)
            case Outcome.ENABLE:
                self.disabled, self.failures, self.resume_ms = False, 0, 0
            case Outcome.EXPIRED:
                pass

    def _redrive(self, attempt: Attempt) -> None:
        unread = attempt.delivery >= self.cursor and attempt.delivery not in self.ahead
        if not unread and attempt.delivery not in self.in_flight:
            self._wait(Pending(attempt.delivery, attempt.id, 0, attempt.at))

    def _done(self, offset: int) -> None:
        if offset >= self.cursor:
            self.ahead[offset] = None
        else:
            self.pending.pop(offset, None)

    def _wait(self, pending: Pending) -> None:
        if pending.offset >= self.cursor:
            self.ahead[pending.offset] = pending
        else:
            self._put(pending)

    def _put(self, pending: Pending) -> None:
        self.pending[pending.offset] = pending
        heapq.heappush(self._queue, (pending.due_ms, pending.offset))

    def to_state(self) -> dict[str, Any]:
        rows = [_row(each) for each in self.pending.values()]
        ahead = [[offset, None if each is None else _row(each)] for offset, each in self.ahead.items()]
        return {"cursor": self.cursor, "disabled": self.disabled, "pending": rows, "ahead": ahead}

    @classmethod
    def of_state(cls, step: str, endpoint: str, state: dict[str, Any]) -> Receiver:
        ahead = {offset: None if row is None else Pending(*row) for offset, row in state["ahead"]}
        made = cls(step, endpoint, state["cursor"], state["disabled"], ahead=ahead)
        made._put_all(Pending(*row) for row in state["pending"])
        return made

    def _put_all(self, pending: Iterable[Pending]) -> None:
        for each in pending:
            self._put(each)


def _row(pending: Pending) -> list[Any]:
    return [pending.offset, pending.identifier, pending.attempts, pending.due_ms]
