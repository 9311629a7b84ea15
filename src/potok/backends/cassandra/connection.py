"""Connections to Cassandra: one session per process and cluster, and errors that say what to do."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent
from cassandra.policies import (
    ConstantReconnectionPolicy,
    DCAwareRoundRobinPolicy,
    FallthroughRetryPolicy,
    TokenAwarePolicy,
)
from cassandra.query import BatchStatement, BatchType, tuple_factory

from potok.backends.cassandra.errors import DRIVER_ERRORS, DatacenterMissing, KeyspaceMissing, converted, is_transient
from potok.backends.cassandra.options import CassandraOptions
from potok.backends.state_url import Where
from potok.redact import safe_cause
from potok.retry_policy import BRIEFLY_MS, Retry

T = TypeVar("T")

Call = tuple[Any, Sequence[object]]
"""A statement and its values."""

CONNECT_S, AWAY_S = 5.0, 2.0
"""Connection timeouts: the usual one, and the one for a cluster that did not respond last time."""

TIMEOUT_S = 30.0
"""Time limit of a request; the time limits of the server are shorter."""

TOGETHER = 32
"""How many requests of one call are under way at a time."""

IN_ADVANCE = 256
"""How many requests are held in memory."""

PROTOCOL = 4
"""The version that Cassandra since 2.2 and its relatives speak."""

_LEVELS = {
    "quorum": (ConsistencyLevel.QUORUM, ConsistencyLevel.SERIAL),
    "local_quorum": (ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.LOCAL_SERIAL),
    "all": (ConsistencyLevel.ALL, ConsistencyLevel.SERIAL),
}

_FIND_KEYSPACE = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"

_open: dict[tuple[int, str], CassandraConnection] = {}
_guard = threading.Lock()


class CassandraConnection:
    """The connections of one process to one cluster; used by all threads."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.known: set[str] = set()
        """Tables that this process has seen or created."""
        self._session: Any = None
        self._statements: dict[tuple[str, bool], Any] = {}
        self._away = False
        self._opening = threading.Lock()
        self._serial_level = ConsistencyLevel.SERIAL

    def run(self, work: Callable[[], T]) -> T:
        """Run `work`, and again if the cluster did not answer, so `work` must be idempotent.

        A cluster that was unavailable at the last call is tried once: the caller retries, and must not delay work
        that does not need it.
        """
        retry = Retry(BRIEFLY_MS)
        while True:
            try:
                done = work()
                self._away = False
                return done
            except DRIVER_ERRORS as error:
                if is_transient(error) and not self._away and retry.wait():
                    continue
                self._away = self._away or is_transient(error)
                raise converted(self.where, error) from safe_cause(error)

    def execute(self, statement: str, values: Sequence[object] = (), *, fetch: int | None = None) -> Any:
        """Execute a statement inside `run`; `fetch` limits the rows of a page."""
        bound = self.prepared(statement).bind(values)
        if fetch is not None:
            bound.fetch_size = fetch
        return self.session.execute(bound)

    def execute_serially(self, statement: str, values: Sequence[object]) -> Any:
        """Read one partition inside `run` after all lightweight transactions on it, also those left unfinished."""
        return self.session.execute(self.prepared(statement, serial=True), values)

    def execute_all(self, calls: Iterable[Call]) -> list[Any]:
        """Execute many statements inside `run`, several at a time, and return their rows in order."""
        rest, found = iter(calls), list[Any]()
        # The driver would take the next call in the thread that receives responses, which must not wait for one: and
        # calls may follow from what is read.
        while part := list(islice(rest, IN_ADVANCE)):
            done = execute_concurrent(self.session, part, concurrency=TOGETHER, raise_on_first_error=True)
            found += [result.result_or_exc for result in done]
        return found

    def batch(self, calls: Iterable[Call]) -> BatchStatement:
        """Return one statement that changes one partition at once."""
        batch = BatchStatement(BatchType.UNLOGGED)
        for statement, values in calls:
            batch.add(statement, values)
        return batch

    def prepared(self, statement: str, *, serial: bool = False) -> Any:
        """Return a statement that the servers have parsed."""
        key = (statement, serial)
        found = self._statements.get(key)
        if found is None:
            found = self.session.prepare(statement)
            if serial:
                found.consistency_level = self._serial_level
            self._statements[key] = found
        return found

    @property
    def session(self) -> Any:
        if self._session is None:
            with self._opening:
                if self._session is None:
                    self._session = self._connect()
        return self._session

    def _connect(self) -> Any:
        options = CassandraOptions.of(self.where.with_password())
        level, self._serial_level = _LEVELS[options.consistency]
        timeout_s = AWAY_S if self._away else CONNECT_S
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(options.local_dc or "")),
            consistency_level=level,
            serial_consistency_level=self._serial_level,
            # `run` retries.
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=TIMEOUT_S,
            row_factory=tuple_factory,
        )
        login = None
        if options.user or options.password:
            login = PlainTextAuthProvider(options.user or "", options.password or "")
        cluster = Cluster(
            list(options.hosts),
            port=options.hosts[0][1],
            auth_provider=login,
            ssl_context=options.tls,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(1.0, None),
            protocol_version=PROTOCOL,
            connect_timeout=timeout_s,
            control_connection_timeout=timeout_s,
            # Without, a request that needs several packets waits for an acknowledgement: 40 ms.
            sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            monitor_reporting_enabled=False,
            application_name="potok",
        )
        try:
            return self._opened(cluster, options)
        except BaseException:
            cluster.shutdown()
            raise

    def _opened(self, cluster: Any, options: CassandraOptions) -> Any:
        try:
            session = cluster.connect()
        except NoHostAvailable as error:
            found = sorted({host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter})
            if options.local_dc and found and options.local_dc not in found:
                raise DatacenterMissing(str(self.where), options.local_dc, found) from error
            raise
        if not session.execute(_FIND_KEYSPACE, [options.keyspace]).one():
            raise KeyspaceMissing(str(self.where), options.keyspace)
        session.set_keyspace(options.keyspace)
        return session


def connect(where: Where) -> CassandraConnection:
    """Return the connection of this process to a cluster; a forked process gets its own."""
    # Its errors reach the caller; it would also log each attempt to reconnect.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    with _guard:
        key = (os.getpid(), where.url)
        if key not in _open:
            _open[key] = CassandraConnection(where)
        return _open[key]
