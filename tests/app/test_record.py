"""Record classes: what they accept, what they refuse, and how they travel."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import cloudpickle
import pytest

import potok.app as faust
from potok.app.record import NAMESPACE
from potok.app.values import Freeze, Revive, Thaw, schema_of, value_encoder
from potok.kernels.agents_running import Unfit


class Address(faust.Record):
    city: str
    zip: str | None = None


class User(faust.Record, coerce=False):
    name: str
    home: Address
    others: list[Address] = []
    born: datetime | None = None
    balance: Decimal = Decimal(0)


class Loose(faust.Record, coerce=True):
    count: int
    text: str


class Checked(faust.Record, validation=True):
    count: int


DATA: dict[str, Any] = {
    "name": "Ann",
    "home": {"city": "Riga"},
    "others": [{"city": "Oslo", "zip": "1"}],
    "born": "2000-01-02T03:04:05+00:00",
    "balance": "1.50",
}


def test_nested_records_lists_dates_and_decimals_are_read() -> None:
    user = User.from_data(DATA)
    assert user == User(
        "Ann", Address("Riga"), [Address("Oslo", "1")], datetime(2000, 1, 2, 3, 4, 5, tzinfo=UTC), Decimal("1.50")
    )
    assert User.from_data({"name": "B", "home": {"city": "X"}}).others == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(faust.ValidationError) as caught:
        User.from_data({"home": 3, "balance": "much"})
    for text in ('field "name": is missing', 'field "home"', "'much' is no decimal"):
        assert text in str(caught.value)


def test_coerce_reads_numbers_from_text_and_validation_checks_the_constructor() -> None:
    assert Loose.from_data({"count": "3", "text": 4}) == Loose(3, "4")
    with pytest.raises(faust.ValidationError):
        Checked("three")  # type: ignore[arg-type]
    assert not Loose("x", "y").is_valid()  # type: ignore[arg-type]


def test_a_field_of_the_class_is_something_to_point_at_also_in_a_subclass_that_declares_it_again() -> None:
    class Child(Address):
        city: str
        street: str = ""

    assert repr(Address.city) == "Address.city"
    assert Child("Riga").street == ""
    with pytest.raises(TypeError):
        Child()  # type: ignore[call-arg]


def test_derive_and_asdict() -> None:
    user = User.from_data(DATA).derive(name="Bob")
    assert user.asdict()["home"] == {"city": "Riga", "zip": None}
    assert (user.name, User.from_data(DATA).name) == ("Bob", "Ann")


def test_a_class_that_travels_by_value_is_still_a_record() -> None:
    class Local(faust.Record):
        n: int

    copy = pickle.loads(cloudpickle.dumps((Local, Local(3))))
    assert copy[1].n == 3
    assert copy[0].from_data({"n": 4}).n == 4


@pytest.mark.parametrize("value", [User.from_data(DATA), [Address("Riga")], {"a": Address("Oslo")}, 3, "x", None])
def test_a_value_comes_back_from_a_cell_as_it_was(value: Any) -> None:
    assert Thaw(User)(Freeze(User)(value)) == value
    assert Thaw(None)(Freeze(None)(value)) == value


class Home(Address):
    street: str = ""


def test_records_in_records_are_told_by_their_place_unless_they_are_of_another_class() -> None:
    user = User("Ann", Address("Riga"), [Home("Oslo", None, "Main")])
    data = Freeze(User)(user)
    assert data["home"] == {"city": "Riga", "zip": None}
    assert data["others"][0][NAMESPACE] == {"ns": "Home"}
    assert Thaw(User)(data) == user
    assert User.from_data(
        {**DATA, "home": {"city": "X", "street": "Y", NAMESPACE: {"ns": "shop.Home"}}}
    ).home == Address("X")


def test_a_record_of_the_declared_class_says_nothing_of_its_class_and_another_does() -> None:
    assert NAMESPACE not in Freeze(Address)(Address("Riga"))
    assert Freeze(None)(Address("Riga"))[NAMESPACE] == {"ns": Address.__namespace__}


def test_columns_and_plain_data_become_the_same_records() -> None:
    from potok.records.rows import column_of

    schema = schema_of(User)
    assert schema is not None
    rows = [DATA | {"born": datetime(2000, 1, 2, 3, 4, 5, tzinfo=UTC), "balance": Decimal("1.50")}]
    assert Revive(User)(column_of(rows, schema).column) == Revive(User)([DATA])


def test_what_does_not_fit_is_marked_and_the_rest_goes_on() -> None:
    good, bad = Revive(Address)([{"city": "Riga"}, {"town": "Riga"}])
    assert good == Address("Riga")
    assert isinstance(bad, Unfit)


@pytest.mark.parametrize(
    ("serializer", "value", "data"),
    [
        ("json", Address("Riga"), b'{"city":"Riga","zip":null}'),
        ("json", {"a": [Address("Riga", "1")]}, b'{"a":[{"city":"Riga","zip":"1"}]}'),
        ("json", Decimal("1.5"), b'"1.5"'),
        ("raw", b"\x00", b"\x00"),
        ("json", None, None),
    ],
)
def test_values_are_written(serializer: str, value: Any, data: bytes | None) -> None:
    assert value_encoder(serializer, None)(value) == data


def test_what_json_cannot_hold_is_refused_by_the_call_that_would_send_it() -> None:
    with pytest.raises(TypeError):
        value_encoder("json", None)(object())


class Tree(faust.Record):
    name: str
    children: list[Tree] = []


def test_a_record_may_hold_others_of_its_class() -> None:
    tree = Tree.from_data({"name": "a", "children": [{"name": "b"}]})
    assert tree == Tree("a", [Tree("b")])
    assert Revive(Tree)([{"name": "a", "children": 3}])[0].why
