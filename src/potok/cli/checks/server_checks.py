"""Checks of `potok doctor` that ask servers: the log, the state, their clocks and what this user may do there."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from potok.cli.checks.finding import Finding
from potok.errors import PotokError
from potok.redact import redact_url
from potok.settings import Settings

if TYPE_CHECKING:
    from potok.backends.state_url import Where

SKEW_WARN_S, SKEW_FAIL_S = 1.0, 60.0
NTP = "synchronise the clock: timedatectl set-ntp true, or start chrony"


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Ask the servers that the settings name."""
    if settings.broker.startswith("kafka:"):
        yield check_kafka(settings)
    if "://" in settings.state and not settings.state.startswith("file:"):
        yield from check_state(settings.state)


def check_kafka(settings: Settings) -> Finding:
    from potok.log.open import open_broker
    from potok.retry_policy import brief_calls

    shown = redact_url(settings.broker)
    try:
        with brief_calls(), closing(open_broker(settings.broker, settings, shared=False)) as log:
            topics = log.topics()
            ends = log.end_offsets_of(topics[:1])
    except PotokError as error:
        return Finding("Kafka", "fail", error.message, error.hint)
    readable = f", {topics[0]} can be read" if ends else ""
    return Finding("Kafka", "ok", f"{shown} answers: {len(topics)} topics{readable}")


def check_state(url: str) -> Iterator[Finding]:
    """Connect, compare clocks, and find out whether state can be written."""
    from potok.backends.state_url import CASSANDRA, OBJECTS, POSTGRES, REDIS, Where

    ask = {REDIS: _ask_redis, POSTGRES: _ask_postgres, CASSANDRA: _ask_cassandra}

    try:
        where = Where.of(url)
        where.need_driver()
        if where.kind == OBJECTS:
            yield _check_objects(where)
            return
        version, server_s, denied = ask[where.kind](where)
    except PotokError as error:
        yield Finding("state", "fail", error.message, error.hint)
        return
    if denied:
        yield Finding("state", "fail", f"{where} ({version}) cannot be written: {denied}", "use a user that may write")
    else:
        yield Finding("state", "ok", f"{where} answers and can be written ({version})")
    yield check_clock(server_s, str(where))


def _check_objects(where: Where) -> Finding:
    """Write an object under both conditions: some servers of the S3 protocol ignore them, and would lose writes."""
    from potok.backends.objects.open import object_client
    from potok.retry_policy import brief_calls

    client, probe = object_client(where), f"doctor/{os.getpid()}-{time.time_ns()}"
    with brief_calls():
        first = client.create(probe, b"1")
        again = client.create(probe, b"2")
        second = client.replace(probe, b"3", first or "")
        stale = client.replace(probe, b"4", first or "")
        client.delete([probe])
    if first is None or again is not None or second is None or stale is not None:
        hint = "use a server that supports If-None-Match and If-Match on PUT, or another state store"
        return Finding("state", "fail", f"{where} ignores the conditions of writes", hint)
    return Finding("state", "ok", f"{where} answers, can be written, and checks conditions")


def _ask_redis(where: Where) -> tuple[str, float, str]:
    from potok.backends.redis_connection import connect, reached

    client = connect(where)
    with reached(where):
        seconds, micros = client.time()
        version = client.info("server")["redis_version"]
        probe = f"potok:doctor:{os.getpid()}"
        client.set(probe, b"1", px=1_000)
        client.delete(probe)
    return f"Redis {version}", seconds + micros / 1e6, ""


def _ask_postgres(where: Where) -> tuple[str, float, str]:
    from potok.backends.postgres.connections import connections_to

    asked = """
    SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery(),
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
    """
    rows = connections_to(where).run(lambda connection: connection.execute(asked).fetchall())
    [(version, server_s, is_standby, may_create)] = rows
    denied = "it is a standby" if is_standby else "" if may_create else "this user may not create tables in its schema"
    return f"PostgreSQL {version}", float(str(server_s)), denied


def _ask_cassandra(where: Where) -> tuple[str, float, str]:
    """Make the tables that are missing, and write, which shows that enough replicas are alive."""
    from potok.backends.cassandra.connection import connect
    from potok.backends.cassandra.tables import make_tables

    connection = connect(where)
    asked = "SELECT release_version, toUnixTimestamp(now()) FROM system.local"

    def ask() -> tuple[str, int]:
        make_tables(connection)
        written = "UPDATE potok_metadata USING TTL 1 SET unused = 0x WHERE space = 'doctor' AND name = ?"
        connection.execute(written, [str(os.getpid())])
        version, server_ms = connection.execute(asked).one()
        return version, server_ms

    version, server_ms = connection.run(ask)
    return f"Cassandra {version}", server_ms / 1e3, ""


def check_clock(reference_s: float, whose: str, now_s: float | None = None) -> Finding:
    """Compare this machine's clock with another one."""
    skew_s = (time.time() if now_s is None else now_s) - reference_s
    if abs(skew_s) <= SKEW_WARN_S:
        return Finding("clock", "ok", f"agrees with {whose}")
    side = "ahead of" if skew_s > 0 else "behind"
    status = "fail" if abs(skew_s) > SKEW_FAIL_S else "warn"
    return Finding("clock", status, f"is {abs(skew_s):,.1f} seconds {side} {whose}", NTP)


def check_own_clock(directory: Path, now_s: float | None = None) -> Finding:
    """Compare the clock with the newest file of the log: records that were ingested in the future expire late."""
    now = time.time() if now_s is None else now_s
    times = [path.stat().st_mtime for path in (directory / "log").rglob("*") if path.is_file()]
    ahead_s = max(times, default=0.0) - now
    if ahead_s > SKEW_WARN_S:
        return Finding("clock", "fail", f"was {ahead_s:,.1f} seconds ahead when the log was last written", NTP)
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def check_permissions(directory: Path) -> Iterator[Finding]:
    """Warn if others may read or write the data, or if another user owns it."""
    if not directory.exists():
        return
    found = directory.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid():
        hint = f"run as that user, or chown -R {os.getuid()} {directory}"
        yield Finding("access", "warn", f"{directory} belongs to user {found.st_uid}, not {os.getuid()}", hint)
    elif mode & 0o022:
        yield Finding("access", "fail", f"others may write {directory} ({mode:o})", f"chmod 700 {directory}")
    elif mode & 0o055:
        yield Finding("access", "warn", f"others may read {directory} ({mode:o})", f"chmod 700 {directory}")
    else:
        yield Finding("access", "ok", f"{directory} is private ({mode:o})")
