"""State as bytes that decode to plain data and never run code."""

from __future__ import annotations

import math
import pickle
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.errors import StateError
from potok.records.value import Value
from potok.state.cell_types import TypeTag
from potok.state.codec import (
    NestedTooDeeply,
    StateNotData,
    UnreadableCell,
    check_data,
    dump_state,
    load_state,
    load_states,
)

RAN: list[str] = []


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


@dataclass
class Basket:
    items: int = 1


class Items(list[int]):
    pass


class Text(str):
    pass


Pair = namedtuple("Pair", "left right")


def same(found: Any, value: Any) -> bool:
    """Equal, and of the same classes at every level."""
    if type(found) is not type(value):
        return False
    if isinstance(value, dict):
        return len(found) == len(value) and all(same(a, b) for a, b in zip(found.items(), value.items(), strict=True))
    if isinstance(value, list | tuple | deque):
        limits = (found.maxlen, value.maxlen) if isinstance(value, deque) else (0, 0)
        return limits[0] == limits[1] and len(found) == len(value) and all(map(same, found, value))
    if isinstance(value, set | frozenset):
        return len(found) == len(value) and all(any(same(a, b) for b in found) for a in value)
    if isinstance(value, float):
        return math.copysign(1, found) == math.copysign(1, value) and (
            found == value or (found != found and value != value)
        )
    if isinstance(value, Decimal):
        return str(found) == str(value)
    if isinstance(value, datetime | time):
        return (found.replace(tzinfo=None), found.fold, str(found.tzinfo)) == (
            value.replace(tzinfo=None),
            value.fold,
            str(value.tzinfo),
        )
    return bool(found == value)


offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone) | st.just(UTC)
hashable = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 80), 1 << 80)
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.just(Decimal("NaN"))
    | st.fractions()
    | st.uuids()
    | st.dates()
    | st.times()
    | st.times(timezones=offsets)
    | st.datetimes()
    | st.datetimes(timezones=offsets)
    | st.timedeltas()
    | st.complex_numbers(allow_nan=False)
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9))
)
keys = hashable | st.tuples(hashable, hashable) | st.frozensets(hashable, max_size=3)


def containers(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists, dicts = st.lists(inside, max_size=4), st.dictionaries(keys, inside, max_size=4)
    return (
        lists
        | lists.map(tuple)
        | dicts
        | dicts.map(OrderedDict)
        | st.dictionaries(st.text(max_size=4), inside, max_size=4).map(Value)
        | st.dictionaries(st.text(max_size=4), st.integers(), max_size=4).map(Counter)
        | st.sets(keys, max_size=4)
        | st.builds(deque, lists, st.none() | st.integers(4, 9))
        | st.binary(max_size=4).map(bytearray)
    )


data = st.recursive(keys, containers, max_leaves=12)


@settings(max_examples=300)
@given(data)
def test_data_survives_encoding(value: Any) -> None:
    assert same(load_state(dump_state(value)), value)


@settings(max_examples=300)
@given(st.integers(-(1 << 62), 1 << 62), data)
def test_a_time_with_data_survives_encoding(at: int, value: Any) -> None:
    assert same(load_state(dump_state((at, value))), (at, value))


@given(st.lists(st.tuples(st.integers(-(1 << 62), 1 << 62), data)))
def test_cells_that_are_decoded_together_are_those_decoded_one_by_one(values: list[Any]) -> None:
    cells = [dump_state(value) for value in values]
    assert same(load_states(cells), list(map(load_state, cells)))


def test_cells_that_are_damaged_together_are_an_error() -> None:
    whole = dump_state((1, {"a": 2}))
    with pytest.raises(UnreadableCell):
        load_states([whole, whole[:-1]])


@pytest.mark.parametrize(
    "shape", ["{}", "[{}]", "({},)", "(1, {})", "(1, ({},))", "(1, [({}, 2)])", "(1, {{'a': {}}})"]
)
@pytest.mark.parametrize(
    "leaf",
    ["1 << 70", "-(1 << 63)", "(1 << 64) - 1", "1 << 64", "'\\ud800'", "b'x'", "bytearray(b'x')", "float('nan')"],
)
def test_types_that_messagepack_lacks_survive_encoding_in_any_position(shape: str, leaf: str) -> None:
    value = eval(shape.format(leaf))
    assert same(load_state(dump_state(value)), value)


@given(data)
def test_data_passes_the_check(value: Any) -> None:
    check_data([value])


def test_equal_sets_have_equal_bytes() -> None:
    one, two = {f"key-{n}" for n in range(50)}, {f"key-{n}" for n in reversed(range(50))}
    assert dump_state((1, one)) == dump_state((1, two))
    assert dump_state([frozenset(one)]) == dump_state([frozenset(two)])


@pytest.mark.parametrize(
    "value",
    [
        Basket(),
        Colour.RED,
        Level.LOW,
        Items([1]),
        Text("x"),
        Pair(1, 2),
        defaultdict(int),
        len,
        lambda: 1,
        memoryview(b"x"),
        msgpack.ExtType,
        np.float64(1.5),
        np.arange(3),
        datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Riga")),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("within", [lambda o: o, lambda o: (1, o), lambda o: (1, {"deep": [o]}), lambda o: {"a": (o,)}])
def test_objects_of_other_classes_are_rejected(value: Any, within: Any) -> None:
    with pytest.raises(StateNotData, match="cannot be stored"):
        dump_state(within(value))


@pytest.mark.parametrize("value", [int, Basket, {"type": str}])
def test_a_class_is_rejected(value: Any) -> None:
    with pytest.raises(StateNotData):
        dump_state(value)


class Attack:
    def __reduce__(self) -> Any:
        return RAN.append, ("ran",)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("prefix", [b"", b"v", b"t", b"p", b"V", b"T"])
def test_a_pickle_in_a_cell_is_rejected_and_not_executed(protocol: int, prefix: bytes) -> None:
    RAN.clear()
    with pytest.raises(UnreadableCell, match=r"version 0\.1"):
        load_state(prefix + pickle.dumps((1, Attack()), protocol))
    assert not RAN


KNOWN = {
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    Value,
    Counter,
    OrderedDict,
    deque,
}
KNOWN |= {TypeTag}  # a misplaced tag: an object without behaviour
KNOWN |= {bytearray, range, slice, complex, Decimal, Fraction, uuid.UUID, date, datetime, time, timedelta, timezone}


def _classes(value: Any) -> set[type]:
    inside = [*value.keys(), *value.values()] if isinstance(value, dict) else []
    if isinstance(value, list | tuple | set | frozenset | deque):
        inside = list(value)
    return {type(value)}.union(*map(_classes, inside))


@settings(max_examples=500)
@given(st.sampled_from(b"vtplsVTPLS"), st.binary(max_size=60))
def test_arbitrary_bytes_decode_to_data_or_an_error(letter: int, tail: bytes) -> None:
    try:
        found = load_state(bytes([letter]) + tail)
    except StateError:
        return
    assert _classes(found) <= KNOWN


@settings(max_examples=300)
@given(data, st.integers(0, 400), st.integers(0, 255))
def test_a_cell_with_a_changed_byte_decodes_to_data_or_an_error(value: Any, place: int, byte: int) -> None:
    cell = bytearray(dump_state((1, value)))
    cell[place % len(cell)] = byte
    try:
        found = load_state(bytes(cell))
    except StateError:
        return
    assert _classes(found) <= KNOWN


def test_a_messagepack_timestamp_is_read_as_data() -> None:
    value = {range(0): [bytearray(b""), timedelta(0)]}
    cell = bytearray(dump_state((1, value)))
    found = set[type]()
    for place in range(len(cell)):
        damaged = bytearray(cell)
        damaged[place] = 255
        with suppress(StateError):
            found |= _classes(load_state(bytes(damaged)))
    assert found <= KNOWN


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (object(), "{**vars(x)}"),
        (Basket(), "dataclasses.asdict(x)"),
        (Colour.RED, "x.value instead of x, and read it as Colour(value)"),
        (Pair(1, 2), "tuple(x)"),
        (defaultdict(int), "dict(x)"),
        (np.float64(1.5), "x.tolist()"),
        (datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Riga")), "x.astimezone(timezone.utc)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_error_says_what_to_return_instead(value: Any, instead: str) -> None:
    with pytest.raises(StateNotData) as caught:
        dump_state((1, {"deep": value}))
    assert f"return {instead}" in caught.value.hint


def test_the_check_raises_the_same_error_as_encoding() -> None:
    check_data([{"a": 1, "b": [date(2024, 1, 2), {1, 2}, Decimal("1.5"), b"x"]}, None])
    for wrong in (
        object(),
        [lambda: 0],
        {"a": {object()}},
        [open],
        [int],
        [Decimal],
        [memoryview(b"")],
        Colour.RED,
        Pair(1, 2),
    ):
        with pytest.raises((StateNotData, TypeError)):
            check_data(wrong)


def test_a_value_that_contains_itself_is_rejected() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NestedTooDeeply, match="contains itself"):
        dump_state((1, loop))


def test_deeply_nested_values_survive_encoding() -> None:
    value: Any = "x"
    for _ in range(900):
        value = [value]
    assert load_state(dump_state((1, value)))[1] == value
