"""The reads and writes of one attempt on one shard."""

from __future__ import annotations

import numpy as np
import pytest

from potok.state.fence import Attempt, Fence, StaleAttempt
from potok.state.session import StateSession, tombstones_of
from state.shard import Shard

NUMBER = np.dtype([("n", "<i8")])
LENGTHS = [0, 1, 457, 458, 459, 480, 481, 511, 512, 3_000]


def session(shard: Shard, epoch: int, batch: int, ended: dict[int, int] | None = None) -> StateSession:
    return StateSession(shard.store(), Fence(Attempt(epoch, batch), ended or {}))


def put(shard: Shard, epoch: int, batch: int, ended: dict[int, int] | None = None, **rows: bytes | None) -> None:
    """Run one attempt that writes rows like a task: read, write, sweep, commit."""
    attempt = session(shard, epoch, batch, ended)
    keys = [name.encode() for name in rows]
    before = attempt.read("t", keys)
    attempt.write("t", list(zip(keys, rows.values(), before, strict=True)))
    attempt.sweep(["t"])
    attempt.commit()


def get(shard: Shard, key: str, epoch: int, batch: int, ended: dict[int, int] | None = None) -> bytes | None:
    return session(shard, epoch, batch, ended).read("t", [key.encode()])[0]


def test_nothing_is_written_before_the_commit(shard: Shard) -> None:
    first = session(shard, 1, 1)
    first.write("t", [(b"a", b"1", None)])
    assert get(shard, "a", 1, 2) is None
    first.commit()
    assert get(shard, "a", 1, 2) == b"1"


def test_a_repeated_attempt_starts_from_the_same_state(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1")
    put(shard, 1, 2, a=b"first try", phantom=b"x")
    again = session(shard, 1, 2)
    assert again.read("t", [b"a", b"phantom"]) == [b"1", None]
    put(shard, 1, 2, a=b"2")
    assert get(shard, "a", 1, 3) == b"2"


def test_uncommitted_writes_of_an_ended_epoch_are_void(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1")
    put(shard, 1, 2, a=b"void", phantom=b"void", b=b"void")
    ended = {1: 1}
    put(shard, 2, 2, ended, b=b"2")
    assert [get(shard, key, 2, 3, ended) for key in ("a", "b", "phantom")] == [b"1", b"2", None]
    put(shard, 2, 3, ended, a=b"3")
    assert get(shard, "a", 2, 4, ended) == b"3"


def test_a_second_driver_is_fenced_by_the_first_write_of_its_successor(shard: Shard) -> None:
    zombie = session(shard, 1, 7)
    put(shard, 2, 7, a=b"2")
    zombie.write("t", [(b"a", b"zombie", None)])
    with pytest.raises(StaleAttempt):
        zombie.commit()
    assert get(shard, "a", 2, 8) == b"2"


def test_keys_that_the_batch_has_deleted_do_not_count(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1", b=b"1")
    second = session(shard, 1, 2)
    second.write("t", [(b"a", None, b"1"), (b"c", None, None)])
    second.commit()
    assert second.count("t") == 1
    third = session(shard, 1, 3)
    third.sweep(["t"])
    third.commit()
    assert third.count("t") == 1


def test_a_delete_is_visible_immediately_and_swept_in_a_later_batch(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1", b=b"1")
    put(shard, 1, 2, a=None)
    store = shard.store()
    assert get(shard, "a", 1, 3) is None
    assert get(shard, "a", 1, 2) == b"1"
    assert store.entries("t") == 2
    put(shard, 1, 3)
    assert (store.entries("t"), store.entries(tombstones_of("t"))) == (1, 0)


def test_a_rewritten_row_is_not_swept(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1")
    put(shard, 1, 2, a=None)
    put(shard, 1, 3, a=b"3")
    put(shard, 1, 4)
    assert get(shard, "a", 1, 5) == b"3"


def test_a_void_delete_is_not_swept(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1")
    put(shard, 1, 2, a=None)
    ended = {1: 1}
    put(shard, 2, 2, ended)
    put(shard, 2, 3, ended)
    assert get(shard, "a", 2, 4, ended) == b"1"


def test_a_replay_does_not_sweep_what_it_deletes_itself(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1")
    put(shard, 1, 2, a=None)
    put(shard, 1, 2, a=None)
    assert get(shard, "a", 1, 2) == b"1"
    assert get(shard, "a", 1, 3) is None


def test_a_sweep_resumes_at_its_limit(shard: Shard) -> None:
    names = {f"k{n}": b"1" for n in range(7)}
    put(shard, 1, 1, **names)
    put(shard, 1, 2, **dict.fromkeys(names))
    for batch in (3, 4, 5):
        later = session(shard, 1, batch)
        later.sweep(["t"], limit=3)
        later.commit()
    assert shard.store().entries("t") == 0


@pytest.mark.parametrize("length", LENGTHS)
def test_a_key_of_any_length_is_found_and_restored(shard: Shard, length: int) -> None:
    key = b"k" * length
    first = session(shard, 1, 1)
    first.write("t", [(key, b"value", None)])
    first.commit()
    second = session(shard, 1, 2)
    assert second.read("t", [key]) == [b"value"]
    assert [found for found, _ in second.store.scan("t")] == [key]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_key_of_any_length_is_restored_in_a_table_of_fixed_width(shard: Shard, length: int) -> None:
    key, row = b"k" * length, np.array([(5,)], NUMBER)
    first = session(shard, 1, 1)
    first.write_fixed("t", [key], row, row, np.array([False]))
    first.commit()
    second = session(shard, 1, 2)
    values, exists = second.read_fixed("t", [key], NUMBER)
    assert exists.all() and values["n"].tolist() == [5]
    assert [found for found, _ in second.store.scan("t")] == [key]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_deleted_key_of_any_length_is_swept(shard: Shard, length: int) -> None:
    key = b"k" * length
    for batch, value in ((1, b"1"), (2, None)):
        attempt = session(shard, 1, batch)
        attempt.write("t", [(key, value, attempt.read("t", [key])[0])])
        attempt.commit()
    third = session(shard, 1, 3)
    third.sweep(["t"])
    third.commit()
    assert shard.store().entries("t") == 0


def test_long_keys_with_a_common_prefix_are_distinct(shard: Shard) -> None:
    one, two = b"k" * 600 + b"1", b"k" * 600 + b"2"
    first = session(shard, 1, 1)
    first.write("t", [(one, b"1", None), (two, b"2", None)])
    first.commit()
    assert session(shard, 1, 2).read("t", [two, one]) == [b"2", b"1"]


def test_deletes_of_fixed_width_are_swept_too(shard: Shard) -> None:
    row, there = np.array([(5,)], NUMBER), np.array([True])
    first = session(shard, 1, 1)
    first.write_fixed("t", [b"a"], row, row, ~there)
    first.commit()
    second = session(shard, 1, 2)
    second.delete_fixed("t", [b"a"], row, there)
    second.commit()
    third = session(shard, 1, 3)
    assert not third.read_fixed("t", [b"a"], NUMBER)[1].any()
    third.sweep(["t"])
    third.commit()
    assert third.store.entries("t") == 0


def test_keys_below_a_bound_are_those_before_this_attempt(shard: Shard) -> None:
    put(shard, 1, 1, a=b"1", b=b"1", c=b"1")
    put(shard, 1, 2, b=None, aa=b"mine")
    assert session(shard, 1, 2).keys("t", b"c") == [b"a", b"b"]
    assert session(shard, 1, 3).keys("t", b"c") == [b"a", b"aa"]


def test_the_first_key_includes_committed_writes_of_this_attempt(shard: Shard) -> None:
    put(shard, 1, 1, b=b"1")
    put(shard, 1, 2, a=b"1", b=None)
    assert session(shard, 1, 2).first_key("t") == b"a"
    put(shard, 1, 3, a=None)
    assert session(shard, 1, 3).first_key("t") is None


def test_the_first_key_skips_void_cells(shard: Shard) -> None:
    put(shard, 1, 1, b=b"1")
    put(shard, 1, 2, a=b"void")
    put(shard, 2, 2, {1: 1})
    assert session(shard, 2, 2, {1: 1}).first_key("t") == b"b"
