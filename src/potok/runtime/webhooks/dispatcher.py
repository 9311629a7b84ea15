"""Send the webhooks of a query, in a thread of the driver, next to the batch loop.

The dispatcher follows the topic of deliveries for each endpoint, sends what is due, and appends the outcome to the
topic of attempts before it takes effect. An endpoint that does not respond delays only its own deliveries.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.metadata.metadata_store import MetadataConflict
from potok.runtime.webhooks.checkpoint import CheckpointStore
from potok.runtime.webhooks.receiver import Pending, Receiver
from potok.runtime.webhooks.records import (
    Attempt,
    Outcome,
    attempts_topic,
    deliveries_topic,
    read_attempts,
    read_deliveries,
    receiver_of,
)
from potok.runtime.webhooks.send import Sender, Sent
from potok.sinks.webhooks.webhooks import WebhookTarget

log = logging.getLogger(__name__)

IDLE_S = 0.05
"""How often to look for new deliveries and requests of operators."""

CHECKPOINT_S = 5.0
CHECKPOINT_ATTEMPTS = 1_000

PAUSE_S = 1.0
"""After an error of the log."""

CLOSING_S = 5.0
"""How long a close waits for deliveries that are due; the others are sent after the next start."""


class Dispatcher:
    """Sends the deliveries of all steps of a query. `close` ends it."""

    def __init__(self, broker: Broker, query: str, epoch: int, targets: Mapping[str, WebhookTarget]) -> None:
        self._broker, self._query, self._epoch = broker, query, epoch
        retention_ms = max(target.retention_ms for target in targets.values())
        for topic in (deliveries_topic(query), attempts_topic(query)):
            broker.create_topic(topic, 1, retention_ms=retention_ms, exist_ok=True)
        self._senders: dict[str, Sender] = {}
        self._pools: dict[str, tuple[ThreadPoolExecutor, int]] = {}
        for step, target in targets.items():
            for endpoint in target.endpoints:
                name, size = receiver_of(step, endpoint.name), target.concurrency
                self._senders[name] = Sender(step, endpoint, target.schedule, target.timeout_ms, size, epoch)
                self._pools[name] = ThreadPoolExecutor(size, thread_name_prefix="potok-webhook"), size
        self._checkpoints = CheckpointStore(broker, query)
        self._receivers, self._followed = self._load(targets)
        self._save()
        self._sent: deque[Sent] = deque()
        self._unrecorded: list[Sent] = []
        self._changed = threading.Event()
        self._closing_at: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"potok-webhooks-{query}", daemon=True)
        self._thread.start()

    def _load(self, targets: Mapping[str, WebhookTarget]) -> tuple[dict[str, Receiver], int]:
        """Return the receivers as the checkpoint and the attempts after it left them; new ones start at the end."""
        found = self._checkpoints.load()
        end = self._broker.end_offsets(deliveries_topic(self._query))[0]
        receivers: dict[str, Receiver] = {}
        for step, target in targets.items():
            for endpoint in target.endpoints:
                name = receiver_of(step, endpoint.name)
                state = found.receivers.get(name)
                known = state is not None
                made = Receiver.of_state(step, endpoint.name, state) if state else Receiver(step, endpoint.name, end)
                if not known and found.epoch == 0:
                    # The first batch may have been committed by a start that died before its first checkpoint.
                    made.cursor = self._broker.start_offsets(deliveries_topic(self._query))[0]
                receivers[name] = made
        self._receivers, self._followed = receivers, found.attempts
        self._follow(own=True)
        return receivers, self._followed

    def _run(self) -> None:
        while True:
            try:
                if self._step():
                    return
                self._changed.wait(self._pause_s())
                self._changed.clear()
            except MetadataConflict:
                log.warning('webhooks of query "%s": another process of the query sends them', self._query)
                return
            except PotokError as error:
                if self._closing_at is not None:
                    log.warning('webhooks of query "%s" are sent after the next start: %s', self._query, error)
                    return
                log.warning('webhooks of query "%s" wait: %s', self._query, error)
                time.sleep(PAUSE_S)

    def _step(self) -> bool:
        """Record what was sent, send what is due; return whether a requested close is complete."""
        self._record()
        self._follow()
        now = now_ms()
        for name, receiver in self._receivers.items():
            self._fill(receiver, now)
            pool, concurrency = self._pools[name]
            for pending in receiver.start(now, concurrency):
                pool.submit(self._send, name, pending)
        self._save_at_times()
        if self._closing_at is None:
            return False
        if time.monotonic() < self._closing_at and any(each.busy(now) for each in self._receivers.values()):
            return False
        self._record()
        self._save()
        return True

    def _send(self, name: str, pending: Pending) -> None:
        """Send one delivery, in a thread of its endpoint."""
        sender = self._senders[name]
        body = self._body(pending)
        if isinstance(body, PotokError):
            log.warning("webhook %s waits: %s", pending.identifier, body)
            receiver = self._receivers[name]
            later = now_ms() + int(PAUSE_S * 1_000)
            attempt = Attempt(
                pending.identifier,
                receiver.step,
                receiver.endpoint,
                Outcome.RETRY,
                pending.offset,
                now_ms(),
                pending.attempts,
                error=str(body),
                next_at=later,
                epoch=self._epoch,
            )
            self._sent.append(Sent(attempt))
        else:
            self._sent.append(sender.unreadable(pending) if body is None else sender.send(pending, body))
        self._changed.set()

    def _body(self, pending: Pending) -> bytes | PotokError | None:
        if pending.body is not None:
            return pending.body
        try:
            start = self._broker.start_offsets(deliveries_topic(self._query))[0]
            if pending.offset < start:
                return None
            found = list(read_deliveries(self._broker, self._query, pending.offset, pending.offset + 1))
        except PotokError as error:
            return error
        return found[0].body if found else None

    def _record(self) -> None:
        """Append the attempts that were made; only then do they take effect."""
        while self._sent:
            self._unrecorded.append(self._sent.popleft())
        if not self._unrecorded:
            return
        failpoint("webhooks.sent")
        self._broker.append(attempts_topic(self._query), [each.attempt.to_record() for each in self._unrecorded])
        failpoint("webhooks.recorded")
        for each in self._unrecorded:
            self._receivers[each.attempt.receiver].completed(each.attempt, each.resume_ms)
            self._report(each.attempt)
        self._unrecorded = []

    def _follow(self, *, own: bool = False) -> None:
        """Apply what others have appended to the topic of attempts; at the start also attempts of earlier starts."""
        end = self._broker.end_offsets(attempts_topic(self._query))[0]
        if end <= self._followed:
            return
        for _, attempt in read_attempts(self._broker, self._query, self._followed, end):
            receiver = self._receivers.get(attempt.receiver)
            if receiver is not None and (own or attempt.epoch != self._epoch):
                receiver.apply(attempt)
        self._followed = end

    def _fill(self, receiver: Receiver, now: int) -> None:
        """Read the next deliveries of an endpoint."""
        wanted = receiver.wanted
        end = self._broker.end_offsets(deliveries_topic(self._query))[0] if wanted else receiver.cursor
        if receiver.cursor >= end:
            return
        start = self._broker.start_offsets(deliveries_topic(self._query))[0]
        if receiver.cursor < start:
            self._expire(receiver, start)
        end = min(end, receiver.cursor + wanted)
        for delivery in read_deliveries(self._broker, self._query, receiver.cursor, end):
            receiver.read(delivery, now)
        receiver.skip_to(end)

    def _expire(self, receiver: Receiver, start: int) -> None:
        lost = f"{start - receiver.cursor} deliveries were deleted by retention before they were sent"
        log.error('webhooks of query "%s" to "%s": %s', self._query, receiver.endpoint, lost)
        expired = Attempt(
            "",
            receiver.step,
            receiver.endpoint,
            Outcome.EXPIRED,
            receiver.cursor,
            now_ms(),
            error=lost,
            epoch=self._epoch,
        )
        self._broker.append(attempts_topic(self._query), [expired.to_record()])
        receiver.skip_to(start)

    def _report(self, attempt: Attempt) -> None:
        if attempt.outcome is Outcome.DISABLED:
            log.warning(
                'endpoint "%s" responded with 410 and is disabled; `potok webhooks enable` resumes it', attempt.endpoint
            )
        elif attempt.outcome is Outcome.FAILED:
            log.warning('webhook %s to "%s" failed permanently: %s', attempt.id, attempt.endpoint, attempt.error)

    def _save_at_times(self) -> None:
        due = time.monotonic() >= self._saved_at + CHECKPOINT_S
        if due or self._followed >= self._saved_attempts + CHECKPOINT_ATTEMPTS:
            self._save()

    def _save(self) -> None:
        self._checkpoints.save(self._epoch, self._followed, self._receivers)
        self._saved_at, self._saved_attempts = time.monotonic(), self._followed

    def _pause_s(self) -> float:
        if any(each.wanted == 0 and each.in_flight for each in self._receivers.values()):
            return IDLE_S
        return max(IDLE_S, self._broker.poll_interval_s)

    def close(self) -> None:
        """Send what is due, for a few seconds, and record it; end the thread."""
        self._closing_at = time.monotonic() + CLOSING_S
        self._changed.set()
        self._thread.join()
        for pool, _ in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        for sender in self._senders.values():
            sender.close()
