"""A shard of state with trees of several levels, large values and free pages, and what must be read from it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore

KEYS = 4_000


def cells(batch: int, numbers: list[int]) -> list[tuple[bytes, bytes]]:
    """Return the cells of a batch; every 97th has overflow pages."""
    attempt = Attempt(1, batch)
    return [
        (key(number), encode_cell(attempt, b"%d-%d" % (batch, number) * (1 if number % 97 else 900), None))
        for number in sorted(numbers)
    ]


def key(number: int) -> bytes:
    return b"key-%06d" % number


def build(directory: Path) -> None:
    chosen = random.Random(5)
    store = LmdbStore(directory)
    for batch in range(1, 8):
        writes = [(table, cells(batch, chosen.sample(range(KEYS), 400))) for table in ("t", "u/index")]
        removals = [("u/index", [key(number) for number in chosen.sample(range(KEYS), 150)])]
        store.put_many(Attempt(1, batch), writes, removals)
    store.close()


def contents(directory: Path) -> dict[Any, Any]:
    """Return everything a reader sees: by scans, and by keys."""
    with LmdbSnapshot(directory) as snapshot:
        found: dict[Any, Any] = {table: dict(snapshot.scan(table)) for table in snapshot.tables()}
        for number in range(0, KEYS, 40):
            cell = snapshot.get("t", key(number))
            found[number] = None if cell is None else decode_cell(cell)
        found["attempt"] = snapshot.attempt()
    close_environment(directory)
    return found


def write_more(directory: Path) -> dict[Any, Any]:
    """Write two more batches, and return the contents."""
    store = LmdbStore(directory)
    removed = [key(number) for number in range(0, KEYS, 5)]
    store.put_many(Attempt(1, 9), [("t", cells(9, list(range(0, KEYS, 13))))], [("u/index", removed)])
    store.put_many(Attempt(1, 10), [("t", cells(10, list(range(0, KEYS, 7))))])
    store.close()
    return contents(directory)
