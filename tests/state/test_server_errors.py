"""Whatever a state server does, the caller sees an error of Potok: what failed, where, and what to do."""

from __future__ import annotations

import shutil
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import redis
from redis._parsers.base import BaseParser

from potok.backends import redis_connection
from potok.backends.postgres import connections
from potok.backends.state_url import StoreUnreachable, Where
from potok.errors import PotokError, StateError
from potok.metadata.redis_metadata import VALUES, RedisMetadata
from potok.state.fence import Attempt
from potok.state.store import Store
from servers import PostgresServer, RedisServer, durable_redis, postgres_server
from state.shard import Shard

Use = Callable[[Shard, Store], object]


def _read_snapshot(shard: Shard, _: Store) -> object:
    with shard.snapshot() as snapshot:
        return [snapshot.get("t", b"k"), *snapshot.rows("t")]


USES: dict[str, Use] = {
    "get": lambda _, store: store.get_many("t", [b"k"]),
    "put": lambda _, store: store.put_many(Attempt(1, 2), [("t", [(b"k", b"v" * 1_000)])]),
    "page": lambda _, store: store.page("t", limit=10),
    "ranges": lambda _, store: store.ranges("t", [(b"", None)]),
    "entries": lambda _, store: store.entries("t"),
    "tables": lambda _, store: store.tables(),
    "attempt": lambda _, store: store.attempt(),
    "size": lambda _, store: store.size_bytes(),
    "clear": lambda _, store: store.clear(),
    "open": lambda shard, _: shard.store(),
    "snapshot": _read_snapshot,
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.0)
    monkeypatch.setattr("redis.retry.sleep", lambda _: None)
    monkeypatch.setattr(connections, "BRIEFLY_MS", 1)
    redis_connection._away.clear()
    yield
    redis_connection._away.clear()


def _errors(shard: Shard, store: Store) -> dict[str, PotokError]:
    """Use the store in every way. An exception that is not an error of Potok fails the test."""
    found: dict[str, PotokError] = {}
    for name, use in USES.items():
        try:
            use(shard, store)
        except PotokError as error:
            found[name] = error
    return found


def _check(errors: dict[str, PotokError], where: str, message: str, *, passing: bool) -> None:
    assert errors, "the fault has an effect"
    for error in errors.values():
        assert isinstance(error, StateError)
        assert where in str(error), "says where"
        assert error.hint, "says what to do"
        assert isinstance(error, StoreUnreachable) or "Traceback" not in str(error)
    assert any(message in str(error) for error in errors.values()), [str(error) for error in errors.values()]
    assert {error.passing for error in errors.values()} == {passing}, "decides whether the batch is retried"


@pytest.fixture(scope="module")
def redis_beside() -> Iterator[RedisServer]:
    with durable_redis() as server:
        yield server


@pytest.fixture(scope="module")
def postgres_beside() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def _opened(url: str) -> tuple[Shard, Store]:
    shard = Shard(Where.of(url))
    store = shard.store()
    store.put_many(Attempt(1, 1), [("t", [(b"k", b"v")])])
    return shard, store


def _wrong_type(client: redis.Redis, root: str) -> None:
    for name in ("attempt", "tables", "cells:t", "index:t"):
        client.delete(f"{root}:{name}")
        client.lpush(f"{root}:{name}", "x")


def _not_ours(client: redis.Redis, root: str) -> None:
    client.set(f"{root}:attempt", "not an attempt")


def _full(client: redis.Redis, _: str) -> None:
    client.config_set("maxmemory", "1")


def _replica(client: redis.Redis, _: str) -> None:
    client.config_set("replica-serve-stale-data", "yes")
    client.replicaof("127.0.0.1", "1")


def _password(client: redis.Redis, _: str) -> None:
    client.config_set("requirepass", "secret")
    client.client_kill_filter(_type="normal", skipme=True)


def _too_few_replicas(client: redis.Redis, _: str) -> None:
    client.config_set("min-replicas-to-write", "1")


def _cannot_save(client: redis.Redis, _: str) -> None:
    """The file of the next snapshot is a directory."""
    directory = Path(str(client.config_get("dir")["dir"]), "dump.rdb")
    (directory / "occupied").mkdir(parents=True)
    client.config_set("save", "1 1")
    client.bgsave()
    _until(lambda: client.info("persistence")["rdb_last_bgsave_status"] != "ok", "the snapshot fails")


def _busy_with_a_script(client: redis.Redis, _: str) -> None:
    client.config_set("busy-reply-threshold", "1")
    port = client.connection_pool.connection_kwargs["port"]
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.sendall(b'EVAL "while true do end" 0\r\n')
    _until(lambda: _is_busy(client), "a script runs")


def _is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False


def _until(holds: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_at, what


def _healthy(client: redis.Redis) -> None:
    with suppress(redis.ResponseError):
        client.script_kill()
    _until(lambda: not _is_busy(client), "the script ends")
    client.replicaof("NO", "ONE")
    for name, value in (("maxmemory", "0"), ("requirepass", ""), ("min-replicas-to-write", "0"), ("save", "")):
        client.config_set(name, value)
    shutil.rmtree(Path(str(client.config_get("dir")["dir"]), "dump.rdb"), ignore_errors=True)
    client.close()


@pytest.mark.parametrize(
    ("fault", "message", "passing"),
    [
        (_wrong_type, "WRONGTYPE", False),
        (_not_ours, "is not written by Potok", False),
        (_full, "out of memory", True),
        (_replica, "read-only", True),
        (_password, "cannot be reached", True),
        (_too_few_replicas, "NOREPLICAS", True),
        (_cannot_save, "MISCONF", True),
        (_busy_with_a_script, "BUSY", True),
    ],
)
def test_what_redis_rejects_is_an_error_of_potok(
    redis_beside: RedisServer, fault: Callable[[redis.Redis, str], None], message: str, passing: bool
) -> None:
    shard, store = _opened(redis_beside.url)
    client = redis.Redis.from_url(redis_beside.url)
    fault(client, f"potok:{{{shard.query}/0}}")
    try:
        _check(_errors(shard, store), str(shard.where), message, passing=passing)
    finally:
        _healthy(client)


@pytest.mark.parametrize("code", redis_connection.TEMPORARY)
@pytest.mark.parametrize("before", ["", "Command # 1 (EVAL -- KEYS: k) of pipeline caused error: "])
def test_redis_that_is_temporarily_unavailable_is_retried(code: str, before: str) -> None:
    error = BaseParser.parse_error(f"{code} as the server explains it")
    if before and str(error).startswith(code):
        error.args = (f"{before}{error}",)
    where = Where.of("redis://127.0.0.1:1/0")
    message = f"cannot be used for the time being: Redis answers {code}"
    with pytest.raises(StateError, match=message) as caught, redis_connection.reached(where):
        raise error
    assert caught.value.passing
    assert redis_connection.TEMPORARY[code] in caught.value.hint


def test_metadata_that_another_process_wrote_is_an_error_of_potok(redis_beside: RedisServer) -> None:
    client = redis.Redis.from_url(redis_beside.url)
    client.hset(VALUES, b"foreign/\xff", b"x")
    with pytest.raises(StateError, match="is not written by Potok"):
        RedisMetadata(Where.of(redis_beside.url)).list_metadata("foreign/")
    client.hdel(VALUES, b"foreign/\xff")
    client.close()


def test_a_killed_redis_is_unreachable_and_usable_after_a_restart(redis_beside: RedisServer) -> None:
    shard, store = _opened(redis_beside.url)
    redis_beside.stop(signal.SIGKILL)
    try:
        errors = _errors(shard, store)
    finally:
        redis_beside.start()
    assert errors.keys() >= USES.keys() - {"open"}
    _check(errors, str(shard.where), "cannot be reached", passing=True)
    assert store.get_many("t", [b"k"]) == [b"v"]


POSTGRES_FAULTS = {
    "dropped tables": ("DROP SCHEMA potok CASCADE", "does not exist", False),
    "a column of another type": ("ALTER TABLE potok.counts ALTER COLUMN cells TYPE text", "", False),
    "a missing column": ("ALTER TABLE potok.fences DROP COLUMN batch", "does not exist", False),
    "read-only": ("ALTER DATABASE postgres SET default_transaction_read_only = on", "read-only", True),
}


@pytest.mark.parametrize("name", POSTGRES_FAULTS)
def test_what_postgres_rejects_is_an_error_of_potok(name: str) -> None:
    statement, message, passing = POSTGRES_FAULTS[name]
    with postgres_server() as server:
        shard, store = _opened(server.url)
        with psycopg.connect(server.url, autocommit=True) as other:
            other.execute(statement.encode())
        connections.connections_to(shard.where)._forget()
        _check(_errors(shard, store), str(shard.where), message, passing=passing)


def test_terminated_backends_are_replaced(postgres_beside: PostgresServer) -> None:
    shard, store = _opened(postgres_beside.url)
    for use in (use for name, use in USES.items() if name != "clear"):
        with psycopg.connect(postgres_beside.url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'potok'")
        with suppress(StoreUnreachable):
            use(shard, store)
    assert store.attempt() == Attempt(1, 2)


def test_a_postgres_that_is_killed_is_unreachable(postgres_beside: PostgresServer) -> None:
    shard, store = _opened(postgres_beside.url)
    postgres_beside.stop(signal.SIGQUIT)
    try:
        errors = _errors(shard, store)
    finally:
        postgres_beside.start()
    assert errors.keys() >= USES.keys() - {"open"}
    _check(errors, str(shard.where), "cannot be reached", passing=True)


def test_an_unknown_user_is_unreachable_with_a_hint_about_the_password(postgres_beside: PostgresServer) -> None:
    url = postgres_beside.url.replace("tester@", f"nobody{uuid.uuid4().hex[:6]}@")
    with pytest.raises(StoreUnreachable) as caught:
        Shard(Where.of(url)).store()
    assert "does not exist" in str(caught.value)
    assert "password" in str(caught.value.hint)
