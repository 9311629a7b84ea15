"""The servers of all rows, each started for the first row that asks and stopped after the last."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from potok.errors import PotokError
from potok.log.kafka.development.server import KafkaServer, free_ports
from potok.settings import Settings
from tests.cassandra_server import CassandraServer, cassandra_server
from tests.faults.drive import wait_until
from tests.faults.proxy import HOST, Proxy
from tests.faults.row import NotHere
from tests.servers import MariadbServer, PostgresServer, mariadb_server, postgres_server, redis_server
from tests.standalone import StandaloneCluster

START_S = 120.0


class Kafka:
    """A Kafka that clients reach through a door. It can be killed, and starts again with all that it had."""

    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        self.proxy = Proxy(port)
        self._server = KafkaServer(directory, Settings.load().cache_path)
        self.start()

    def start(self) -> None:
        self._server.start(self.proxy.target, advertised_port=self.proxy.port, timeout_s=START_S)

    def kill(self) -> None:
        os.kill(self._server.status().pid, signal.SIGKILL)
        wait_until(lambda: not self._server.status().is_up, "the end of Kafka", START_S)

    def url(self, home: Path | str, **options: str) -> str:
        more = "".join(f"&{name.replace('_', '.')}={value}" for name, value in options.items())
        return f"kafka://{HOST}:{self.proxy.port}?home={home}{more}"

    def stop(self) -> None:
        self._server.stop()
        self.proxy.close()


class Servers:
    """Made by those who ask; `close` ends what was made."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._kafka: Kafka | None = None
        self._redis = ""
        self._spark: StandaloneCluster | None = None
        self._postgres: PostgresServer | None = None
        self._logical: PostgresServer | None = None
        self._cassandra: CassandraServer | None = None
        self._mariadb: MariadbServer | None = None

    def kafka(self) -> Kafka:
        if self._kafka is None:
            directory = Path(tempfile.mkdtemp(prefix="potok-fault-kafka-"))
            self._stack.callback(shutil.rmtree, directory, ignore_errors=True)
            try:
                self._kafka = Kafka(directory)
            except PotokError as error:
                raise NotHere(f"no Kafka: {error.message}") from error
            self._stack.callback(self._kafka.stop)
        return self._kafka

    def spark(self) -> StandaloneCluster:
        if self._spark is None:
            directory = Path(tempfile.mkdtemp(prefix="potok-fault-spark-"))
            self._stack.callback(shutil.rmtree, directory, ignore_errors=True)
            self._spark = StandaloneCluster(directory / "cluster")
            self._stack.callback(self._spark.stop)
        return self._spark

    def redis(self) -> str:
        if not self._redis:
            try:
                self._redis = self._stack.enter_context(redis_server())
            except pytest.skip.Exception as error:
                raise NotHere(str(error)) from error
        return self._redis

    def postgres(self) -> PostgresServer:
        if self._postgres is None:
            try:
                self._postgres = self._stack.enter_context(postgres_server())
            except pytest.skip.Exception as error:
                raise NotHere(str(error)) from error
        return self._postgres

    def cassandra(self) -> CassandraServer:
        if self._cassandra is None:
            try:
                self._cassandra = self._stack.enter_context(cassandra_server())
            except pytest.skip.Exception as error:
                raise NotHere(str(error)) from error
        return self._cassandra

    def logical_postgres(self) -> PostgresServer:
        """A PostgreSQL whose changes can be captured."""
        if self._logical is None:
            try:
                self._logical = self._stack.enter_context(postgres_server("wal_level=logical"))
            except pytest.skip.Exception as error:
                raise NotHere(str(error)) from error
        return self._logical

    def mariadb(self) -> MariadbServer:
        if self._mariadb is None:
            try:
                self._mariadb = self._stack.enter_context(mariadb_server("innodb-buffer-pool-size=512M"))
            except pytest.skip.Exception as error:
                raise NotHere(str(error)) from error
        return self._mariadb

    def close(self) -> None:
        self._stack.close()
