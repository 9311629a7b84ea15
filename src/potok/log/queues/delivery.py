"""A record handed out by a queue, and what its worker says of it."""

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
    """What became of a delivery, in the words of an error."""

    OUT = "out"
    ACKED = "acknowledged"
    BACK = "put back"
    REJECTED = "rejected"


class Delivery:
    """A record that is this worker's until it is settled, or until its time is over and somebody else gets it.

    As a context manager it is acknowledged at the end, and put back if the block raises:

    >>> with delivery:
    ...     charge(delivery.json())

    `due_ms` is when its time is over.
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
        """How often the record was handed out, this time included; what was taken ahead is not counted yet."""
        return max(self.claimed, 1)

    def json(self) -> Any:
        return self.record.json()

    def text(self) -> str | None:
        return self.record.text()

    def key_text(self) -> str | None:
        return self.record.key_text()

    def ack(self) -> None:
        """The record is dealt with. This is stored together with others, within the queue's `linger_ms`."""
        self._end(Fate.ACKED)

    def nack(self, delay: Duration = 0, *, error: str = "") -> None:
        """Hand the record out again, at the earliest after `delay`; or set it aside if this was the last try.

        Args:
            error: What went wrong; kept with a record that is set aside.
        """
        self._end(Fate.BACK, delay_ms=to_ms(delay), error=error)

    def reject(self, error: str = "") -> None:
        """Set the record aside as a dead letter, without another try."""
        self._end(Fate.REJECTED, error=error)

    def extend(self, time: Duration) -> None:
        """The work takes longer: the record stays with this worker for `time` from now on."""
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
    """What workers have said and the queue has not stored yet."""

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
        """Whatever is no longer out by its delivery was given to somebody else, who settles it; an ack counts still."""
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
                page.letters.append(self._letter(delivery, reason, error))
                state.finish([delivery.record.offset])

    def _letter(self, delivery: Delivery, reason: str, error: str) -> LogRecord:
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
