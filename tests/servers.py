"""One Redis and one PostgreSQL for all tests that ask for them, on free ports of this machine, in directories of their
own. Each is started for the first test that asks, and stopped after the last."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REASON = "no server on this machine"
PATIENCE_S = 60.0


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
def postgres_server() -> Iterator[PostgresServer]:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, program = _found("initdb", places), _found("postgres", places)
    with _directory() as directory:
        port, data = _free_port(), directory / "data"
        made = [initdb, "-D", str(data), "-U", "tester", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
        subprocess.run(made, check=True, capture_output=True, cwd=directory, **_unprivileged())
        words = [program, "-D", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
        server = PostgresServer([*words, "-k", str(directory), "-c", "fsync=off"], directory, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class Server:
    """A server of this machine that can be stopped and started again, in its directory and on its port."""

    def __init__(self, words: list[str], directory: Path, port: int) -> None:
        self._words, self._directory, self._port = words, directory, port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = self._directory / "log"
        with log.open("ab") as out:
            process = self._process = subprocess.Popen(
                self._words, stdout=out, stderr=out, cwd=self._directory, **_unprivileged()
            )
        end = time.monotonic() + PATIENCE_S
        while not _listens(self._port):
            if process.poll() is not None or time.monotonic() > end:
                self.stop()
                pytest.fail(f"{self._words[0]} did not start:\n{log.read_text()}", pytrace=False)
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)


class RedisServer(Server):
    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"


class PostgresServer(Server):
    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        super().start()
        _wait_for_postgres(self.url)


def _found(program: str, places: Sequence[Path]) -> str:
    found = shutil.which(program) or next((str(p / program) for p in places if (p / program).exists()), None)
    if found is None:
        text = f"{REASON}: {program} is missing; scripts/servers.sh installs it"
        if os.environ.get("CI"):
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    return found


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL will not run as root; another user must do, which comes with its package."""
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

    end = time.monotonic() + PATIENCE_S
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
        text = f"NOT TESTED ON REDIS OR POSTGRESQL: {len(skipped)} tests skipped; scripts/servers.sh installs them"
        terminalreporter.write_line(text, yellow=True, bold=True)
