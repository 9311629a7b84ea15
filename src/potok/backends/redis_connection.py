"""Connections to Redis: one client per process and server, and errors that say what to do."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import EqualJitterBackoff, NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from potok.backends.state_url import StoreNotReady, StoreNotWritable, StoreUnreachable, Where
from potok.errors import StateError
from potok.redact import safe_cause
from potok.retry_policy import FIRST_S, MOST_S

TRIES = 4
CONNECT_S = 2.0
TIMEOUT_S = 60.0
"""Time limit of a command: a large write of one shard while other shards are written too."""

TEMPORARY = {
    "MISCONF": "the server cannot save its data to disk: free space there, or see its log",
    "NOREPLICAS": "too few replicas are connected: start them, or lower min-replicas-to-write",
    "BUSY": "a script of another client is running: SCRIPT KILL ends it",
    "MASTERDOWN": "the link of this replica to its primary is down: use the URL of the primary",
    "CLUSTERDOWN": "a part of the cluster is down: see CLUSTER INFO",
    "TRYAGAIN": "the cluster is moving keys to another node",
}
"""Codes of errors that go away without a change to the program or its URL, with the reason."""

_CLASSES = {MasterDownError: "MASTERDOWN", ClusterDownError: "CLUSTERDOWN", TryAgainError: "TRYAGAIN"}
"""Errors whose message the client shortens by the code."""

_CODE = re.compile(rf"(?:^|: )({'|'.join(TEMPORARY)}) ")
"""The code of an error; in a pipeline, the command is quoted before it."""

_open: dict[tuple[int, str], Any] = {}
_away: set[str] = set()
"""Servers that did not respond at the last call."""
_guard = threading.Lock()


class StateMayVanish(StateError):
    """A server that evicts keys when its memory is full."""

    def __init__(self, location: str, policy: str) -> None:
        super().__init__(
            f"Redis at {location} evicts keys when its memory is full (maxmemory-policy {policy})",
            hint="set maxmemory-policy noeviction on the server, or state is lost",
        )


class CheckedTries(Retry):
    """Send a command, and report an answer that the client cannot read: what listens there may not be Redis."""

    def call_with_retry(self, do: Callable[[], Any], fail: Callable[..., Any], *args: Any, **options: Any) -> Any:
        def checked() -> Any:
            try:
                return do()
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise ResponseError(f"the answer is not one of Redis ({error})") from error

        return super().call_with_retry(checked, fail, *args, **options)


class Tries(CheckedTries):
    """Retry a command a few times, with the pauses of `potok.retry_policy`.

    A server that was unavailable at the last call is tried once: the caller retries, and must not delay work that
    does not need this server.
    """

    def __init__(self, url: str) -> None:
        super().__init__(EqualJitterBackoff(MOST_S, FIRST_S), TRIES)
        self._url, self._once = url, CheckedTries(NoBackoff(), 0)

    def update_supported_errors(self, specified_errors: Iterable[type[Exception]]) -> None:
        errors = list(specified_errors)
        super().update_supported_errors(errors)
        self._once.update_supported_errors(errors)

    def call_with_retry(self, do: Callable[[], Any], fail: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self._url in _away:
            return self._once.call_with_retry(do, fail, *args, **options)
        return super().call_with_retry(do, fail, *args, **options)


def connect(where: Where) -> Any:
    """Return the client of this process for a server; a forked process gets its own."""
    with _guard:
        key = (os.getpid(), where.url)
        if key not in _open:
            _open[key] = _client(where)
        return _open[key]


def _client(where: Where) -> Any:
    with reached(where):
        client: Any = redis.Redis.from_url(
            where.with_password().url,
            socket_connect_timeout=CONNECT_S,
            socket_timeout=TIMEOUT_S,
            socket_keepalive=True,
            health_check_interval=30,
            # All commands sent here are idempotent, so connection errors are retried.
            retry=Tries(where.url),
            retry_on_error=[redis.ConnectionError, redis.TimeoutError, BusyLoadingError],
        )
        try:
            memory = client.info("memory")
        except NoPermissionError:
            return client
        policy = str(memory.get("maxmemory_policy", ""))
        if policy.startswith("allkeys"):
            raise StateMayVanish(str(where), policy)
        return client


@contextmanager
def reached(where: Where) -> Iterator[None]:
    """Convert errors of the client into errors of Potok."""
    try:
        yield
        _away.discard(where.url)
    except (redis.ConnectionError, redis.TimeoutError) as error:
        _away.add(where.url)
        raise StoreUnreachable(str(where), str(error)) from safe_cause(error)
    except OutOfMemoryError as error:
        hint = "raise maxmemory on the server, or remove other keys from it; the batch is repeated until then"
        raise StoreNotWritable(str(where), f"Redis is out of memory: {error}", hint) from safe_cause(error)
    except ReadOnlyError as error:
        hint = "use the URL of the primary; after a failover, the batch is repeated until the server accepts writes"
        raise StoreNotWritable(str(where), f"Redis is a read-only replica: {error}", hint) from safe_cause(error)
    except (RedisError, ValueError) as error:
        code = _temporary(error)
        if code:
            hint = f"{TEMPORARY[code]}; the batch is repeated until then"
            raise StoreNotReady(str(where), f"Redis answers {code}", hint) from safe_cause(error)
        message = f"Redis at {where} rejected the request: {error}"
        raise StateError(message, hint="see the log of that server") from safe_cause(error)


def _temporary(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found.group(1) if found else _CLASSES.get(type(error), "")
