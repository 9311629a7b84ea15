"""State as bytes that run nothing when they are read."""

from __future__ import annotations

import pickle
import uuid
from collections import Counter, OrderedDict, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import StateError
from potok.records.value import Value
from potok.state.codec import StateNotData, check_data, dump_state, load_state


class Colour(Enum):
    RED = 1


class Basket:
    pass


class Items(list[int]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        (1, "two", None, 3.5, True, b"bytes"),
        {"tuple": (1, (2,)), "set": {1, 2}, "frozen": frozenset({"a"})},
        [Decimal("1.10"), Fraction(1, 3), 2 + 3j, 1 << 100],
        [date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), time(1, 2), timedelta(seconds=3)],
        [uuid.UUID(int=7), range(3), slice(1, 2), bytearray(b"x")],
        [Counter("aab"), OrderedDict(b=1, a=2), deque([1, 2], 5)],
        Value({"nested": Value({"x": 1})}),
    ],
)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    found = load_state(dump_state(value))
    assert found == value
    assert type(found) is type(value)


@given(st.recursive(st.none() | st.integers() | st.text() | st.floats(allow_nan=False), st.lists))
def test_nested_lists_come_back_as_they_were(value: Any) -> None:
    assert load_state(dump_state(value)) == value


@pytest.mark.parametrize("value", [Basket(), Colour.RED, Items([1]), len, lambda: 1, {"deep": [Basket()]}])
def test_objects_of_other_classes_are_refused(value: Any) -> None:
    with pytest.raises(StateNotData, match="cannot be kept"):
        dump_state(value)


@pytest.mark.parametrize("value", [int, Basket, {"type": str}])
def test_a_class_is_refused_when_it_is_written_and_not_only_when_it_is_read(value: Any) -> None:
    with pytest.raises(StateNotData):
        dump_state(value)


@pytest.mark.parametrize("protocol", range(6))
def test_reading_runs_no_code(protocol: int) -> None:
    class Attack:
        def __reduce__(self) -> Any:
            return print, ("ran",)

    with pytest.raises(StateError, match="not data"):
        load_state(pickle.dumps(Attack(), protocol))


def test_the_error_says_what_to_return_instead() -> None:
    with pytest.raises(StateNotData) as caught:
        dump_state(Basket())
    assert "vars(x)" in caught.value.hint


def test_a_check_raises_what_the_bytes_would_raise() -> None:
    check_data([{"a": 1, "b": [date(2024, 1, 2), {1, 2}, Decimal("1.5"), b"x"]}, None])
    for wrong in (object(), [lambda: 0], {"a": {object()}}, [open]):
        with pytest.raises(StateNotData):
            check_data(wrong)


def test_a_value_that_holds_itself_can_be_kept_though_the_check_is_not_sure() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="cyclic"):
        check_data(loop)
    kept = load_state(dump_state(loop))
    assert kept[0] is kept
