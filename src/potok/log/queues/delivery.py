"""A record delivered by a queue, and its acknowledgement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, Self

from potok.duration import Duration, to_ms
from potok.errors import LogError
from potok.log.clients.consumed_record import ConsumedRecord
from potok.log.queues.queue_store import Page
from potok.records.log_record import LogRecord

_LONGEST_ERROR = 2_000


class Fate(Enum):
    """The outcome of a delivery, as shown in errors."""

    OUT = "out"
    ACKED = "acknowledged"
    BACK = "put back"
    REJECTED = "rejected"


class Delivery:
    """A record that belongs to this worker until it is settled, or until it times out and is redelivered.

    As a context manager it is acknowledged at the end, and put back if the block raises:

    >>> with delivery:
    ...     charge(delivery.json())

    `due_ms` is when it times out.
    """

    __slots__ = ("_settle", "claimed", "due_ms", "fate", "handed_out", "record")

    def __init__(self, record: ConsumedRecord, claimed: int, due_ms: int, settle: Settle) -> None:
        self.record = record
        self.claimed = claimed
        self.due_ms = due_ms
        self.handed_out = False
        self.fate = Fate.OUT
        self._settle = settle

    @property
    def deliveries(self) -> int:
        """How often the record was delivered, including this time; prefetched records are not counted yet."""
        return max(self.claimed, 1)

    def json(self) -> Any:
        return self.record.json()

    def text(self) -> str | None:
        return self.record.text()

    def key_text(self) -> str | None:
        return self.record.key_text()

    def ack(self) -> None:
        """Acknowledge the record. Stored together with others, within the queue's `linger`."""
        self._end(Fate.ACKED)

    def nack(self, delay: Duration = 0, *, error: str | None = None) -> None:
        """Redeliver the record, at the earliest after `delay`; or make it a dead letter if this was the last attempt.

        Args:
            error: What went wrong; stored with a dead letter.
        """
        self._end(Fate.BACK, delay_ms=to_ms(delay), error=error or "")

    def reject(self, error: str | None = None) -> None:
        """Make the record a dead letter, without another attempt."""
        self._end(Fate.REJECTED, error=error or "")

    def extend(self, time: Duration) -> None:
        """Extend the timeout: the record stays with this worker for `time` from now."""
        if self.fate is not Fate.OUT:
            raise LogError(f"{self} was {self.fate.value} already", hint="extend it before it is settled")
        self._settle(self, Fate.OUT, to_ms(time), "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.fate is Fate.OUT:
            if error is None:
                self.ack()
            else:
                self.nack(error=f"{type(error).__name__}: {error}")

    def __repr__(self) -> str:
        record = self.record
        return f"delivery {self.deliveries} of {record.topic}:{record.partition}:{record.offset}"

    def _end(self, fate: Fate, delay_ms: int = 0, error: str = "") -> None:
        if self.fate is fate:
            return
        if self.fate is not Fate.OUT:
            raise LogError(f"{self} was {self.fate.value} already", hint="settle a delivery once")
        self._settle(self, fate, delay_ms, error)
        self.fate = fate


Settle = Callable[[Delivery, Fate, int, str], None]


@dataclass(slots=True)
class Settlements:
    """Acknowledgements of workers that are not stored yet."""

    step: str
    done: dict[int, list[int]] = field(default_factory=dict)
    back: list[tuple[Delivery, int]] = field(default_factory=list)
    extended: list[tuple[Delivery, int]] = field(default_factory=list)
    aside: list[tuple[Delivery, str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.done or self.back or self.extended or self.aside)

    def add_done(self, partition: int, offset: int) -> None:
        self.done.setdefault(partition, []).append(offset)

    def apply(self, page: Page) -> None:
        """Apply to the page. A delivery that timed out was given to another worker, which settles it; an ack still
        counts."""
        for partition, offsets in self.done.items():
            page.states[partition].finish(offsets)
        for delivery, due_ms in self.extended:
            page.states[delivery.record.partition].extend(delivery.record.offset, delivery.claimed, due_ms)
        for delivery, due_ms in self.back:
            count = delivery.deliveries if delivery.handed_out else delivery.deliveries - 1
            page.states[delivery.record.partition].put_back(delivery.record.offset, delivery.claimed, count, due_ms)
        for delivery, reason, error in self.aside:
            state = page.states[delivery.record.partition]
            if state.holds(delivery.record.offset, delivery.claimed):
                page.dead_letters.append(self._dead_letter(delivery, reason, error))
                state.finish([delivery.record.offset])

    def _dead_letter(self, delivery: Delivery, reason: str, error: str) -> LogRecord:
        record = delivery.record
        notes = {
            "potok.topic": record.topic,
            "potok.partition": str(record.partition),
            "potok.offset": str(record.offset),
            "potok.step": self.step,
            "potok.reason": reason,
            "potok.error": error[:_LONGEST_ERROR],
        }
        headers = tuple((name, text.encode("utf-8", "replace")) for name, text in notes.items())
        return LogRecord(record.key, record.value, record.timestamp_ms, (*record.headers, *headers))
