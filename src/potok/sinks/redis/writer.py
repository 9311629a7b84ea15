"""Write batches to Redis, in scripts that check the fence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)

from potok.backends.redis_connection import CheckedTries
from potok.redact import redact, safe_cause
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, SinkAhead, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.redis.scripts import GONE, OK, TAKE_OVER, TAKEN, WRITE
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.urls import clear_url, remember_url

if TYPE_CHECKING:
    from potok.sinks.redis.redis import RedisTarget

log = logging.getLogger(__name__)

T = TypeVar("T")

SCRIPT_KEYS = 1_000
SCRIPT_BYTES = 1 << 20
"""The most of one script, which blocks other clients of the server while it runs."""

CONNECT_S, TIMEOUT_S = 2.0, 30.0

PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
    ClusterDownError,
    TryAgainError,
)
"""Errors that a retry may not meet: the server restarts, fails over, or has no memory left."""

_PASSING_CODES = ("MISCONF", "NOREPLICAS", "BUSY", "OOM", "LOADING", "READONLY")

Entry = tuple[bytes, bytes | None]


class RedisWriter(SinkWriter):
    """Sets and deletes keys; the last record of a key in a batch wins."""

    def __init__(self, target: RedisTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._exactly = opening.guarantee is Guarantee.EXACTLY_ONCE
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._fence = f"potok:fence:{opening.query}:{opening.step}"
        remember_url(target.url)
        self._client: Any = redis.Redis.from_url(
            str(clear_url(target.url)),
            socket_connect_timeout=CONNECT_S,
            socket_timeout=TIMEOUT_S,
            socket_keepalive=True,
            # Retries are those of `_run`.
            retry=CheckedTries(NoBackoff(), 0),
        )
        self._write: Any = self._client.register_script(WRITE)
        self._take_over: Any = self._client.register_script(TAKE_OVER)
        self._run(opening.committed + 1, self._open, GIVE_UP_MS)

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        last: dict[bytes, bytes | None] = {}
        for key, value in zip(rows.keys, rows.values, strict=True):
            last[key] = value
        for entries in _chunks(last):
            self._run(batch.number, partial(self._put, batch, entries), GIVE_UP_MS if self._once else BRIEFLY_MS)
        return {}

    def _open(self) -> None:
        """Check that the server answers, and fence earlier epochs of the query."""
        if not self._exactly:
            self._client.ping()
            return
        opening = self._opening
        answer, number = self._take_over(keys=[self._fence], args=[opening.epoch, opening.committed])
        if answer == TAKEN:
            raise self._taken()
        if int(number) > opening.committed + 1:
            remedy = f"delete the keys, or choose another prefix, and then: redis-cli DEL '{self._fence}'"
            raise SinkAhead(opening.step, self._target.label, int(number), opening.committed, remedy)

    def _put(self, batch: Batch, entries: list[Entry]) -> None:
        deleted = [key for key, value in entries if value is None]
        written = [(key, value) for key, value in entries if value is not None]
        epoch = batch.epoch if self._exactly else 0
        arguments: list[Any] = [epoch, batch.number, self._target.ttl_ms or 0, len(deleted), self._target.format]
        for _, value in written:
            arguments += _strings(value) if self._target.format == "hash" else [value]
        keys = [self._fence, *deleted, *(key for key, _ in written)]
        answer = self._write(keys=keys, args=arguments)
        if answer == GONE:
            # The server was emptied, which is no error of a cache. A later epoch would have left its fence.
            log.warning('the cache of sink "%s" was emptied; keys return when they change', self._opening.step)
            self._take_over(keys=[self._fence], args=[batch.epoch, batch.number - 1])
            answer = self._write(keys=keys, args=arguments)
        if answer != OK:
            raise self._taken()

    def _taken(self) -> SinkTaken:
        owner = f'a later start of query "{self._opening.query}"'
        return SinkTaken(self._opening.step, self._target.label, owner, "stop one of the two")

    def _run(self, batch: int, work: Callable[[], T], retry_ms: int) -> T:
        """Run `work`, and again for some time if the server does not answer; every script may be repeated."""
        retry = Retry(self._target.give_up_after_ms or retry_ms)
        while True:
            try:
                return work()
            except RedisError as error:
                passing = _passes(error)
                unknown = self._once and not isinstance(error, redis.ConnectionError)
                if not passing or unknown or not retry.wait():
                    passing = passing and self._target.give_up_after_ms is None
                    raise self._failed(batch, error, passing=passing) from safe_cause(error)

    def _failed(self, batch: int, error: RedisError, *, passing: bool) -> DeliveryFailed:
        remedy = None
        if "CROSSSLOT" in str(error):
            remedy = "a cluster cannot check the fence with every key: use a server that is not a cluster"
        step, label, lost = self._opening.step, self._target.label, self._once
        return DeliveryFailed(step, label, batch, redact(str(error)), lost=lost, passing=passing, remedy=remedy)

    def close(self) -> None:
        self._client.close()


def _passes(error: RedisError) -> bool:
    if isinstance(error, AuthenticationError):
        return False
    return isinstance(error, PASSING) or str(error).startswith(_PASSING_CODES)


def _chunks(entries: dict[bytes, bytes | None]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    size = 0
    for key, value in entries.items():
        length = len(key) + len(value or b"")
        if chunk and (len(chunk) >= SCRIPT_KEYS or size + length > SCRIPT_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((key, value))
        size += length
    if chunk:
        yield chunk


def _strings(document: bytes) -> list[Any]:
    """Return the number of the strings of a hash, and these: the fields, text unchanged and anything else as JSON."""
    fields = {name: value for name, value in orjson.loads(document).items() if value is not None}
    pairs = [part for name, value in fields.items() for part in (name, _text(value))]
    return [len(pairs), *pairs]


def _text(value: Any) -> str | bytes:
    return value if isinstance(value, str) else orjson.dumps(value)
