"""The cells of one shard."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.state.cell import encode_cell
from potok.state.environment import close_environment
from potok.state.fence import Attempt, StaleAttempt
from potok.state.store import ShardStore, StateMissing, carried_key, stored_key

FIRST = Attempt(1, 1)
LONGEST_IN_LMDB = 511


def cell(value: bytes, attempt: Attempt = FIRST) -> bytes:
    return encode_cell(attempt, value, None)


def test_many_keys_are_read_at_once(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    store.put_many(FIRST, [("t", [(b"a", cell(b"1")), (b"b", cell(b"2"))])])
    assert store.get_many("t", [b"b", b"missing", b"a"]) == [cell(b"2"), None, cell(b"1")]
    assert store.get_many("other", [b"a"]) == [None]


@pytest.mark.parametrize("zombie", [Attempt(1, 4), Attempt(0, 9), Attempt(1, 1)])
def test_a_lower_attempt_than_the_highest_is_refused_and_writes_nothing(tmp_path: Path, zombie: Attempt) -> None:
    store = ShardStore(tmp_path)
    store.put_many(Attempt(1, 5), [("t", [(b"a", cell(b"right"))])])
    with pytest.raises(StaleAttempt):
        store.put_many(zombie, [("t", [(b"a", cell(b"wrong")), (b"b", cell(b"wrong"))])])
    assert store.get_many("t", [b"a", b"b"]) == [cell(b"right"), None]


def test_the_same_attempt_may_write_again(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    for value in (b"1", b"2"):
        store.put_many(FIRST, [("t", [(b"a", cell(value))])])
    assert store.get_many("t", [b"a"]) == [cell(b"2")]


def test_an_attempt_without_writes_still_shuts_out_older_ones(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    store.put_many(Attempt(2, 1), [])
    with pytest.raises(StaleAttempt):
        store.put_many(Attempt(1, 9), [])


def test_what_is_removed_and_written_in_one_transaction_is_there(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    store.put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    store.put_many(FIRST, [("t", [(b"a", cell(b"2"))])], [("t", [b"a"])])
    assert store.get_many("t", [b"a"]) == [cell(b"2")]


def test_a_scan_goes_on_over_pages(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    keys = [b"%03d" % n for n in range(10)]
    store.put_many(FIRST, [("t", [(key, cell(key)) for key in keys])])
    assert [key for key, _ in store.scan("t", page=3)] == keys
    assert [key for key, _ in store.scan("t", b"003", b"006", page=2)] == keys[3:6]


def test_a_long_key_is_cut_and_can_be_told(tmp_path: Path) -> None:
    key = b"k" * 600
    assert len(stored_key(key)) <= LONGEST_IN_LMDB
    assert carried_key(key) == key
    store = ShardStore(tmp_path)
    store.put_many(FIRST, [("t", [(stored_key(key), encode_cell(FIRST, b"1", None, carried_key(key)))])])
    assert [found for found, _ in store.scan("t")] == [key]


@pytest.mark.parametrize("length", [457, 458, 459, 480, 481])
def test_keys_around_the_limits_never_meet(length: int) -> None:
    keys = [b"k" * length, b"k" * (length - 1) + b"l", stored_key(b"k" * 600), b"k" * 600]
    assert len({stored_key(key) for key in keys}) == len(keys)


def test_the_empty_key_and_the_zero_byte_are_two_keys() -> None:
    assert stored_key(b"") != stored_key(b"\x00")


def test_only_the_tables_of_known_steps_survive_a_change(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    names = ["kept", "kept/deleted", "kept/by_end", "kept/by_end/deleted", "gone", "gone/by_end"]
    store.put_many(Attempt(1, 3), [(name, [(b"a", cell(b"1"))]) for name in names])
    store.drop_tables_except({"kept"})
    assert {name: store.entries(name) for name in names} == dict.fromkeys(names[:4], 1) | dict.fromkeys(names[4:], 0)
    with pytest.raises(StaleAttempt):
        store.put_many(Attempt(1, 2), [])


def test_state_that_was_never_written_cannot_be_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StateMissing):
        ShardStore(tmp_path / "nothing", create=False)


def test_a_store_that_was_closed_opens_again_with_its_cells(tmp_path: Path) -> None:
    ShardStore(tmp_path).put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    close_environment(tmp_path)
    assert ShardStore(tmp_path).entries("t") == 1


def test_a_full_map_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.state.environment.MAP_SIZE", 1 << 16)
    store = ShardStore(tmp_path)
    rows = [(b"%06d" % n, cell(b"x" * 100)) for n in range(2_000)]
    store.put_many(FIRST, [("t", rows)])
    assert store.entries("t") == len(rows)
