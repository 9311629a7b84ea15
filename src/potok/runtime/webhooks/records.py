"""Deliveries and attempts as records of two topics per query.

A delivery is written with the commit of the batch that produced it. Each attempt to send it is a JSON record, and so
are requests by an operator: to send a delivery again, or to enable an endpoint. What is left to do follows from the two
topics, with a checkpoint that saves reading them from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa

from potok.log.broker import Broker
from potok.records.log_record import LogRecord

STEP_HEADER = "potok-webhook-step"


def deliveries_topic(query: str) -> str:
    return f"{query}-webhooks"


def attempts_topic(query: str) -> str:
    return f"{query}-webhook-attempts"


class Outcome(StrEnum):
    """The outcome of an attempt, or a request of an operator."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FAILED = "failed"
    """It was the last attempt."""
    DISABLED = "disabled"
    """The endpoint responded with 410: nothing is sent to it until it is enabled."""
    EXPIRED = "expired"
    """Deliveries were deleted by retention before they were sent."""
    REDRIVE = "redrive"
    ENABLE = "enable"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body for all endpoints of a step, and its offset in the topic of deliveries."""

    offset: int
    identifier: str
    step: str
    timestamp_ms: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to send a delivery to an endpoint, as a record."""

    id: str
    step: str
    endpoint: str
    outcome: Outcome
    delivery: int
    """The offset of the delivery."""
    at: int
    attempt: int = 0
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None
    next_at: int | None = None
    epoch: int = 0
    """The start of the query that made the attempt; 0 for an operator."""

    @property
    def receiver(self) -> str:
        return receiver_of(self.step, self.endpoint)

    def to_record(self) -> LogRecord:
        return LogRecord(self.id.encode(), orjson.dumps(asdict(self)), self.at)

    @classmethod
    def of_bytes(cls, value: bytes) -> Attempt | None:
        """Parse a record; None if it is not an attempt, because anyone may write to a topic."""
        try:
            found: Any = orjson.loads(value)
            return cls(**{**found, "outcome": Outcome(found["outcome"])})
        except (ValueError, TypeError, KeyError):
            return None


def receiver_of(step: str, endpoint: str) -> str:
    """Return the key of an endpoint of a step."""
    return f"{step}/{endpoint}"


def read_deliveries(broker: Broker, query: str, start: int, end: int) -> Iterator[Delivery]:
    for batch in broker.read(deliveries_topic(query), 0, start, end):
        columns = [batch.column(name).to_pylist() for name in ("offset", "key", "headers", "timestamp", "value")]
        for offset, key, headers, timestamp, value in zip(*columns, strict=True):
            step = next((each["value"].decode() for each in headers or () if each["name"] == STEP_HEADER), "")
            if key is not None and value is not None:
                yield Delivery(offset, key.decode(), step, timestamp, value)


def read_attempts(broker: Broker, query: str, start: int, end: int) -> Iterator[tuple[int, Attempt]]:
    """Yield attempts with their offsets."""
    for batch in broker.read(attempts_topic(query), 0, start, end):
        values: pa.Array = batch.column("value")
        for offset, value in zip(batch.column("offset").to_pylist(), values.to_pylist(), strict=True):
            found = None if value is None else Attempt.of_bytes(value)
            if found is not None:
                yield offset, found
