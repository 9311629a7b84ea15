"""A table in two trees reads like one, however often the small tree is merged into the large."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt
from potok.state.lmdb import buffered
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore

KEYS = st.binary(min_size=1, max_size=2)
STEPS = st.lists(
    st.tuples(st.dictionaries(KEYS, st.binary(max_size=3), max_size=5), st.lists(KEYS, max_size=3)), max_size=8
)


@given(steps=STEPS, start=st.binary(max_size=2), stop=st.none() | KEYS)
@settings(max_examples=60, deadline=None)
def test_the_last_write_of_each_key_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[dict[bytes, bytes], list[bytes]]],
    start: bytes,
    stop: bytes | None,
) -> None:
    path = tmp_path_factory.mktemp("buffered")
    store, expected = LmdbStore(path), dict[bytes, bytes]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffered, "FULL", 3)
        for batch, (written, removed) in enumerate(steps, 1):
            attempt = Attempt(1, batch)
            cells = {key: encode_cell(attempt, value, None) for key, value in written.items()}
            store.put_many(attempt, [("t", sorted(cells.items()))], [("t", removed)])
            expected = {key: value for key, value in expected.items() if key not in removed} | written
    inside = {key: value for key, value in sorted(expected.items()) if start <= key and (stop is None or key < stop)}
    assert {key: cell.new for key, cell in store.scan("t", start, stop, page=2)} == inside
    assert [key for key, _ in store.scan("t", start, stop, page=2)] == list(inside)
    assert None not in store.get_many("t", list(expected))
    with LmdbSnapshot(path) as snapshot:
        assert {key: cell.new for key, cell in snapshot.scan("t", start, stop)} == inside
        in_bulk = [row for chunk in snapshot.chunks("t", start, stop) for row in chunk]
        assert sorted((key, decode_cell(data).new) for key, data in in_bulk) == list(inside.items())
        assert all(snapshot.get("t", key) is not None for key in expected)
    close_environment(path)


def test_a_full_small_tree_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered, "FULL", 2)
    store = LmdbStore(tmp_path)
    for batch in range(1, 6):
        attempt = Attempt(1, batch)
        store.put_many(attempt, [("t", [(bytes([batch]), encode_cell(attempt, b"v", None))])])
    assert store.entries("t") == 5
    _, small = buffered.trees_of("t")
    assert small is not None
    with LmdbSnapshot(tmp_path) as snapshot:
        assert [key for key, _ in snapshot.scan("t")] == [bytes([batch]) for batch in range(1, 6)]
        assert len(list(snapshot.scan(small))) == 2


@pytest.mark.parametrize("asked", [1, 40])
def test_a_cell_in_the_small_tree_hides_the_one_in_the_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int
) -> None:
    monkeypatch.setattr(buffered, "FULL", 20)
    store = LmdbStore(tmp_path)
    keys = [bytes([number]) for number in range(60)]
    for batch, part in enumerate((keys[:40], keys[10:15]), 1):
        attempt = Attempt(1, batch)
        store.put_many(attempt, [("t", [(key, encode_cell(attempt, key, None)) for key in part])])
    wanted = keys[14 : 14 + asked]
    batches = [None if data is None else decode_cell(data).batch for data in store.get_many("t", wanted)]
    assert batches == [2 if key in keys[10:15] else 1 if key in keys[:40] else None for key in wanted]
