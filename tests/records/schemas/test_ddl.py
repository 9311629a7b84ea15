from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.schemas.ddl import parse_ddl
from potok.records.schemas.schema import NO_DEFAULT, Field, Schema

NAMES = st.text(min_size=1, max_size=4) | st.sampled_from(["default", "not", "null", "array", "a b", "`", "json"])


def fields(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[list[Field]]:
    one = st.builds(Field, NAMES, inner, st.booleans(), st.just(NO_DEFAULT))
    return st.lists(one, max_size=4, unique_by=lambda field: field.name)


SCALARS = st.sampled_from(
    [
        *("string", "bigint", "int", "smallint", "tinyint", "double", "float", "boolean", "binary", "date"),
        *("timestamp", "timestamp_ntz", "decimal(10,2)", "decimal(38,0)"),
    ]
).map(parse_ddl)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(Schema.list_of, inner, nullable=st.booleans()),
        st.builds(Schema.map_of, st.just(parse_ddl("string")), inner, nullable=st.booleans()),
        fields(inner).map(Schema.struct),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_a_schema_reads_back_from_its_text(schema: Schema) -> None:
    assert parse_ddl(schema.ddl()) == schema


def test_the_types_of_the_handbook_are_read() -> None:
    text = (
        "order_id string, amount double, tags array<string>, address struct<city:string, zip: int not null>, "
        "m map<string,int>, d decimal(10,2), ts timestamp, day date, b binary, n bigint not null"
    )
    schema = parse_ddl(text)
    assert schema.ddl() == text.replace("city:string", "city: string").replace("string,int", "string, int")
    assert [field.required for field in schema.fields] == [False] * 9 + [True]


def test_case_synonyms_and_comments_do_not_matter() -> None:
    assert parse_ddl("ID VARCHAR(20) NOT NULL COMMENT 'the id', N Long, X NUMERIC(5)") == parse_ddl(
        "ID string not null, N bigint, X decimal(5,0)"
    )


def test_defaults_become_objects_of_the_fields_type() -> None:
    schema = parse_ddl(
        "a bigint default 5, b string default 'it''s', c double default 1, d date default '2025-01-31', "
        "e boolean default true, f decimal(10,2) default 1.5, g array<string> default json '[\"x\"]', "
        "h bigint default null, i time default '23:59:30.125'"
    )
    assert [field.default for field in schema.fields] == [
        *(5, "it's", 1.0, dt.date(2025, 1, 31), True, Decimal("1.50"), ["x"], None, dt.time(23, 59, 30, 125_000)),
    ]
    assert parse_ddl(schema.ddl()) == schema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the schema is empty"),
        ("a string,", "at character 10 is the end, expected a name"),
        ("a strng", 'there is no type "strng" .at character 3'),
        ("a array<string", "is the end, expected >"),
        ("a string b int", "at character 10 is b int"),
        ("a string, a int", 'field "a" is declared twice'),
        ("a decimal(50,2)", r"decimal\(50,2\) cannot be"),
        ("a map<double,int>", "keys of type double"),
        ("a string; b int", "at character 9 is"),
        ("a int default 'x'", 'default of field "a" is not of its type'),
        ("a int not", "expected null"),
    ],
)
def test_an_error_is_underlined_in_its_line(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_ddl(text)
