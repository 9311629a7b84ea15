"""Many records at once are what each of them is alone."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest

import potok.faust as faust
from potok.faust.records.read_all import read_all
from potok.faust.records.values import Revive


class Item(faust.Record):
    sku: str


class Order(faust.Record):
    order_id: str
    amount: float
    items: list  # type: ignore[type-arg]


class Shipped(faust.Record):
    order_id: str
    at: datetime
    count: int | None
    first: Item
    all: list[Item]
    notes: dict[str, Any]


class Odd(faust.Record):
    name: str

    @classmethod
    def from_data(cls, data: Any) -> Any:
        return super().from_data({"name": data["name"].upper()})


ORDER = {"order_id": "o", "amount": 1.5, "items": ["a", [1]]}
SHIPPED = {
    "order_id": "o",
    "at": "2026-01-01T00:00:00",
    "count": None,
    "first": {"sku": "s"},
    "all": [{"sku": "t"}],
    "notes": {"a": [1]},
}


@pytest.mark.parametrize("model", [Order, Shipped])
@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_values_they_are_what_each_is_alone(model: type[faust.Record], seed: int) -> None:
    chance = random.Random(seed)
    whole = ORDER if model is Order else SHIPPED
    rows: list[Any] = []
    for _ in range(chance.randrange(1, 5)):
        row: dict[str, Any] = dict(whole)
        if chance.random() < 0.3:
            row[chance.choice(list(row))] = chance.choice([None, 1, 1.0, True, "x", [], {}, 10**400])
        if chance.random() < 0.1:
            del row[chance.choice(list(row))]
        if chance.random() < 0.1:
            row["other"] = 1
        rows.append(chance.choice([None, 3, "x"]) if chance.random() < 0.05 else row)
    revive = Revive(model)
    assert revive(rows) == [revive._dynamic(row) for row in rows]


def test_what_fits_is_read_at_once_and_whole_numbers_become_floats() -> None:
    made = read_all(Order, [ORDER, {**ORDER, "amount": 3}], 1)
    assert made == [[Order("o", 1.5, ["a", [1]]), Order("o", 3.0, ["a", [1]])]]
    assert type(made[0][1].amount) is float
    assert read_all(Shipped, [SHIPPED], 1) == [[Shipped.from_data(SHIPPED)]]


def test_each_agent_has_objects_of_its_own() -> None:
    for model, data in ((Order, ORDER), (Shipped, SHIPPED)):
        (first,), (second,) = Revive(model).several([data], 2)
        for value in vars(first).values():
            if isinstance(value, list):
                value.append(0)
            elif isinstance(value, dict):
                value["a"].append(0)
        assert second == model.from_data(data)
        assert Revive(model)([data]) == [second]


def test_a_class_that_reads_data_in_its_own_way_is_left_to_it() -> None:
    assert [record.name for record in Revive(Odd)([{"name": "a"}])] == ["A"]


def test_data_of_another_class_is_of_that_class() -> None:
    class Animal(faust.Record):
        name: str

    class Dog(Animal, namespace="dog"):
        name: str

    made = Revive(Animal)([{"name": "a"}, {"name": "b", "__faust": {"ns": "dog"}}])
    assert [type(record) for record in made] == [Animal, Dog]


def test_fields_that_the_class_does_not_have_are_left_out() -> None:
    rows = [{**ORDER, "city": "Omsk"}, {**ORDER, "city": ["Tomsk"], "more": 1}, ORDER]
    found = read_all(Order, rows, 2)
    assert found is not None
    assert [[vars(record) for record in each] for each in found] == [[ORDER] * 3] * 2


@pytest.mark.parametrize("other", [{"order_id": "o", "amount": 1.5}, {**ORDER, "__faust": {"ns": "Odd"}}])
def test_data_without_a_field_or_with_a_class_of_its_own_is_read_alone(other: dict[str, Any]) -> None:
    assert read_all(Order, [ORDER, other], 1) is None
