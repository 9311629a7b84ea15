from __future__ import annotations

import pickle
from dataclasses import dataclass

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.records.value import Value


@dataclass
class Order:
    order_id: str
    amount: float
    note: str | None
    retries: int = 3


def of(declared: object) -> Schema:
    schema = declared_schema(declared)
    assert schema is not None
    return schema


def test_no_declaration_means_dynamic_values() -> None:
    assert declared_schema(None) is None


def test_a_schema_is_itself() -> None:
    schema = of(Order)
    assert declared_schema(schema) is schema


def test_schemas_are_equal_by_content_and_survive_pickling() -> None:
    same = "order_id string not null, amount double not null, note string, retries bigint not null default 3"
    assert of(Order) == of(same)
    assert hash(of(Order)) == hash(of(same))
    assert pickle.loads(pickle.dumps(of(Order))) == of(Order)
    assert of(Order) != of(same.replace("3", "4"))
    assert of("a string") != of("a string not null")


def test_what_is_required_follows_from_the_default_and_from_none() -> None:
    assert [field.required for field in of(Order).fields] == [True, True, False, False]


def test_the_arrow_type_is_nullable_throughout_so_that_columns_of_equal_shape_are_of_equal_type() -> None:
    assert of(Order).arrow == of("order_id string, amount double, note string, retries bigint").arrow


def test_selecting_keeps_the_order_of_the_schema() -> None:
    schema = of(Order)
    assert schema.select(["amount", "order_id"]).names == ("order_id", "amount")
    assert schema.select(None) is schema
    assert of(int).select(["x"]) == of(int)
    with pytest.raises(SchemaError, match='there is no field "price"'):
        schema.select(["price"])


def test_the_python_type_is_what_lambdas_see() -> None:
    assert issubclass(of(Order).python_type(), Order)
    assert of("array<struct<a: int>>").python_type() == list[Value]
    assert of("map<string, array<double>>").python_type() == dict[str, list[float]]
    assert of(pa.int16()).python_type() is int
