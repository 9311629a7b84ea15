"""Cells in PostgreSQL: one transaction, one table per query, lost connections."""

from __future__ import annotations

import psycopg
import pytest

from potok.backends.state_url import Where
from potok.errors import StateError
from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.open import open_snapshots, open_store
from potok.state.postgres_store import cells_of
from state.shard import Shard

FIRST = Attempt(1, 1)


def cell(value: bytes) -> bytes:
    return encode_cell(FIRST, value, None)


@pytest.fixture
def shard(postgres_url: str) -> Shard:
    return Shard(Where.of(postgres_url))


def test_a_failed_write_is_rolled_back(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    unspeakable = "PostgreSQL has no text with \x00"
    with pytest.raises(StateError, match="rejected"):
        store.put_many(
            Attempt(1, 2), [("t", [(b"a", cell(b"2")), (b"b", cell(b"2"))]), (unspeakable, [(b"a", cell(b"2"))])]
        )
    assert (store.attempt(), store.entries("t"), store.get_many("t", [b"a", b"b"])) == (FIRST, 1, [cell(b"1"), None])


def test_a_lost_connection_is_replaced(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'potok'"
    with psycopg.connect(shard.where.url) as other:
        other.execute(ends)
    assert store.get_many("t", [b"a"]) == [cell(b"1")]
    with psycopg.connect(shard.where.url) as other:
        other.execute(ends)
    with shard.snapshot() as snapshot:
        assert snapshot.get("t", b"a") == cell(b"1")


def test_queries_with_long_names_do_not_share_a_table(postgres_url: str) -> None:
    names = ["q" * 150 + end for end in "ab"]
    assert len({cells_of(name).as_string(None) for name in names}) == 2
    for name in names:
        open_store(postgres_url, name, 0).put_many(FIRST, [("t", [(b"a", cell(name.encode()))])])
    found = [open_store(postgres_url, name, 0).get_many("t", [b"a"]) for name in names]
    assert found == [[cell(name.encode())] for name in names]


def test_all_shards_are_read_at_one_instant(shard: Shard) -> None:
    stores = [open_store(shard.where, shard.query, number) for number in range(2)]
    stores[0].put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    with open_snapshots(shard.where, shard.query, 2) as snapshots:
        stores[1].put_many(FIRST, [("t", [(b"b", cell(b"1"))])])
        assert [[key for key, _ in snapshot.rows("t")] for snapshot in snapshots] == [[b"a"], []]
