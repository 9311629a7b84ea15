"""The cells of one shard, in each of the stores."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from potok.backends.state_url import Where
from potok.state.cell import encode_cell
from potok.state.fence import Attempt, StaleAttempt
from potok.state.store import StateMissing, carried_key, stored_key
from state.shard import Shard

FIRST = Attempt(1, 1)
LONGEST_IN_LMDB = 511

KEYS = st.binary(min_size=1, max_size=2)
STEPS = st.lists(
    st.tuples(st.dictionaries(KEYS, st.binary(max_size=3), max_size=5), st.lists(KEYS, max_size=3)), max_size=8
)
BOUNDS = st.tuples(st.binary(max_size=2), st.none() | KEYS)


def cell(value: bytes, attempt: Attempt = FIRST) -> bytes:
    return encode_cell(attempt, value, None)


def test_many_keys_are_read_at_once(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"a", cell(b"1")), (b"b", cell(b"2"))])])
    assert store.get_many("t", [b"b", b"missing", b"a", b"b"]) == [cell(b"2"), None, cell(b"1"), cell(b"2")]
    assert store.get_many("other", [b"a"]) == [None]
    assert store.get_many("t", []) == []


@pytest.mark.parametrize("zombie", [Attempt(1, 4), Attempt(0, 9), Attempt(1, 1)])
def test_a_lower_attempt_than_the_highest_is_rejected_and_writes_nothing(shard: Shard, zombie: Attempt) -> None:
    store = shard.store()
    store.put_many(Attempt(1, 5), [("t", [(b"a", cell(b"right"))])])
    with pytest.raises(StaleAttempt):
        store.put_many(zombie, [("t", [(b"a", cell(b"wrong")), (b"b", cell(b"wrong"))])], [("t", [b"a"])])
    assert store.get_many("t", [b"a", b"b"]) == [cell(b"right"), None]
    assert store.attempt() == Attempt(1, 5)


@pytest.mark.parametrize("later", [Attempt(2, 1), Attempt(1, 10), Attempt(1, 1 << 40), Attempt((1 << 32) - 1, 0)])
def test_attempts_are_compared_as_numbers(shard: Shard, later: Attempt) -> None:
    store = shard.store()
    store.put_many(Attempt(1, 9), [])
    store.put_many(later, [])
    assert store.attempt() == later
    with pytest.raises(StaleAttempt):
        store.put_many(Attempt(1, 9), [])


def test_the_same_attempt_may_write_again(shard: Shard) -> None:
    store = shard.store()
    for value in (b"1", b"2"):
        store.put_many(FIRST, [("t", [(b"a", cell(value))])])
    assert store.get_many("t", [b"a"]) == [cell(b"2")]


def test_an_attempt_without_writes_fences_older_ones(shard: Shard) -> None:
    store = shard.store()
    store.put_many(Attempt(2, 1), [])
    with pytest.raises(StaleAttempt):
        store.put_many(Attempt(1, 9), [])


def test_a_key_that_is_removed_and_written_exists(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"a", cell(b"1"))])])
    store.put_many(FIRST, [("t", [(b"a", cell(b"2"))])], [("t", [b"a"])])
    assert store.get_many("t", [b"a"]) == [cell(b"2")]


def test_of_two_writes_to_one_key_the_last_counts(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"a", cell(b"1")), (b"a", cell(b"2"))]), ("t", [(b"a", cell(b"3"))])])
    assert (store.get_many("t", [b"a"]), store.entries("t")) == ([cell(b"3")], 1)


@given(steps=STEPS, bounds=st.lists(BOUNDS, min_size=1, max_size=4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_last_write_of_each_key_is_read(
    where: Where, steps: list[tuple[dict[bytes, bytes], list[bytes]]], bounds: list[tuple[bytes, bytes | None]]
) -> None:
    shard, expected = Shard(where), dict[bytes, bytes]()
    store = shard.store()
    for batch, (written, removed) in enumerate(steps, 1):
        attempt = Attempt(1, batch)
        cells = {key: encode_cell(attempt, value, None) for key, value in written.items()}
        store.put_many(attempt, [("t", sorted(cells.items()))], [("t", removed)])
        expected = {key: value for key, value in expected.items() if key not in removed} | written
    inside = [
        [(key, expected[key]) for key in sorted(expected) if start <= key and (stop is None or key < stop)]
        for start, stop in bounds
    ]
    assert [[(key, c.new) for key, c in found] for found in store.scan_ranges("t", bounds)] == inside
    assert [[(key, c.new) for key, c in store.scan("t", *span, page=2)] for span in bounds] == inside
    assert None not in store.get_many("t", list(expected))
    assert store.entries("t") >= len(expected)
    with shard.snapshot() as snapshot:
        assert [[(key, c.new) for key, c in snapshot.scan("t", *span)] for span in bounds] == inside
        assert all(snapshot.get("t", key) is not None for key in expected)
    shard.close()


def test_a_scan_spans_pages(shard: Shard) -> None:
    store = shard.store()
    keys = [b"%03d" % n for n in range(10)]
    store.put_many(FIRST, [("t", [(key, cell(key)) for key in keys])])
    assert [key for key, _ in store.scan("t", page=3)] == keys
    assert [key for key, _ in store.scan("t", b"003", b"006", page=2)] == keys[3:6]


def test_no_ranges_return_no_cells(shard: Shard) -> None:
    assert shard.store().scan_ranges("t", []) == []


def test_a_hundred_thousand_cells_are_written_read_and_removed_in_one_call(shard: Shard) -> None:
    store = shard.store()
    keys = [b"%06d" % number for number in range(100_000)]
    cells = [cell(key) for key in keys]
    store.put_many(FIRST, [("t", list(zip(keys, cells, strict=True)))])
    assert store.entries("t") == len(keys)
    assert store.get_many("t", keys[::-1]) == cells[::-1]
    assert [key for key, _ in store.page("t", limit=60_000)] == keys[:60_000]
    store.put_many(Attempt(1, 2), [], [("t", keys[:99_000])])
    assert (store.entries("t"), [key for key, _ in store.scan("t")]) == (1_000, keys[99_000:])


def test_of_concurrent_attempts_the_higher_one_wins(shard: Shard) -> None:
    keys = [b"%05d" % number for number in range(3_000)]
    attempts = [Attempt(1, 7), Attempt(2, 7)]

    def write(attempt: Attempt) -> None:
        try:
            shard.store().put_many(attempt, [("t", [(key, cell(key, attempt)) for key in keys])])
        except StaleAttempt:
            assert attempt == attempts[0]

    writers = [threading.Thread(target=write, args=(attempt,)) for attempt in attempts * 3]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {(c.epoch, c.batch) for _, c in shard.store().scan("t")} == {attempts[1]}


def test_a_long_key_is_truncated_and_can_be_restored(shard: Shard) -> None:
    key = b"k" * 600
    assert len(stored_key(key)) <= LONGEST_IN_LMDB
    assert carried_key(key) == key
    store = shard.store()
    store.put_many(FIRST, [("t", [(stored_key(key), encode_cell(FIRST, b"1", None, carried_key(key)))])])
    assert [found for found, _ in store.scan("t")] == [key]


@pytest.mark.parametrize("length", [457, 458, 459, 480, 481])
def test_keys_near_the_length_limits_never_collide(length: int) -> None:
    keys = [b"k" * length, b"k" * (length - 1) + b"l", stored_key(b"k" * 600), b"k" * 600]
    assert len({stored_key(key) for key in keys}) == len(keys)


def test_the_empty_key_and_the_zero_byte_are_two_keys() -> None:
    assert stored_key(b"") != stored_key(b"\x00")


def test_only_the_tables_of_known_steps_survive_a_change(shard: Shard) -> None:
    store = shard.store()
    names = ["kept", "kept/deleted", "kept/by_end", "kept/by_end/deleted", "gone", "gone/by_end"]
    store.put_many(Attempt(1, 3), [(name, [(b"a", cell(b"1"))]) for name in names])
    assert store.tables() == sorted(names)
    store.drop_tables_except({"kept"})
    assert {name: store.entries(name) for name in names} == dict.fromkeys(names[:4], 1) | dict.fromkeys(names[4:], 0)
    assert store.page("gone", limit=10) == []
    with pytest.raises(StaleAttempt):
        store.put_many(Attempt(1, 2), [])


def test_the_stores_of_a_step_are_dropped_one_by_one(shard: Shard) -> None:
    store = shard.store()
    names = ["p/cart", "p/lately", "p/timers-by-key"]
    store.put_many(FIRST, [(name, [(b"a", cell(b"1"))]) for name in names])
    store.drop_tables_except({"p"}, {"p": {"lately"}})
    assert {name: store.entries(name) for name in names} == {"p/cart": 0, "p/lately": 1, "p/timers-by-key": 1}


def test_shards_and_queries_are_isolated(where: Where) -> None:
    one, other = Shard(where), Shard(where)
    one.store().put_many(Attempt(5, 5), [("t", [(b"a", cell(b"1"))])])
    other.store().put_many(FIRST, [("t", [(b"a", cell(b"2"))])])
    one.store().drop_tables(["t"])
    assert other.store().get_many("t", [b"a"]) == [cell(b"2")]
    one.close()
    other.close()


def test_a_cleared_shard_is_empty(shard: Shard) -> None:
    store = shard.store()
    store.put_many(Attempt(2, 2), [("t", [(b"a", cell(b"1"))]), ("t/index", [(b"b", cell(b"1"))])])
    store.clear()
    assert (store.tables(), store.attempt(), store.entries("t"), store.get_many("t", [b"a"])) == ([], None, 0, [None])
    store.put_many(FIRST, [("t", [(b"a", cell(b"2"))])])
    assert store.get_many("t", [b"a"]) == [cell(b"2")]


def test_state_that_was_never_written_cannot_be_opened_for_reading(shard: Shard) -> None:
    with pytest.raises(StateMissing):
        shard.store(create=False)


def test_the_size_is_reported(shard: Shard) -> None:
    store = shard.store()
    store.put_many(FIRST, [("t", [(b"%05d" % n, cell(b"x" * 100)) for n in range(2_000)])])
    assert store.size_bytes() > 200_000
