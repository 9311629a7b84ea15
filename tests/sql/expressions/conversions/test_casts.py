"""Which types can be cast to which."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from potok.sql.expressions.conversions.casts import can_cast, cast_column, implicit
from potok.sql.functions.function import Context
from potok.sql.types import type_name
from sql.columns import type_of

SAMPLES = {
    "BOOLEAN": True,
    "INT": 1,
    "BIGINT": 1,
    "DOUBLE": 1.5,
    "DECIMAL(4, 2)": Decimal("1.50"),
    "VARCHAR": "1",
    "BYTES": b"x",
    "DATE": date(2020, 1, 1),
    "TIME": time(10),
    "TIMESTAMP": datetime(2020, 1, 1, tzinfo=UTC),
    "ARRAY<INT>": [1],
    "ARRAY<DATE>": [date(2020, 1, 1)],
    "MAP<VARCHAR, INT>": [("1", 1)],
    "STRUCT<A INT>": {"A": 1},
}

CASTS = {
    "BOOLEAN": {"VARCHAR"},
    "INT": {"BIGINT", "DOUBLE", "DECIMAL(4, 2)", "VARCHAR"},
    "BIGINT": {"INT", "DOUBLE", "DECIMAL(4, 2)", "VARCHAR"},
    "DOUBLE": {"INT", "BIGINT", "DECIMAL(4, 2)", "VARCHAR"},
    "DECIMAL(4, 2)": {"INT", "BIGINT", "DOUBLE", "VARCHAR"},
    "VARCHAR": {"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(4, 2)", "BYTES", "DATE", "TIME", "TIMESTAMP"},
    "BYTES": set(),
    "DATE": {"VARCHAR", "TIMESTAMP"},
    "TIME": {"VARCHAR"},
    "TIMESTAMP": {"VARCHAR", "DATE", "TIME"},
    "ARRAY<INT>": {"VARCHAR"},
    "ARRAY<DATE>": {"VARCHAR"},
    "MAP<VARCHAR, INT>": {"VARCHAR"},
    "STRUCT<A INT>": {"VARCHAR"},
}


@pytest.mark.parametrize(("from_", "to"), list(itertools.product(SAMPLES, SAMPLES)))
def test_a_cast_is_there_exactly_where_it_is_said_to_be(from_: str, to: str) -> None:
    wanted = from_ == to or to in CASTS[from_]
    assert can_cast(type_of(from_), type_of(to)) == wanted
    column = pa.array([SAMPLES[from_], None], type_of(from_))
    if wanted:
        found = cast_column(column, type_of(to), Context())
        assert found.type == type_of(to)
        assert found[1].as_py() is None
    else:
        with pytest.raises(TypeError, match=type_name(type_of(from_)).split("(")[0]):
            cast_column(column, type_of(to), Context())


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        ("INT", "BIGINT"),
        ("INT", "DOUBLE"),
        ("INT", "DECIMAL(12, 2)"),
        ("DECIMAL(4, 2)", "DOUBLE"),
        ("DECIMAL(4, 2)", "DECIMAL(5, 3)"),
        ("ARRAY<INT>", "ARRAY<BIGINT>"),
        ("MAP<VARCHAR, INT>", "MAP<VARCHAR, DOUBLE>"),
        ("STRUCT<A INT>", "STRUCT<A BIGINT, B VARCHAR>"),
    ],
)
def test_a_wider_type_is_taken_without_asking(from_: str, to: str) -> None:
    assert implicit(type_of(from_), type_of(to))
    assert not implicit(type_of(to), type_of(from_))


@pytest.mark.parametrize(
    ("from_", "to"),
    [("INT", "VARCHAR"), ("VARCHAR", "INT"), ("VARCHAR", "TIMESTAMP"), ("DATE", "TIMESTAMP"), ("BOOLEAN", "INT")],
)
def test_another_kind_of_type_is_not_taken_without_asking(from_: str, to: str) -> None:
    assert not implicit(type_of(from_), type_of(to))


@pytest.mark.parametrize(
    ("from_", "to"), [("INT", "DECIMAL(11, 2)"), ("DECIMAL(4, 2)", "DECIMAL(4, 3)"), ("STRUCT<A INT>", "STRUCT<B INT>")]
)
def test_what_might_not_fit_is_not_taken_without_asking(from_: str, to: str) -> None:
    assert not implicit(type_of(from_), type_of(to))


@pytest.mark.parametrize("times", [1, 5])
def test_text_is_parsed_the_same_however_often_it_comes(times: int) -> None:
    column = pa.array(["2020-01-02", None, "soon", " 2020 ", "later"] * times, type_of("VARCHAR"))
    context = Context()
    found = cast_column(column, type_of("DATE"), context)
    assert found.to_pylist() == [date(2020, 1, 2), None, None, date(2020, 1, 1), None] * times
    assert sorted(context.failures) == [row for row in range(5 * times) if row % 5 in (2, 4)]
    assert "'soon' is not a valid DATE" in context.failures[2]
