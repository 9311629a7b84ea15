"""Resolve parsed types to Arrow types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from potok.sql.errors import SqlSyntaxError, SqlTypeError, UnknownName, closest
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.words import CONSTRUCTORS
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
        raise SqlTypeError("a STRUCT needs at least one field", hint="write STRUCT<name VARCHAR>", location=type_.at)
    names = [name for name, _ in type_.fields]
    for name in names:
        if names.count(name) > 1:
            raise SqlTypeError(f'the STRUCT has two fields "{name}"', location=type_.at)
    return struct([(name, resolve(field, custom)) for name, field in type_.fields])


def _decimal(type_: ast.TypeName) -> pa.DataType:
    if len(type_.numbers) != 2:
        raise SqlSyntaxError(
            "DECIMAL needs a precision and a scale",
            hint="write DECIMAL(10, 2): 10 digits, 2 of them after the point",
            location=type_.at,
        )
    precision, scale = type_.numbers
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise SqlTypeError(
            f"there is no DECIMAL({precision}, {scale})",
            hint=f"1 to {MAX_PRECISION} digits, all of which may follow the point",
            location=type_.at,
        )
    return decimal(precision, scale)


def type_name(cursor: Cursor) -> ast.TypeName:
    first = cursor.peek()
    with cursor.deeper():
        if cursor.peek().value in CONSTRUCTORS and cursor.at(cursor.peek().value):
            found = _nested(cursor)
        else:
            name = cursor.name("a type")
            found = ast.TypeName(name, numbers=_numbers(cursor), at=cursor.since(first))
        arrays = 0
        while cursor.at("ARRAY") and not cursor.at_symbol("<", ahead=1):
            cursor.take()
            arrays += 1
            if arrays > 10:
                raise cursor.error("arrays nested this deep cannot be used")
            found = ast.TypeName("ARRAY", (found,), at=cursor.since(first))
    return found


def _nested(cursor: Cursor) -> ast.TypeName:
    first = cursor.take()
    if first.value == "STRUCT" and cursor.accept_symbol("<>"):
        return ast.TypeName("STRUCT", at=cursor.since(first))
    cursor.expect_symbol("<", hint=f"write {_example(first.value)}")
    if first.value == "STRUCT":
        fields = [] if cursor.at_symbol(">") else [_field(cursor)]
        while cursor.another(fields):
            fields.append(_field(cursor))
        _close(cursor)
        return ast.TypeName("STRUCT", fields=tuple(fields), at=cursor.since(first))
    arguments = [type_name(cursor)]
    if first.value == "MAP":
        cursor.expect_symbol(",", hint="a MAP has a key type and a value type: MAP<VARCHAR, INT>")
        arguments.append(type_name(cursor))
    _close(cursor)
    return ast.TypeName(first.value, tuple(arguments), at=cursor.since(first))


def _close(cursor: Cursor) -> None:
    cursor.expect_symbol(">", hint="the type is not closed" if cursor.done else "")


def _field(cursor: Cursor) -> tuple[str, ast.TypeName]:
    name = cursor.name("the name of a field")
    return name, type_name(cursor)


def _numbers(cursor: Cursor) -> tuple[int, ...]:
    if not cursor.accept_symbol("("):
        return ()
    if cursor.accept("STRING"):
        # VARCHAR(STRING) is how ksqlDB itself writes the type.
        cursor.expect_symbol(")")
        return ()
    numbers = [_number(cursor)]
    while cursor.accept_symbol(","):
        numbers.append(_number(cursor))
    cursor.expect_symbol(")")
    return tuple(numbers)


def _number(cursor: Cursor) -> int:
    return cursor.integer("a whole number")


def _example(name: str) -> str:
    return {"ARRAY": "ARRAY<INT>", "MAP": "MAP<VARCHAR, INT>", "STRUCT": "STRUCT<name VARCHAR>"}[name]
