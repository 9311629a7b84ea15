"""Let operators list the outcome of webhooks, send them again, and enable endpoints.

Everything is derived from the two topics, and every request is a record, so it also works while the query is stopped:
the next start carries it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from potok.clock import now_ms
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.runtime.webhooks.checkpoint import Checkpoint, webhooks_key
from potok.runtime.webhooks.receiver import Receiver
from potok.runtime.webhooks.records import (
    Attempt,
    Delivery,
    Outcome,
    attempts_topic,
    deliveries_topic,
    read_attempts,
    read_deliveries,
)

_CHUNK = 1_000
_REQUESTS = frozenset({Outcome.REDRIVE, Outcome.ENABLE})


class NoWebhooks(QueryError):
    """A query without `to_webhook`, or an endpoint that it does not have."""


@dataclass(frozen=True, slots=True)
class WebhookSelection:
    """Which deliveries; None is all. Times are of the attempt, or of the record where there was none."""

    endpoint: str | None = None
    identifier: str | None = None
    outcome: Outcome | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, attempt: Attempt) -> bool:
        return (
            self._names(attempt)
            and (self.outcome is None or attempt.outcome is self.outcome)
            and self.has_time(attempt.at)
        )

    def has_time(self, at_ms: int) -> bool:
        return (self.since_ms is None or at_ms >= self.since_ms) and (self.until_ms is None or at_ms < self.until_ms)

    def _names(self, attempt: Attempt) -> bool:
        return self.endpoint in (None, attempt.endpoint) and self.identifier in (None, attempt.id)


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """An endpoint as of the last checkpoint and the attempts after it."""

    step: str
    endpoint: str
    disabled: bool
    waiting: int
    unread: int


class WebhookJournal:
    """The deliveries and attempts of one query."""

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self._query = broker, query
        if not broker.has_topic(attempts_topic(query)):
            hint = "start a program that has a to_webhook step first"
            raise NoWebhooks(f'query "{query}" has no webhooks', hint=hint)

    def latest(self, selection: WebhookSelection) -> list[Attempt]:
        """Return the latest attempt of each delivery to each endpoint, the oldest first."""
        found: dict[tuple[str, str], Attempt] = {}
        for attempt in self._attempts(selection.since_ms):
            if attempt.outcome not in _REQUESTS:
                found.pop((attempt.receiver, attempt.id), None)
                found[attempt.receiver, attempt.id] = attempt
        return [attempt for attempt in found.values() if selection.has(attempt)]

    def endpoints(self) -> list[EndpointStatus]:
        """Return the endpoints that were ever started, each with its pending deliveries."""
        end = self._broker.end_offsets(deliveries_topic(self._query))[0]
        return [
            EndpointStatus(each.step, each.endpoint, each.disabled, len(each.pending), max(end - each.cursor, 0))
            for each in self._receivers()
        ]

    def redrive(self, selection: WebhookSelection, *, dry_run: bool = False) -> int:
        """Ask to send deliveries again, with the attempts of a new one; return how many."""
        return self._request(self.latest(selection), dry_run=dry_run)

    def replay(self, selection: WebhookSelection, *, dry_run: bool = False) -> int:
        """Ask to send all deliveries of a time range again, whatever their outcome; return how many."""
        found: list[Attempt] = []
        receivers = self._receivers()
        for delivery in self._deliveries(selection):
            found += [
                Attempt(delivery.identifier, each.step, each.endpoint, Outcome.REDRIVE, delivery.offset, 0)
                for each in receivers
                if each.step == delivery.step and selection.endpoint in (None, each.endpoint)
            ]
        return self._request(found, dry_run=dry_run)

    def enable(self, endpoint: str) -> int:
        """Enable an endpoint in all steps that have it; return their number."""
        steps = [each.step for each in self._receivers() if each.endpoint == endpoint]
        if not steps:
            known = ", ".join(sorted({each.endpoint for each in self._receivers()}))
            raise NoWebhooks(f'query "{self._query}" has no endpoint "{endpoint}"', hint=f"it has {known}")
        now = now_ms()
        requests = [Attempt("", step, endpoint, Outcome.ENABLE, -1, now).to_record() for step in steps]
        self._broker.append(attempts_topic(self._query), requests)
        return len(steps)

    def _request(self, attempts: list[Attempt], *, dry_run: bool) -> int:
        now = now_ms()
        records = [
            Attempt(each.id, each.step, each.endpoint, Outcome.REDRIVE, each.delivery, now).to_record()
            for each in attempts
        ]
        for start in range(0, 0 if dry_run else len(records), _CHUNK):
            self._broker.append(attempts_topic(self._query), records[start : start + _CHUNK])
        return len(records)

    def _attempts(self, since_ms: int | None = None) -> Iterator[Attempt]:
        topic = attempts_topic(self._query)
        start, end = self._broker.start_offsets(topic)[0], self._broker.end_offsets(topic)[0]
        if since_ms is not None:
            start = max(start, self._broker.offset_at(topic, 0, since_ms))
        for _, attempt in read_attempts(self._broker, self._query, start, end):
            yield attempt

    def _deliveries(self, selection: WebhookSelection) -> Iterator[Delivery]:
        topic = deliveries_topic(self._query)
        start, end = self._broker.start_offsets(topic)[0], self._broker.end_offsets(topic)[0]
        for delivery in read_deliveries(self._broker, self._query, start, end):
            if selection.has_time(delivery.timestamp_ms) and selection.identifier in (None, delivery.identifier):
                yield delivery

    def _receivers(self) -> list[Receiver]:
        """Return the receivers as the checkpoint and the attempts after it left them."""
        found = Checkpoint.of_bytes(self._broker.get_metadata(webhooks_key(self._query)))
        receivers = {
            name: Receiver.of_state(*_step_and_endpoint(name), state) for name, state in found.receivers.items()
        }
        end = self._broker.end_offsets(attempts_topic(self._query))[0]
        for _, attempt in read_attempts(self._broker, self._query, found.attempts, end):
            if attempt.receiver in receivers:
                receivers[attempt.receiver].apply(attempt)
        return list(receivers.values())


def _step_and_endpoint(receiver: str) -> tuple[str, str]:
    step, _, endpoint = receiver.rpartition("/")
    return step, endpoint
