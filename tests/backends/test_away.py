"""A server that was unavailable at the last call is tried once, so that nothing else waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import redis

from potok.backends import redis_connection as connection
from potok.backends.postgres import connections
from potok.backends.postgres.connections import Connections
from potok.backends.state_url import StoreUnreachable, Where


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several attempts without pauses."""
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.0)
    monkeypatch.setattr("redis.retry.sleep", lambda _: None)
    connection._away.clear()
    yield
    connection._away.clear()


class Server:
    """Refuses a number of connections and counts them."""

    def __init__(self, refuses: int) -> None:
        self.refuses, self.tries, self.timeouts = refuses, 0, set[int]()

    def answer(self) -> str:
        self.tries += 1
        if self.tries <= self.refuses:
            raise redis.ConnectionError("connection refused")
        return "PONG"

    def connect(self, *_: Any, connect_timeout: int, **__: Any) -> Any:
        self.tries += 1
        self.timeouts.add(connect_timeout)
        raise psycopg.OperationalError("connection refused")

    def count(self) -> int:
        """Return the number of attempts since the last call."""
        found, self.tries = self.tries, 0
        return found


def test_redis_is_retried_but_tried_once_while_it_is_unavailable() -> None:
    where = Where.of("redis://127.0.0.1:6379/0")
    tries, server, dropped = connection.Tries(where.url), Server(1_000), list[Exception]()

    def call() -> None:
        with connection.reached(where):
            tries.call_with_retry(server.answer, dropped.append)

    counts = []
    for _ in range(3):
        with pytest.raises(StoreUnreachable):
            call()
        counts.append(server.count())
    assert counts == [connection.TRIES + 1, 1, 1]
    assert len(dropped) == sum(counts), "a connection that failed is not used again"

    server.refuses = 0
    call()
    server.refuses = server.tries + 2
    call()
    assert server.count() == 4, "what is back is tried as before"


def test_an_unavailable_redis_does_not_delay_another_one() -> None:
    away, other = (Where.of(f"redis://127.0.0.1:{port}/0") for port in (6379, 6380))
    with pytest.raises(StoreUnreachable), connection.reached(away):
        raise redis.ConnectionError("connection refused")
    server = Server(2)
    assert connection.Tries(other.url).call_with_retry(server.answer, lambda _: None) == "PONG"


def test_postgres_is_retried_but_tried_once_with_a_short_timeout_while_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "Retry", ThreeTries)
    found, server = Connections(Where.of("postgresql://127.0.0.1/none")), Server(1_000)
    monkeypatch.setattr(psycopg, "connect", server.connect)
    counts = []
    for _ in range(3):
        with pytest.raises(StoreUnreachable):
            found.run(lambda _: None)
        counts.append((server.count(), server.timeouts))
        server.timeouts = set()
    assert counts == [(3, {connections.CONNECT_S}), (1, {connections.AWAY_S}), (1, {connections.AWAY_S})]

    nothing: Any = None
    found._idle.append(nothing)
    found.run(lambda _: None)
    monkeypatch.setattr(found, "_idle", [])
    with pytest.raises(StoreUnreachable):
        found.run(lambda _: None)
    assert server.count() == 3, "what is back is tried as before"


class ThreeTries:
    def __init__(self, _: int) -> None:
        self._left = 3

    def wait(self) -> bool:
        self._left -= 1
        return self._left > 0
