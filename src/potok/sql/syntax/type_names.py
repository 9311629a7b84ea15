"""Resolve parsed types to Arrow types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from potok.sql.errors import SyntaxMistake, TypeMistake, UnknownName, closest
from potok.sql.syntax import ast
from potok.sql.types import MAX_PRECISION, SPELLINGS, array, decimal, map_of, struct

NESTED = ("ARRAY", "MAP", "STRUCT", "DECIMAL")


def resolve(type_: ast.TypeName, custom: Mapping[str, pa.DataType]) -> pa.DataType:
    """Return the Arrow type; `custom` has the types of CREATE TYPE by name."""
    match type_.name:
        case "ARRAY" if type_.arguments:
            return array(resolve(type_.arguments[0], custom))
        case "MAP" if type_.arguments:
            key, value = type_.arguments
            return map_of(resolve(key, custom), resolve(value, custom))
        case "STRUCT":
            return _struct(type_, custom)
        case "DECIMAL":
            return _decimal(type_)
        case name if name in SPELLINGS:
            return SPELLINGS[name]
        case name if name in custom:
            return custom[name]
    hint = closest(type_.name, (*SPELLINGS, *NESTED, *custom))
    raise UnknownName(
        f'there is no type "{type_.name}"', hint=hint or "CREATE TYPE makes types of your own", location=type_.at
    )


def _struct(type_: ast.TypeName, custom: Mapping[str, pa.DataType]) -> pa.DataType:
    if not type_.fields:
        raise TypeMistake("a STRUCT needs at least one field", hint="write STRUCT<name VARCHAR>", location=type_.at)
    names = [name for name, _ in type_.fields]
    for name in names:
        if names.count(name) > 1:
            raise TypeMistake(f'the STRUCT has two fields "{name}"', location=type_.at)
    return struct([(name, resolve(field, custom)) for name, field in type_.fields])


def _decimal(type_: ast.TypeName) -> pa.DataType:
    if len(type_.numbers) != 2:
        raise SyntaxMistake(
            "DECIMAL needs a precision and a scale",
            hint="write DECIMAL(10, 2): 10 digits, 2 of them after the point",
            location=type_.at,
        )
    precision, scale = type_.numbers
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise TypeMistake(
            f"there is no DECIMAL({precision}, {scale})",
            hint=f"1 to {MAX_PRECISION} digits, of which all may stand after the point",
            location=type_.at,
        )
    return decimal(precision, scale)
