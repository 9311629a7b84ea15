"""The pages that each commit changed add up to the pages found by a full inspection."""

from __future__ import annotations

import random
from pathlib import Path

import lmdb
import numpy as np
import pytest

from potok.storage.page_format import PageFile
from potok.storage.page_inspection import inspect
from potok.storage.page_walk import changed_pages

COMMITS = 150


def change(chosen: random.Random, env: lmdb.Environment, trees: list[object]) -> bool:
    """Run one transaction of puts, deletes and sometimes a dropped tree; return whether it was committed."""
    txn = env.begin(write=True)
    for _ in range(chosen.choice((1, 5, 50, 1_500))):
        tree, key = chosen.choice(trees), b"%06d" % chosen.randrange(20_000)
        if chosen.random() < 0.7:
            size = chosen.choice((10, 100, 100, 2_000, 3_000, 20_000 if chosen.random() < 0.05 else 50))
            txn.put(key, chosen.randbytes(size), db=tree)
        else:
            txn.delete(key, db=tree)
    if chosen.random() < 0.02:
        txn.drop(chosen.choice(trees), delete=False)
    if chosen.random() < 0.05:
        txn.abort()
        return False
    txn.commit()
    return True


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_changes_add_up_while_readers_keep_pages_from_being_reused(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    env = lmdb.open(str(tmp_path), map_size=1 << 30, max_dbs=4, sync=False)
    trees: list[object] = [env.open_db(name) for name in (b"a", b"b", b"c/deep")]
    file = PageFile(tmp_path)
    known = inspect(file, file.newest())
    reader = None
    for number in range(COMMITS):
        if number % 20 == 10:
            reader = env.begin()
        if number % 20 == 0 and reader is not None:
            reader.abort()
        if not change(chosen, env, trees):
            continue
        meta = file.newest()
        in_use = np.zeros(meta.last_page + 1, np.bool_)
        in_use[[page for page in known if page <= meta.last_page]] = True
        found = changed_pages(file, meta, in_use)
        for page in found.removed.tolist():
            known.pop(page, None)
        known.update(zip(found.added.tolist(), found.sums.tolist(), strict=True))
        if number % 15 == 0:
            assert known == inspect(file, meta), f"after commit {number} of seed {seed}"
    assert known == inspect(file, file.newest())
