from __future__ import annotations

import pickle

import pytest

from potok.errors import SchemaError
from potok.records.formats.registry import format_named


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        *((name, name) for name in ("json", "delimited", "text", "int32", "int64", "float32", "float64", "raw")),
        *(("JSON", "json"), ("csv", "delimited"), ("string", "text"), ("double", "float64"), ("bytes", "raw")),
    ],
)
def test_a_format_is_found_by_its_name(asked: str, name: str) -> None:
    found = format_named(asked)
    assert found.name == name
    assert pickle.loads(pickle.dumps(found)) == found


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SchemaError, match='no format "xml"') as raised:
        format_named("xml")
    assert "json" in raised.value.hint
