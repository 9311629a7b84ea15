from __future__ import annotations

import dataclasses

import pytest

from potok import Record
from potok.records.schemas.declared_schema import declared_schema


class Address(Record):
    city: str


class Order(Record):
    order_id: str
    address: Address
    amount: float = 0.0


class Paid(Order, serializer="json"):
    by: str | None = None


def test_a_record_is_a_dataclass_without_the_decorator() -> None:
    order = Order("o-1", Address("Riga"), amount=5.0)
    assert order == Order("o-1", Address("Riga"), 5.0)
    assert repr(order) == "Order(order_id='o-1', address=Address(city='Riga'), amount=5.0)"
    assert dataclasses.is_dataclass(Order)


def test_asdict_reaches_nested_records() -> None:
    assert Order("o-1", Address("Riga")).asdict() == {"order_id": "o-1", "address": {"city": "Riga"}, "amount": 0.0}


def test_a_record_of_a_record_has_the_fields_of_both() -> None:
    assert Paid("o-1", Address("Riga"), 5.0, by="card").asdict()["by"] == "card"
    schema = declared_schema(Paid)
    assert schema is not None
    assert schema.names == ("order_id", "address", "amount", "by")


def test_an_unknown_class_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="unknown class keywords: colour"):

        class Odd(Record, colour="red"):
            pass
