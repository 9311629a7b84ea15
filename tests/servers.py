"""One server of each kind for all tests that ask for it, on free ports of this machine, in directories of their own.
Each is started for the first test that asks, and stopped after the last."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REASON = "no server on this machine"
TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A real Redis, empty at first. All tests share it: use a query name of your own."""
    with redis_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL with an empty database. All tests share it: use a query name of your own."""
    with postgres_server() as server:
        yield server.url


@pytest.fixture(scope="session")
def rabbitmq_url() -> Iterator[str]:
    """A real RabbitMQ. All tests share it: use queue and exchange names of your own."""
    with rabbitmq_server() as server:
        yield server.url


@pytest.fixture(scope="session")
def mqtt_url() -> Iterator[str]:
    """A real mosquitto. All tests share it: use topics and client ids of your own."""
    with mqtt_server() as server:
        yield server.url


@pytest.fixture(scope="session")
def logical_postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL whose changes can be captured. All tests share it: use a database of your own."""
    with postgres_server("wal_level=logical", "max_replication_slots=100", "max_wal_senders=20") as server:
        yield server


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of Prometheus' tool that checks metrics and rules."""
    return _found("promtool", ())


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A real MariaDB whose changes can be captured. All tests share it: use a database of your own."""
    with mariadb_server() as server:
        yield server


@contextmanager
def redis_server() -> Iterator[str]:
    program = _found("redis-server", ())
    with _directory() as directory:
        port = _free_port()
        words = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]
        server = Server([*words, "--save", "", "--appendonly", "no"], directory, port)
        server.start()
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.stop()


@contextmanager
def durable_redis() -> Iterator[RedisServer]:
    """A Redis that still has what was written when it is stopped and started again."""
    program = _found("redis-server", ())
    with _directory() as directory:
        port = _free_port()
        words = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
        server = RedisServer([*words, "--appendonly", "yes", "--appendfsync", "always"], directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def postgres_server(*settings: str) -> Iterator[PostgresServer]:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, program = _found("initdb", places), _found("postgres", places)
    with _directory() as directory:
        port, data = _free_port(), directory / "data"
        made = [initdb, "-D", str(data), "-U", "tester", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
        subprocess.run(made, check=True, capture_output=True, cwd=directory, **_unprivileged())
        words = [program, "-D", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
        words += ["-k", str(directory), "-c", "fsync=off"]
        server = PostgresServer([*words, *(f"-c{setting}" for setting in settings)], directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def mariadb_server(*settings: str) -> Iterator[MariadbServer]:
    """A MariaDB that logs whole rows, unless its settings say something else."""
    install, program = _found("mariadb-install-db", ()), _found("mariadbd", [Path("/usr/sbin")])
    with _directory() as directory:
        port, data = _free_port(), directory / "data"
        made = [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
        quick = ["--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0"]
        made += ["--skip-test-db", *quick]
        # The directory for temporary files is that of the user who runs the tests.
        own = {"TMPDIR": str(directory)}
        environment = {**os.environ, **own}
        subprocess.run(made, check=True, capture_output=True, cwd=directory, env=environment, **_unprivileged())
        words = [program, "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1", *quick]
        words += [f"--socket={directory / 'socket'}", f"--pid-file={directory / 'pid'}", "--skip-name-resolve"]
        logged = ["--server-id=7", "--log-bin=changes", "--binlog-format=ROW", "--binlog-row-metadata=FULL"]
        words += [*logged, *(f"--{setting}" for setting in settings)]
        server = MariadbServer(words, directory, port, own)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def rabbitmq_server(*settings: str) -> Iterator[RabbitServer]:
    """A RabbitMQ that keeps durable queues and persistent messages when it is stopped and started again."""
    # The program in the PATH of Debian demands to be root or the user rabbitmq; those behind it do not.
    folders = sorted(Path("/usr/lib/rabbitmq/lib").glob("*/sbin"), reverse=True)
    program = _found("rabbitmq-server", folders, first=True)
    epmd = _found("epmd", sorted(Path("/usr/lib/erlang").glob("erts-*/bin")))
    with _directory() as directory:
        names, port = _free_port(), _free_port()
        # Started by us, so that it ends with the server: RabbitMQ would leave one behind.
        registry = Server([epmd, "-port", str(names), "-address", "127.0.0.1"], directory, names)
        (directory / "plugins").write_text("[].\n")
        (directory / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
        environment = {
            "HOME": str(directory),
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"potok-{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(_free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none",
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "logs"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced"),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            # The script then becomes the server instead of starting it, so that signals reach it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }
        server = RabbitServer([program], directory, port, environment)
        registry.start()
        try:
            server.start()
            yield server
        finally:
            server.stop()
            registry.stop()


@contextmanager
def mqtt_server(*settings: str, files: Mapping[str, str] = {}) -> Iterator[MqttServer]:
    """A mosquitto that keeps sessions and their messages when it is stopped and started again.

    `files` are in its directory, which settings name as `{directory}`.
    """
    program = _found("mosquitto", [Path("/usr/sbin"), Path("/usr/local/sbin")])
    with _directory() as directory:
        port = _free_port()
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "persistence true"]
        lines += [f"persistence_location {directory}/", "max_queued_messages 0", "log_dest stderr"]
        lines += [setting.format(directory=directory) for setting in settings]
        for name, text in files.items():
            (directory / name).write_text(text)
        (directory / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        server = MqttServer([program, "-c", str(directory / "mosquitto.conf")], directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class Server:
    """A server of this machine that can be stopped and started again, in its directory and on its port."""

    end_by = signal.SIGTERM
    """The signal that ends it. SIGINT is ignored by what a shell started in the background, and by its children."""

    start_s = TIMEOUT_S
    """How long it may take to start."""

    def __init__(
        self, words: list[str], directory: Path, port: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._words, self._directory, self._port = words, directory, port
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = self._directory / "log"
        with log.open("ab") as out:
            process = self._process = subprocess.Popen(
                self._words,
                stdout=out,
                stderr=out,
                cwd=self._directory,
                env=self._environment,
                **_unprivileged(),
            )
        end = time.monotonic() + self.start_s
        while not _listens(self._port):
            if process.poll() is not None or time.monotonic() > end:
                self.stop()
                pytest.fail(f"{self._words[0]} did not start:\n{log.read_text()}", pytrace=False)
            time.sleep(0.02)

    def stop(self, number: signal.Signals | None = None) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number or self.end_by)
            self._process.wait(TIMEOUT_S)


class RedisServer(Server):
    def start(self) -> None:
        """Start, and wait until what was written before is loaded."""
        import redis

        super().start()
        end = time.monotonic() + TIMEOUT_S
        with redis.Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.BusyLoadingError:
                    assert time.monotonic() < end, "Redis loads for too long"
                    time.sleep(0.02)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"


class PostgresServer(Server):
    end_by = signal.SIGINT
    """Without waiting for clients to leave."""

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://tester@127.0.0.1:{self._port}/{database}"

    def create_database(self, name: str) -> str:
        """Create an empty database, and return its URL."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url_of(name)

    def start(self) -> None:
        super().start()
        _wait_for_postgres(self.url)


class MariadbServer(Server):
    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self._port}"

    def url_of(self, database: str) -> str:
        return f"{self.url}/{database}"

    def connect(self, database: str | None = None) -> Any:
        import pymysql

        return pymysql.connect(host="127.0.0.1", port=self._port, user="root", database=database, autocommit=True)

    def create_database(self, name: str) -> str:
        """Create an empty database, and return its URL."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{name}`")
        return self.url_of(name)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        super().stop(number)


class RabbitServer(Server):
    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/"

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        super().stop(number)


class MqttServer(Server):
    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self._port}"


def _found(program: str, places: Sequence[Path], *, first: bool = False) -> str:
    """Return the path of a program, from the directories of the PATH or from others, which may come first."""
    listed = next((str(p / program) for p in places if (p / program).exists()), None)
    found = (listed or shutil.which(program)) if first else (shutil.which(program) or listed)
    if found is None:
        text = f"{REASON}: {program} is missing; scripts/servers.sh installs it"
        if os.environ.get("CI"):
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    return found


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL will not run as root, and no server has to; another user must do, which comes with a package."""
    if os.getuid() != 0:
        return {}
    user = next(entry for name in ("postgres", "nobody") for entry in pwd.getpwall() if entry.pw_name == name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _directory() -> Iterator[Path]:
    """Not one of pytest's: those are for the user who runs the tests alone."""
    path = Path(tempfile.mkdtemp(prefix="potok-server-"))
    user = _unprivileged()
    if user:
        os.chown(path, user["user"], user["group"])
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _wait_for_postgres(url: str) -> None:
    """It listens before it lets anybody in."""
    import psycopg

    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if REASON in str(report.longrepr)]
    if skipped:
        text = f"NOT TESTED ON REAL SERVERS: {len(skipped)} tests skipped; scripts/servers.sh installs them"
        terminalreporter.write_line(text, yellow=True, bold=True)
