"""Connections to PostgreSQL: those of this process that are idle, and errors that say what to do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from potok.backends.postgres.arrays import Blobs, BlobsDumper
from potok.backends.state_url import StoreUnreachable, Where
from potok.errors import StateError
from potok.redact import safe_cause
from potok.retry import BRIEFLY_MS, Retry

T = TypeVar("T")
Connection = psycopg.Connection[tuple[object, ...]]

# Cells are found by the primary key and in no other way, whatever the statistics say of a table that has just grown.
# And a driver that was cut off in the middle of a write must not keep its successor from the shard for long.
_SESSION = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
SET idle_in_transaction_session_timeout = '60s'
"""

CONNECT_S, AWAY_S = 5, 2
"""How long the server has to answer a new connection: less if it did not answer the last."""

_open: dict[tuple[int, str], Connections] = {}
_guard = threading.Lock()


class Connections:
    """The connections of one process to one server. Each is used by one thread at a time."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.known: set[str] = set()
        """The tables that this process has seen or made."""
        self._idle: list[Connection] = []
        self._away = False

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do `work`, and again if the connection was lost: it must be such that twice is as good as once.

        A server that was away when it was called last is tried once: whoever calls tries again, and may have others
        waiting meanwhile who do not need this server.
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
                message = f"the PostgreSQL at {self.where} refused: {str(error).strip()}"
                raise StateError(message, hint="see the log of that server") from safe_cause(error)

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
        """Where one connection is lost, the others are too, as a rule."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def connections_to(where: Where) -> Connections:
    """The connections of this process to a server; a fork gets some of its own."""
    with _guard:
        key = (os.getpid(), where.url)
        if key not in _open:
            _open[key] = Connections(where)
        return _open[key]
