"""Record classes: what they accept, what they refuse, and how they travel."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import cloudpickle
import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.faust.records.model import NAMESPACE
from potok.faust.records.values import Freeze, Revive, Thaw, schema_of, value_encoder
from potok.operators.agents.context import Unfit


class Address(faust.Record):
    city: str
    zip: str | None = None


class User(faust.Record, coerce=False):
    name: str
    home: Address
    others: list[Address] = []
    born: datetime | None = None
    balance: Decimal = Decimal(0)


class Payer(faust.Record):
    name: str
    home: Address
    others: list[Address] = []
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


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(faust.ValidationError) as caught:
        User.from_data({"home": 3, "balance": "much"})
    for text in ('field "name": is missing', 'field "home"', "'much' is not a decimal"):
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


def test_nested_records_need_no_namespace_unless_their_class_differs() -> None:
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

    assert schema_of(User) is None, "numbers would be read as milliseconds"
    schema = schema_of(Payer)
    assert schema is not None
    data = {name: DATA[name] for name in ("name", "home", "others", "balance")}
    rows = [data | {"balance": Decimal("1.50")}]
    assert Revive(Payer)(column_of(rows, schema).column) == Revive(Payer)([data])


def test_values_that_do_not_fit_are_marked_and_the_others_converted() -> None:
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


class Instant(faust.Record):
    at: datetime


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Paint(faust.Record):
    name: str
    color: Color
    others: list[Color]


PAINT = {"name": "p", "color": "red", "others": ["blue", "red"]}


def test_a_field_may_be_an_enum_in_topics_and_in_tables() -> None:
    app = faust.App("paints")
    paints = app.topic("paints", value_type=Paint)
    latest = app.Table("latest", value_type=Paint)

    @app.agent(paints)
    async def keep(stream: Any) -> None:
        async for paint in stream:
            assert paint.color is Color.RED
            if paint.name in latest:
                assert latest[paint.name] == paint
            latest[paint.name] = paint

    with InProcess(app) as driver:
        for _ in range(2):
            driver.send("paints", PAINT)
            driver.run()
        driver.send("paints", {**PAINT, "color": "green"})
        driver.run()
        assert driver.table("latest").all() == {"p": PAINT}
        assert driver.reasons() == [("paints", "decode")]


def test_seconds_are_instants_in_every_way_of_reading() -> None:
    class Seen(faust.Record):
        at: datetime

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    seconds = int(moment.timestamp())
    for reported in (seconds, float(seconds), seconds * 1000, "2026-01-01T00:00:00", "2026-01-01T01:00:00+01:00"):
        assert Seen.from_data({"at": reported}).at == moment
    app = faust.App("seen")
    seen = app.topic("seen", value_type=Seen)
    table = app.Table("table")

    @app.agent(seen)
    async def keep(stream: Any) -> None:
        async for each in stream:
            table["at"] = each.at

    with InProcess(app) as driver:
        driver.send("seen", {"at": seconds})
        driver.run()
        assert driver.table("table").all() == {"at": moment}
        assert driver.reasons() == []


def test_required_parameters_may_follow_optional_ones() -> None:
    class Versioned(faust.Record, abstract=True):
        version: int = 1

    class Note(Versioned):
        text: str

    assert Note(text="a").asdict() == {"version": 1, "text": "a"}
    assert Note.from_data({"text": "b", "version": 2}).version == 2
    with pytest.raises(TypeError):
        Note()  # type: ignore[call-arg]


def test_coerce_holds_for_what_is_given_in_python_too() -> None:
    class Point(faust.Record, coerce=True):
        x: int
        at: datetime

    made = Point(x="5", at="2020-01-01T00:00:00")  # type: ignore[arg-type]
    assert (made.x, made.at) == (5, datetime(2020, 1, 1, tzinfo=UTC))
    assert not Point(x="five", at="2020-01-01").is_valid()  # type: ignore[arg-type]


def test_records_can_be_put_in_order_and_in_sets() -> None:
    class Point(faust.Record):
        x: int
        y: int = 0

    assert sorted([Point(2), Point(1, 3), Point(1)]) == [Point(1), Point(1, 3), Point(2)]
    assert {Point(1), Point(1, 0)} == {Point(1)}
    assert Point(1) <= Point(1) < Point(2) and Point(2) > Point(1) >= Point(1)


def test_an_instant_is_one_in_the_dsl_too() -> None:
    app = faust.App("seen")
    seen = app.topic("seen", value_type=Instant)
    app.stream(seen).map_values(lambda value: value.at.year).to("years")
    with InProcess(app) as driver:
        driver.send("seen", {"at": "2026-01-01T00:00:00"})
        driver.run()
        assert [record.value for record in driver.read("years")] == [2026]
