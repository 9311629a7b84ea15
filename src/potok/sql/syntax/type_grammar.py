"""Parse types: `VARCHAR`, `DECIMAL(4, 2)`, `ARRAY<INT>`, `MAP<K, V>`, `STRUCT<a INT>`, and custom types."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.cursor import Cursor
from potok.sql.syntax.words import CONSTRUCTORS


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
                raise cursor.mistake("arrays nested this deep cannot be used")
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
        cursor.expect_symbol(",", hint="a MAP has a type of keys and a type of values: MAP<VARCHAR, INT>")
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
