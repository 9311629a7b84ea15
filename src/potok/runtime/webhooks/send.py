"""Send one webhook and describe the outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass

from potok.clock import now_ms
from potok.runtime.webhooks.receiver import Pending
from potok.runtime.webhooks.records import Attempt, Outcome
from potok.sinks.http.client import Client, Unanswered
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.signing import Signer
from potok.sinks.webhooks.webhooks import WebhookEndpoint

GONE = 410

ASKS_TO_WAIT = frozenset({429, 503})
"""After one of these with `Retry-After`, no other request is sent to the endpoint until then either."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An attempt, and for how long no other request may be sent to the endpoint."""

    attempt: Attempt
    resume_ms: int = 0


class Sender:
    """Sends to one endpoint of a step."""

    def __init__(
        self,
        step: str,
        endpoint: WebhookEndpoint,
        schedule: RetrySchedule,
        timeout_ms: int,
        connections: int,
        epoch: int,
    ) -> None:
        self._step, self._endpoint, self._schedule, self._epoch = step, endpoint, schedule, epoch
        self._signer = Signer(endpoint.secrets)
        self._client = Client(endpoint.url, dict(endpoint.headers), timeout_ms, connections)

    def send(self, pending: Pending, body: bytes) -> Sent:
        at_ms, started = now_ms(), time.monotonic()
        headers = self._signer.headers(pending.identifier, at_ms // 1_000, body)
        status: int | None = None
        error: str | None = None
        retry_after_s = 0.0
        try:
            answer = self._client.post(body, headers)
            status, retry_after_s = answer.status, answer.retry_after_s
            error = None if answer.taken else str(answer)
        except Unanswered as unanswered:
            error = unanswered.reason
        number = pending.attempts + 1
        next_at = None if error is None else self._schedule.next_at(pending.identifier, number, now_ms(), retry_after_s)
        attempt = Attempt(
            pending.identifier,
            self._step,
            self._endpoint.name,
            _outcome(status, error, next_at),
            pending.offset,
            at_ms,
            number,
            status,
            error,
            int((time.monotonic() - started) * 1_000),
            None if status == GONE else next_at,
            self._epoch,
        )
        waits = status in ASKS_TO_WAIT and retry_after_s > 0
        return Sent(attempt, now_ms() + int(retry_after_s * 1_000) if waits else 0)

    def unreadable(self, pending: Pending) -> Sent:
        """Return the last attempt of a delivery that is no longer in the log."""
        error = "the delivery was deleted from its topic by retention before it could be sent"
        number, step, name = pending.attempts + 1, self._step, self._endpoint.name
        return Sent(
            Attempt(
                pending.identifier,
                step,
                name,
                Outcome.FAILED,
                pending.offset,
                now_ms(),
                number,
                error=error,
                epoch=self._epoch,
            )
        )

    def close(self) -> None:
        self._client.close()


def _outcome(status: int | None, error: str | None, next_at: int | None) -> Outcome:
    if error is None:
        return Outcome.DELIVERED
    if status == GONE:
        return Outcome.DISABLED
    return Outcome.FAILED if next_at is None else Outcome.RETRY
