"""Stores at work: what they hold, what becomes of it, and what takes no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from potok import list_store, map_store, value_store, window_store
from potok.operators.processors.stores import frozen, open_store
from potok.records.value import Value
from potok.state.codec import StateNotData
from potok.topology.stores import StoreNotOpen


def opened(declared: Any, *, stream_time: int = 0, clock: int = -(1 << 62), data: bytes | None = None) -> Any:
    store = open_store(declared, SimpleNamespace(stream_time=stream_time), clock)  # type: ignore[arg-type]
    store.open(data)
    return store


def reopened(store: Any) -> Any:
    store.open(store.close())
    return store


def test_a_value_is_the_default_until_it_is_set_and_after_it_is_deleted() -> None:
    store = opened(value_store(default=3))
    assert store.get() == 3
    store.set(None)
    assert reopened(store).get() is None
    store.delete()
    assert store.close() is None
    assert reopened(store).get() == 3


def test_a_value_that_equals_the_default_takes_no_room() -> None:
    store = opened(value_store(default={"n": 0}))
    store.set({"n": 1})
    assert store.close() is not None
    store.set({"n": 0})
    assert store.close() is None


@pytest.mark.parametrize("default", [{}, dict])
def test_what_is_changed_in_place_is_kept_and_changes_no_default(default: Any) -> None:
    store = opened(value_store(default=default))
    store.get()["a"] = 1
    assert reopened(store).get() == {"a": 1}
    store.open(None)
    assert store.get() == {}


def test_what_was_set_is_a_copy() -> None:
    given: dict[str, list[int]] = {"a": [1]}
    store = opened(value_store())
    store.set(given)
    given["a"].append(2)
    assert store.get() == {"a": [1]}


def test_what_is_not_data_is_refused_where_it_is_set() -> None:
    for store, put in (
        (opened(value_store()), lambda s: s.set(object())),
        (opened(list_store()), lambda s: s.append([object()])),
        (opened(map_store()), lambda s: s.__setitem__("a", object())),
    ):
        with pytest.raises(StateNotData):
            put(store)


def test_a_list_is_a_list() -> None:
    store = opened(list_store())
    assert store.close() is None and not store
    store.extend([3, 1])
    store.append(2)
    store.insert(0, 9)
    store[1] = 4
    del store[2]
    assert list(reopened(store)) == [9, 4, 2] and 4 in store and store[-1] == 2 and store[:2] == [9, 4]
    assert store.pop() == 2
    store.clear()
    assert store.close() is None


def test_a_map_is_a_dict() -> None:
    store = opened(map_store())
    assert store.close() is None and "a" not in store
    store.update(a=1, b={"n": [1]})
    store["b"]["n"].append(2)
    assert dict(reopened(store)) == {"a": 1, "b": {"n": [1, 2]}}
    assert store.get("c", 7) == 7 and store.pop("a") == 1 and len(store) == 1
    del store["b"]
    assert store.close() is None


def test_a_window_returns_what_lies_between_two_instants() -> None:
    store = opened(window_store("1 s"))
    for at, value in ((30, "c"), (10, "a"), (20, "b"), (20, "b2")):
        store.put(at, value)
    assert reopened(store).fetch(10, 20) == [(10, "a"), (20, "b"), (20, "b2")]
    store.delete(20, 25)
    assert store.fetch(0, 100) == [(10, "a"), (30, "c")]


def test_a_window_hides_what_is_past_its_retention_for_who_asks() -> None:
    store = opened(window_store("10 ms"), stream_time=20)
    store.put(10, "gone before it came")
    store.put(11, "last")
    assert store.fetch(0, 100) == [(11, "last")]
    later = opened(window_store("10 ms"), stream_time=21, data=store.close())
    assert later.fetch(0, 100) == []


def test_a_window_deletes_values_that_can_no_longer_be_read() -> None:
    store = opened(window_store("10 ms"))
    store.put(5, "a")
    store.put(6, "b")
    data = store.close()
    assert opened(window_store("10 ms"), clock=14, data=data).prune() == 16
    after = opened(window_store("10 ms"), clock=15, data=data)
    assert after.prune() == 16
    assert opened(window_store("10 ms"), data=after.close()).fetch(0, 100) == [(6, "b")]
    over = opened(window_store("10 ms"), clock=16, data=data)
    assert over.prune() is None and over.close() is None


def test_an_unused_store_is_unchanged() -> None:
    store = opened(list_store(), data=b"not even read")
    assert store.close() == b"not even read"


@pytest.mark.parametrize("use", [lambda s: s["v"].get(), lambda s: s["l"].append(1), lambda s: len(s["m"])])
def test_a_declaration_holds_nothing(use: Any) -> None:
    with pytest.raises(StoreNotOpen, match="current key"):
        use({"v": value_store(), "l": list_store(), "m": map_store()})


def test_a_frozen_value_is_plain_and_its_own() -> None:
    inner = [1]
    given = Value({"a": inner, "b": Value({"c": 1})})
    copy = frozen(given)
    inner.append(2)
    assert copy == {"a": [1], "b": {"c": 1}} and type(copy) is dict
    assert frozen((1, [2])) == (1, [2])
    assert type(frozen(bytearray(b"x"))) is bytearray
