from __future__ import annotations

import pickle

import pytest

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema


@pytest.mark.parametrize(
    "name", ["sql_json;wrap=false", "sql_delimited;delimiter=|", "sql_delimited;delimiter=;", "avro;wrap=true"]
)
def test_a_format_keeps_its_options_in_its_name(name: str) -> None:
    found = format_named(name)
    assert found.name == name
    assert pickle.loads(pickle.dumps(found)) == found
    assert format_named(found.name) == found


def test_options_can_follow_each_other_and_a_delimiter_can_be_a_semicolon() -> None:
    encoded = format_named("sql_delimited;delimiter=;;wrap=true").encode(
        [{"A": 1, "B": 2}], declared_schema("A int, B int")
    )
    assert encoded.values.to_pylist() == [b"1;2"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sql_json;wrap=maybe", "cannot have wrap=maybe"),
        ("sql_json;colour=red", 'has no option "colour"'),
        ("int32;delimiter=x", 'has no option "delimiter"'),
        ("sql_json;wrap", "is not an option"),
        ("xml;wrap=false", 'no format "xml"'),
        ("sql_delimited;delimiter=ab", "cannot be a delimiter"),
        ('sql_delimited;delimiter="', "cannot be a delimiter"),
    ],
)
def test_an_invalid_option_is_refused(name: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as raised:
        format_named(name)
    assert raised.value.hint
