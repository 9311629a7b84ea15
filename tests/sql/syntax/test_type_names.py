"""Types as they are written become Arrow types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from potok.sql import types
from potok.sql.errors import SqlError
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.syntax.type_names import resolve

CUSTOM = {"MONEY": types.decimal(10, 2), "address": types.struct([("CITY", types.VARCHAR)])}


def written(type_: str) -> ast.TypeName:
    cast = parse_expression(f"CAST(a AS {type_})")
    assert isinstance(cast, ast.Cast)
    return cast.type


@pytest.mark.parametrize(
    ("type_", "arrow"),
    [
        ("boolean", types.BOOLEAN),
        ("int", types.INT),
        ("INTEGER", types.INT),
        ("bigint", types.BIGINT),
        ("double", types.DOUBLE),
        ("varchar", types.VARCHAR),
        ("string", types.VARCHAR),
        ("varchar(20)", types.VARCHAR),
        ("bytes", types.BYTES),
        ("date", types.DATE),
        ("time", types.TIME),
        ("timestamp", types.TIMESTAMP),
        ("decimal(4, 2)", types.decimal(4, 2)),
        ("decimal(38, 38)", types.decimal(38, 38)),
        ("array<int>", types.array(types.INT)),
        ("int array", types.array(types.INT)),
        ("map<varchar, array<double>>", types.map_of(types.VARCHAR, types.array(types.DOUBLE))),
        ("struct<a int, `b c` money>", types.struct([("A", types.INT), ("b c", types.decimal(10, 2))])),
        ("money", types.decimal(10, 2)),
        ("`address`", CUSTOM["address"]),
    ],
)
def test_a_type_resolves(type_: str, arrow: pa.DataType) -> None:
    assert resolve(written(type_), CUSTOM) == arrow


@pytest.mark.parametrize(
    ("type_", "message", "hint"),
    [
        ("varchr", 'there is no type "VARCHR"', "did you mean VARCHAR?"),
        ("mony", 'there is no type "MONY"', "did you mean MONEY?"),
        ("zzz", 'there is no type "ZZZ"', "CREATE TYPE makes types of your own"),
        ("array<txet>", 'there is no type "TXET"', ""),
        ("decimal", "DECIMAL needs a precision and a scale", ""),
        ("decimal(4)", "DECIMAL needs a precision and a scale", ""),
        ("decimal(39, 0)", "there is no DECIMAL(39, 0)", ""),
        ("decimal(4, 5)", "there is no DECIMAL(4, 5)", ""),
        ("decimal(0, 0)", "there is no DECIMAL(0, 0)", ""),
        ("struct<>", "a STRUCT needs at least one field", ""),
        ("struct<a int, A int>", 'the STRUCT has two fields "A"', ""),
        ("`ARRAY`", 'there is no type "ARRAY"', ""),
    ],
)
def test_an_unknown_type_is_reported(type_: str, message: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        resolve(written(type_), CUSTOM)
    assert caught.value.message == message
    assert hint in caught.value.hint
    assert caught.value.location is not None
