from __future__ import annotations

import copy
import pickle

import orjson
import pytest

from potok.records.value import Value, wrap


def test_fields_are_reached_by_brackets_and_by_dots() -> None:
    v = Value({"amount": 120.0, "address": {"city": "Riga"}})
    assert v["amount"] == v.amount == 120.0
    assert v.address.city == v["address"]["city"] == "Riga"


def test_a_changed_value_is_made_by_unpacking() -> None:
    v = Value({"amount": 120.0})
    assert {**v, "status": "PAID"} == {"amount": 120.0, "status": "PAID"}


def test_a_missing_field_is_named_together_with_those_that_are_there() -> None:
    with pytest.raises(AttributeError, match='no field "price"; it has "amount", "user"'):
        _ = Value({"amount": 1, "user": "u"}).price
    with pytest.raises(KeyError):
        Value({})["price"]
    assert not hasattr(Value(), "price")


def test_a_value_is_not_changed_through_a_dot() -> None:
    with pytest.raises(AttributeError, match=r'create a new one: \{\*\*v, "amount": \.\.\.\}'):
        Value({"amount": 1}).amount = 2


def test_a_field_named_like_a_method_is_reached_by_brackets() -> None:
    v = Value({"items": ["a"]})
    assert v["items"] == ["a"]
    assert list(v.items()) == [("items", ["a"])]


def test_a_value_is_copied_pickled_and_written_as_the_dict_it_is() -> None:
    v = Value({"a": {"b": 1}})
    for again in (pickle.loads(pickle.dumps(v)), copy.deepcopy(v), copy.copy(v)):
        assert again == v
        assert type(again) is Value or type(again) is dict
    assert orjson.dumps(v) == b'{"a":{"b":1}}'


def test_only_plain_dicts_are_wrapped() -> None:
    value = Value()
    assert type(wrap({})) is Value
    assert wrap(value) is value
    assert wrap([1]) == [1]
    assert wrap(None) is None
