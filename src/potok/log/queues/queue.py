"""A queue over a topic: records are delivered, acknowledged and redelivered one by one."""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from potok.clock import now_ms
from potok.duration import Duration, show_ms, to_ms, to_seconds
from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord
from potok.log.errors import InvalidName, OffsetOutOfRange
from potok.log.log_start import LogStart, OnLost
from potok.log.open import open_broker
from potok.log.queues.delivery import Delivery, Fate, Settlements
from potok.log.queues.queue_state import Kind, QueueCounts, Run
from potok.log.queues.queue_store import ClaimRequest, Claims, Page, QueueStore, claim, read_runs
from potok.log.start import Start

T = TypeVar("T")

_SHORTEST_WAIT = 0.001
_LONGEST_WAIT = 0.02
_AHEAD_SECONDS = 0.05
"""A worker prefetches the records of this time at its current rate, with one durable write for all."""

_MOST_AHEAD = 2_000
_HOLD_SECONDS = 0.2
"""Prefetched records that are not used within this time are put back."""

_MANY = 10_000
_NOTHING = Run(0, 0, Kind.DONE)

_logger = logging.getLogger("potok.log")


class Queue:
    """Delivers each record of a topic to one of any number of workers, in any number of processes.

    >>> with Queue("file:./data", "emails", group="senders") as queue:
    ...     for delivery in queue:
    ...         with delivery:
    ...             send(delivery.json())

    A record that is not acknowledged within `visibility`, because its worker died or is slow, is redelivered, and
    so is one that was put back. So a record may be worked on twice, and no order is promised: where order matters, use
    a `Consumer` with a group. The topic keeps its records: other groups, consumers and queries see all of them.

    Args:
        broker: A broker or its URL.
        group: Workers of one group share the records; each group gets all of them.
        visibility: How long a worker may process a record.
        max_deliveries: After this many attempts a record becomes a dead letter; None for no limit.
        dead_letters: The dead-letter topic; by default `<topic>-<group>-dead-letters`.
        start: Where a new group starts: "earliest", "latest", a datetime, or offsets by topic and partition.
        on_lost: What to do if retention deleted records before they were processed; see `Consumer`.
        linger: Acknowledgements are stored at the latest after this time.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        topic: str,
        group: str,
        *,
        visibility: Duration = 30,
        max_deliveries: int | None = 5,
        dead_letters: str | None = None,
        start: Start = "earliest",
        on_lost: OnLost = "stop",
        linger: Duration = "50 ms",
    ) -> None:
        if to_ms(visibility) < 1 or (max_deliveries is not None and max_deliveries < 1):
            raise LogError("a queue needs a visibility and a number of deliveries above zero", hint="visibility=30")
        self.broker = broker if isinstance(broker, Broker) else open_broker(broker)
        self.topic = topic
        self.group = group
        self.dead_letter_topic = dead_letters or _dead_letter_topic(topic, group)
        self._visibility_ms = to_ms(visibility)
        self._max_deliveries = max_deliveries
        self._linger = to_seconds(linger)
        self._log_start = LogStart(self.broker, f'queue "{group}"', on_lost)
        self._store = QueueStore(self.broker, topic, group, self.dead_letter_topic, start)
        self._store.forget_deleted_topics()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._lingers = False
        self._settlements = Settlements(f'queue "{group}"')
        self._out: dict[tuple[int, int], Delivery] = {}
        self._taken: deque[Delivery] = deque()
        self._taken_at = time.monotonic()
        self._handed = 0
        self._turn = random.randrange(1 << 16)

    def receive(self, max_records: int = 100, timeout: Duration = 0) -> list[Delivery]:
        """Return available records, at most `max_records`; wait up to `timeout` seconds for the first."""
        self._check_open()
        deadline = time.monotonic() + to_seconds(timeout)
        pause = _SHORTEST_WAIT
        while True:
            found = self._take(max_records)
            left = deadline - time.monotonic()
            if found or left <= 0 or self._closing.is_set():
                return found
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_WAIT)

    def __iter__(self) -> Iterator[Delivery]:
        """Yield every record as it arrives, forever. One that is not settled is redelivered, here or elsewhere."""
        while not self._closing.is_set():
            yield from self.receive(1, timeout=1.0)

    def counts(self) -> QueueCounts:
        """Count the records that are ready, in processing and waiting, for all workers together. Puts back prefetched
        records."""
        with self._lock:
            self._put_back(self._taken)
            self._taken.clear()
            self.flush()
        ends, now = self.broker.end_offsets(self.topic), now_ms()
        states = self._store.update(lambda page: page.states)
        return sum((state.counts(now, ends[part]) for part, state in states.items()), QueueCounts())

    def flush(self) -> None:
        """Store all acknowledgements so far; durable when this returns."""
        with self._lock:
            if self._settlements:
                self._update(lambda _: None)

    def close(self) -> None:
        """Put back unsettled deliveries, so that other workers get them immediately, and close."""
        with self._lock:
            if not self._closing.is_set():
                self._put_back([*self._out.values(), *self._taken])
                self._out.clear()
                self._taken.clear()
                self.flush()
                self._closing.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, most: int) -> list[Delivery]:
        with self._lock:
            if not self._taken and not self._closing.is_set():
                self._fetch(most)
            found = [self._taken.popleft() for _ in range(min(most, len(self._taken)))]
            for delivery in found:
                delivery.handed_out = True
                self._out[delivery.record.partition, delivery.record.offset] = delivery
            self._handed += len(found)
            if len(self._out) > _MANY:
                now = now_ms()
                self._out = {
                    topic_partition: delivery
                    for topic_partition, delivery in self._out.items()
                    if delivery.due_ms > now
                }
            return found

    def _fetch(self, most: int) -> None:
        """Claim and read records: those requested, and those that a fast worker needs next."""
        began = time.monotonic()
        ahead = min(int(self._handed * _AHEAD_SECONDS / max(began - self._taken_at, 1e-6)), _MOST_AHEAD)
        self._handed, self._taken_at = 0, began
        self._turn += 1
        claims: Claims = [(0, _NOTHING)]
        while claims and not self._taken:
            self._pass_gaps()
            now = now_ms()
            request = ClaimRequest(most, ahead, self._turn, now, now + self._visibility_ms)
            claims = self._update(partial(claim, self.topic, self.broker.end_offsets(self.topic), request))
            self._read(claims)
        if self._taken or self._settlements:
            self._linger_once()

    def _read(self, claims: Claims) -> None:
        for partition in sorted({partition for partition, _ in claims}):
            runs = sorted(run for number, run in claims if number == partition)
            try:
                records = {record.offset: record for record in read_runs(self.broker, self.topic, partition, runs)}
            except OffsetOutOfRange:
                self._log_start.check_next()
                if not self._pass_gaps():
                    raise
                continue
            for run in runs:
                for offset in range(run.first, run.end):
                    self._add(partition, offset, records.get(offset), run)

    def _add(self, partition: int, offset: int, record: ConsumedRecord | None, run: Run) -> None:
        if record is None:
            # Compaction and Kafka's transactions leave offsets without a record; these are done.
            self._settlements.add_done(partition, offset)
            return
        delivery = Delivery(record, run.deliveries, run.due_ms, self._settle)
        if self._max_deliveries is None or run.deliveries <= self._max_deliveries:
            self._taken.append(delivery)
        else:
            why = f"delivered {run.deliveries - 1} times, not settled within {show_ms(self._visibility_ms)}"
            self._settlements.aside.append((delivery, "deliveries", why))

    def _pass_gaps(self) -> bool:
        """Skip what is no longer in the log, or raise `FellBehindError`."""
        if not self._log_start.is_due():
            return False
        lows = {(self.topic, part): state.low for part, state in self._store.states().items()}
        moved = self._log_start.raised(lows)

        def truncate(page: Page) -> None:
            for (_, partition), first in moved.items():
                page.states[partition].truncate(first)

        if moved:
            self._update(truncate)
        return bool(moved)

    def _settle(self, delivery: Delivery, fate: Fate, delay_ms: int, error: str) -> None:
        with self._lock:
            self._check_open()
            partition, offset = delivery.record.partition, delivery.record.offset
            if fate is Fate.OUT:
                delivery.due_ms = now_ms() + delay_ms
                self._settlements.extended.append((delivery, delivery.due_ms))
            else:
                self._out.pop((partition, offset), None)
            if fate is Fate.ACKED:
                self._settlements.add_done(partition, offset)
            elif fate is Fate.REJECTED:
                self._settlements.aside.append((delivery, "rejected", error))
            elif fate is Fate.BACK and delivery.deliveries == self._max_deliveries:
                why = f"delivered {delivery.deliveries} times" + (f": {error}" if error else "")
                self._settlements.aside.append((delivery, "deliveries", why))
            elif fate is Fate.BACK:
                self._settlements.back.append((delivery, now_ms() + delay_ms))
            self._linger_once()

    def _put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Put back deliveries: delivered ones keep their count, prefetched ones are not counted."""
        now = now_ms()
        self._settlements.back += ((delivery, now) for delivery in deliveries)

    def _update(self, change: Callable[[Page], T]) -> T:
        """Change the states, and store pending acknowledgements with the change."""
        settlements, self._settlements = self._settlements, Settlements(self._settlements.step)

        def change_all(page: Page) -> T:
            settlements.apply(page)
            return change(page)

        try:
            return self._store.update(change_all)
        except BaseException:
            self._settlements = settlements
            raise

    def _linger_once(self) -> None:
        if self._settlements and self._linger <= 0:
            self.flush()
        if not self._lingers:
            self._lingers = True
            # Not a daemon: the interpreter waits for it at exit, so that no acknowledgement is lost.
            threading.Thread(target=self._run_linger, name="potok-queue").start()

    def _run_linger(self) -> None:
        """Store acknowledgements after a short time, and release prefetched records that are not used."""
        while not self._closing.wait(self._linger or _AHEAD_SECONDS):
            with self._lock:
                try:
                    if self._taken and time.monotonic() > self._taken_at + _HOLD_SECONDS:
                        self._put_back(self._taken)
                        self._taken.clear()
                    self.flush()
                    if self._taken:
                        continue
                except LogError as error:
                    _logger.error("acknowledgements could not be stored yet: %s", error)
                self._lingers = False
                return

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise LogError(
                f'queue "{self.group}" is closed, and unsettled deliveries were put back',
                hint="settle deliveries before the end of the with block",
            )


def _dead_letter_topic(topic: str, group: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", group):
        raise InvalidName("dead-letter topic", f"{topic}-{group}-dead-letters", "name one: dead_letters=")
    return f"{topic}-{group}-dead-letters"
