"""Cells in Redis: large writes are split into chunks, and a server that evicts keys is rejected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from potok.backends.redis_connection import StateMayVanish, connect
from potok.backends.state_url import Where
from potok.state import redis_store
from potok.state.cell import encode_cell
from potok.state.fence import Attempt, Fence, StaleAttempt
from potok.state.open import open_store
from potok.state.redis_store import frozen_snapshots
from potok.state.session import StateSession, tombstones_of
from state.shard import Shard

KEYS = [b"%03d" % number for number in range(100)]


class ConnectionLost(Exception):
    """A lost connection."""


@pytest.fixture
def shard(redis_url: str) -> Shard:
    return Shard(Where.of(redis_url))


@pytest.fixture
def in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "CHUNK", 10)
    monkeypatch.setattr(redis_store, "TRANSACTION", 20)


def lose_connection_after(transactions: int, shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the connection after a number of transactions."""
    client, left = connect(shard.where), iter(range(transactions))
    real = type(client).pipeline

    class Pipelines:
        def __init__(self, **options: Any) -> None:
            self._pipeline = real(client, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._pipeline, name)

        def execute(self) -> Any:
            if next(left, None) is None:
                raise ConnectionLost
            return self._pipeline.execute()

    # All tests share the client, so patch the instance, not its class.
    monkeypatch.setattr(type(client), "pipeline", lambda _, **options: Pipelines(**options))


def session(shard: Shard, epoch: int, batch: int, ended: dict[int, int] | None = None) -> StateSession:
    return StateSession(shard.store(), Fence(Attempt(epoch, batch), ended or {}))


def write(shard: Shard, epoch: int, batch: int, value: bytes | None, ended: dict[int, int] | None = None) -> None:
    attempt = session(shard, epoch, batch, ended)
    attempt.sweep(["t"])
    before = attempt.read("t", KEYS)
    attempt.write("t", [(key, value, old) for key, old in zip(KEYS, before, strict=True)])
    attempt.commit()


@pytest.mark.usefixtures("in_chunks")
def test_a_write_interrupted_between_two_chunks_is_void(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shard, 1, 1, b"1")
    with monkeypatch.context() as patched:
        lose_connection_after(2, shard, patched)
        with pytest.raises(ConnectionLost):
            write(shard, 1, 2, b"2")
    assert {cell.new for _, cell in shard.store().scan("t")} == {b"1", b"2"}
    assert session(shard, 1, 2).read("t", KEYS) == [b"1"] * 100
    assert session(shard, 2, 2, {1: 1}).read("t", KEYS) == [b"1"] * 100
    write(shard, 2, 2, b"3", {1: 1})
    assert session(shard, 2, 3, {1: 1}).read("t", KEYS) == [b"3"] * 100


@pytest.mark.usefixtures("in_chunks")
def test_an_interrupted_sweep_is_repeated(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shard, 1, 1, b"1")
    write(shard, 1, 2, None)
    with monkeypatch.context() as patched:
        lose_connection_after(3, shard, patched)
        later = session(shard, 1, 3)
        later.sweep(["t"])
        with pytest.raises(ConnectionLost):
            later.commit()
    store = shard.store()
    assert (0 < store.entries("t") < 100, store.entries(tombstones_of("t"))) == (True, 100)
    again = session(shard, 1, 3)
    again.sweep(["t"])
    again.commit()
    assert (store.entries("t"), store.entries(tombstones_of("t"))) == (0, 0)


@pytest.mark.usefixtures("in_chunks")
def test_a_later_attempt_fences_the_rest_of_an_earlier_one(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    zombie = shard.store()
    real = type(connect(shard.where)).pipeline
    opened: list[object] = []

    def pipeline(client: Any, **options: Any) -> Any:
        opened.append(client)
        if len(opened) == 3:
            # The other attempt starts between two chunks of the first.
            shard.store().put_many(Attempt(2, 1), [("t", [(b"mine", encode_cell(Attempt(2, 1), b"2", None))])])
        return real(client, **options)

    monkeypatch.setattr(type(connect(shard.where)), "pipeline", pipeline)
    cells = [(key, encode_cell(Attempt(1, 1), b"1", None)) for key in KEYS]
    with pytest.raises(StaleAttempt):
        zombie.put_many(Attempt(1, 1), [("t", cells)])
    assert shard.store().entries("t") == 41
    assert shard.store().attempt() == Attempt(2, 1)


def test_a_small_write_is_atomic(shard: Shard) -> None:
    store = shard.store()
    cells = [(key, encode_cell(Attempt(1, 1), b"1", None)) for key in KEYS]
    assert len(list(redis_store._transactions([*redis_store._put([("t", cells), ("u", cells)])]))) == 1
    store.put_many(Attempt(1, 1), [("t", cells), ("u", cells)])
    assert (store.entries("t"), store.entries("u")) == (100, 100)


def test_a_frozen_snapshot_never_changes_and_is_removed_afterwards(shard: Shard) -> None:
    client = connect(shard.where)
    write(shard, 1, 1, b"1")
    with frozen_snapshots(shard.where, shard.query, 1) as (snapshot,):
        write(shard, 1, 2, b"2")
        assert snapshot.frozen
        assert (snapshot.tables(), snapshot.attempt()) == (["t"], Attempt(1, 1))
        assert {cell.new for _, cell in snapshot.scan("t")} == {b"1"}
        copies = list(client.scan_iter(f"potok:*{shard.query}*copy*"))
        assert copies
        assert all(client.ttl(name) > 0 for name in copies)
    assert list(client.scan_iter(f"potok:*{shard.query}*copy*")) == []


@pytest.fixture
def evicting(redis_url: str) -> Iterator[str]:
    client = connect(Where.of(redis_url))
    client.config_set("maxmemory-policy", "allkeys-lru")
    # A URL that this process is not connected to yet.
    yield redis_url.removesuffix("0") + "7"
    client.config_set("maxmemory-policy", "noeviction")


def test_a_server_that_evicts_keys_is_rejected(evicting: str) -> None:
    with pytest.raises(StateMayVanish) as caught:
        open_store(evicting, "q", 0)
    assert "noeviction" in caught.value.hint
