from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict

import cloudpickle
import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.schemas.declared_schema import declared_schema

UserId = NewType("UserId", str)


@dataclass
class Address:
    city: str
    zip: int | None = None


@dataclass
class Everything:
    user: UserId
    n: int
    amount: float
    paid: bool
    raw: bytes
    price: Decimal
    day: dt.date
    at: dt.datetime
    tags: list[str]
    notes: list[str | None]
    counts: dict[str, int]
    address: Address
    small: Annotated[int, pa.int32()]
    exact: Annotated[Decimal, pa.decimal128(10, 2)]
    state: Literal["NEW", "PAID"]
    pair: tuple[int, ...]
    maybe: Optional[Address]  # noqa: UP045 - the old spelling is a spelling too
    retries: int = 3
    labels: list[str] = field(default_factory=list)
    comment: str | None = None
    hidden: int = field(default=0, init=False)


class Click(TypedDict):
    page: str
    at: int | None
    referrer: NotRequired[str]


@dataclass
class Node:
    next: Node | None


@dataclass
class Bare:
    items: list  # type: ignore[type-arg]


def ddl(declared: object) -> str:
    schema = declared_schema(declared)
    assert schema is not None
    return schema.ddl()


def test_every_kind_of_field_has_its_type() -> None:
    assert ddl(Everything).split(", ") == [
        "user string not null",
        "n bigint not null",
        "amount double not null",
        "paid boolean not null",
        "raw binary not null",
        "price decimal(38,18) not null",
        "day date not null",
        "at timestamp not null",
        "tags array<string not null> not null",
        "notes array<string> not null",
        "counts map<string",
        "bigint not null> not null",
        "address struct<city: string not null",
        "zip: bigint> not null",
        "small int not null",
        "exact decimal(10,2) not null",
        "state string not null",
        "pair array<bigint not null> not null",
        "maybe struct<city: string not null",
        "zip: bigint>",
        "retries bigint not null default 3",
        "labels array<string not null> not null default json '[]'",
        "comment string",
    ]


def test_a_typed_dict_may_leave_out_what_is_not_required() -> None:
    assert ddl(Click) == "page string not null, at bigint, referrer string"


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        *((str, "string"), (int, "bigint"), (float, "double"), (bool, "boolean"), (bytes, "binary"), (dt.date, "date")),
        (dt.time, "time"),
        *((dt.datetime, "timestamp"), (Decimal, "decimal(38,18)"), (list[int], "array<bigint not null>")),
        *((str | None, "string"), (dict[int, list[str]], "map<bigint, array<string not null> not null>")),
    ],
)
def test_a_plain_type_is_the_type_of_the_whole_value(declared: object, text: str) -> None:
    assert ddl(declared) == text


@pytest.mark.parametrize("declared", [list, dict, Any, list[Any], object])
def test_a_type_that_says_nothing_is_refused_with_a_hint(declared: object) -> None:
    with pytest.raises(SchemaError) as raised:
        declared_schema(declared)
    assert raised.value.hint.startswith("declare its items, for example list[str] or dict[str, int]; ")


def test_the_field_that_is_wrong_is_named() -> None:
    with pytest.raises(SchemaError, match='field "items" of Bare cannot be of type list'):
        declared_schema(Bare)


def test_a_type_that_contains_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match="Node contains itself"):
        declared_schema(Node)


def test_unions_and_unknown_types_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"int \| str"):
        declared_schema(int | str)
    with pytest.raises(SchemaError, match="complex"):
        declared_schema(complex)
    with pytest.raises(SchemaError, match="keys of type double"):
        declared_schema(dict[float, str])


def test_annotations_that_cannot_be_resolved_are_an_error_with_a_hint() -> None:
    @dataclass
    class Local:
        x: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match="annotations of Local cannot be resolved"):
        declared_schema(Local)


def test_a_default_of_the_wrong_type_is_found_when_the_schema_is_made() -> None:
    @dataclass
    class Wrong:
        n: int = "x"  # type: ignore[assignment]

    with pytest.raises(SchemaError, match='default of field "n" is not of its type: expected bigint, got string "x"'):
        declared_schema(Wrong)


def test_a_class_that_was_pickled_by_value_and_read_back_keeps_its_fields() -> None:
    @dataclass
    class Order:
        user: str
        tags: list[str] = field(default_factory=list)
        retries: int = 3

    before = declared_schema(Order)
    assert cloudpickle.loads(cloudpickle.dumps(Order)) is Order  # and its fields are set anew
    assert declared_schema(Order) == before
