"""Connections to PostgreSQL: a pool per process, and errors that say what to do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from potok.backends.postgres.arrays import Blobs, BlobsDumper
from potok.backends.state_url import StoreNotWritable, StoreUnreachable, Where
from potok.errors import StateError
from potok.redact import safe_cause
from potok.retry_policy import BRIEFLY_MS, Retry

T = TypeVar("T")
Connection = psycopg.Connection[tuple[object, ...]]

# Cells are only looked up by primary key, whatever the statistics say about a table that has just grown. A driver that
# was disconnected in the middle of a write must not block its successor for long.
_SESSION = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
SET idle_in_transaction_session_timeout = '60s'
"""

CONNECT_S, AWAY_S = 5, 2
"""Connection timeouts: the usual one, and the one for a server that did not respond last time."""

_open: dict[tuple[int, str], Connections] = {}
_guard = threading.Lock()


class Connections:
    """The connections of one process to one server. Each is used by one thread at a time."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.known: set[str] = set()
        """Tables that this process has seen or created."""
        self._idle: list[Connection] = []
        self._away = False

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, and again if the connection was lost, so `work` must be idempotent.

        A server that was unavailable at the last call is tried once: the caller retries, and must not delay work that
        does not need this server.
        """
        retry = Retry(BRIEFLY_MS)
        while True:
            try:
                with self.borrowed() as connection:
                    done = work(connection)
                self._away = False
                return done
            except psycopg.OperationalError as error:
                self._forget()
                if self._away or not retry.wait():
                    self._away = True
                    raise StoreUnreachable(str(self.where), str(error).strip()) from safe_cause(error)
            except psycopg.Error as error:
                raise rejected(self.where, error) from safe_cause(error)

    @contextmanager
    def borrowed(self) -> Iterator[Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            self.where.with_password().url,
            autocommit=True,
            connect_timeout=AWAY_S if self._away else CONNECT_S,
            application_name="potok",
            prepare_threshold=3,
        )
        connection.adapters.register_dumper(Blobs, BlobsDumper)
        connection.execute(_SESSION)
        return connection

    def _forget(self) -> None:
        """Drop all idle connections: if one is lost, the others usually are too."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def rejected(where: Where, error: psycopg.Error) -> StateError:
    """Return the error for a request that a server rejected."""
    cause = str(error).strip()
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        hint = "use the URL of the primary; after a failover, the batch is repeated until the server accepts writes"
        return StoreNotWritable(str(where), f"PostgreSQL is read-only: {cause}", hint)
    return StateError(f"PostgreSQL at {where} rejected the request: {cause}", hint="see the log of that server")


def connections_to(where: Where) -> Connections:
    """Return the connections of this process to a server; a forked process gets its own."""
    with _guard:
        key = (os.getpid(), where.url)
        if key not in _open:
            _open[key] = Connections(where)
        return _open[key]
