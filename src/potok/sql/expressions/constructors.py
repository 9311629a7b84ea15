"""Check constructors of arrays, maps and structs, and access to their elements."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from potok.sql.errors import SqlTypeError, UnknownName, closest
from potok.sql.expressions import nodes
from potok.sql.expressions.checker import Checker
from potok.sql.expressions.literals import implied
from potok.sql.expressions.operators import unified
from potok.sql.expressions.typed import Typed
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, INT, NULL, quoted, type_name


def array_of(node: ast.ArrayOf, checker: Checker, wanted: pa.DataType | None) -> Typed:
    item = wanted.value_type if wanted is not None and pa.types.is_list(wanted) else None
    items = _alike(node.items, checker, item, "an array", "CAST(NULL AS INT)", node)
    type_ = pa.list_(items[0].type if items else item)
    return nodes.MakeArray(type_, tuple(items)) if items else nodes.Constant(type_, ())


def map_of(node: ast.MapOf, checker: Checker, wanted: pa.DataType | None) -> Typed:
    key = item = None
    if wanted is not None and pa.types.is_map(wanted):
        key, item = wanted.key_type, wanted.item_type
    keys = _alike([part for part, _ in node.items], checker, key, "a map", "CAST(NULL AS VARCHAR)", node)
    items = _alike([part for _, part in node.items], checker, item, "a map", "CAST(NULL AS INT)", node)
    if not keys:
        return nodes.Constant(wanted, ())
    type_ = pa.map_(keys[0].type, items[0].type)
    return nodes.MakeMap(type_, tuple(zip(keys, items, strict=True)))


def _alike(
    parts: Sequence[ast.Expression],
    checker: Checker,
    wanted: pa.DataType | None,
    what: str,
    example: str,
    node: ast.Node,
) -> list[Typed]:
    """Return elements of one type: the preferred one if they all fit, else their common type."""
    if wanted is not None:
        found = [checker.visit(part, wanted) for part in parts]
        try:
            return [implied(part, wanted, at) for part, at in zip(found, parts, strict=True)]
        except SqlTypeError:
            pass
    if not parts:
        raise SqlTypeError(f"{what} without elements has no type", hint="write at least one element", location=node.at)
    items = unified(parts, checker, lax=True)
    if items[0].type == NULL:
        hint = f"write the type of one of them: {example}"
        raise SqlTypeError(f"{what} with only NULL has no type", hint=hint, location=node.at)
    return items


def struct_of(node: ast.StructOf, checker: Checker, wanted: pa.DataType | None) -> Typed:
    known = {field.name: field.type for field in wanted} if wanted is not None and pa.types.is_struct(wanted) else {}
    fields: dict[str, Typed] = {}
    for name, part in node.items:
        if name in fields:
            raise SqlTypeError(f"the field {quoted(name)} is given twice", location=part.at)
        value = checker.visit(part, known.get(name))
        if name in known and isinstance(value, nodes.Constant):
            value = implied(value, known[name], part)
        if value.type == NULL:
            hint = f"write CAST(NULL AS ...) with the type of {quoted(name)}"
            raise SqlTypeError(f"the field {quoted(name)} is NULL and has no type", hint=hint, location=part.at)
        fields[name] = value
    type_ = pa.struct([(name, value.type) for name, value in fields.items()])
    return nodes.MakeStruct(type_, tuple(fields.values()))


def subscript(node: ast.Subscript, checker: Checker, _: pa.DataType | None) -> Typed:
    operand = checker.visit(node.operand)
    if pa.types.is_map(operand.type):
        key = implied(checker.visit(node.index), operand.type.key_type, node.index)
        return nodes.Lookup(operand.type.item_type, operand, key)
    if not pa.types.is_list(operand.type):
        is_struct = pa.types.is_struct(operand.type)
        hint = f"fields are taken with ->: {operand}->NAME" if is_struct else "ARRAY and MAP have elements"
        message = f"{operand} is {type_name(operand.type)}, and has no element to take"
        raise SqlTypeError(message, hint=hint, location=node.operand.at)
    index = checker.visit(node.index)
    if index.type == NULL:
        index = nodes.null(INT)
    if index.type not in (INT, BIGINT):
        message = f"{index} is {type_name(index.type)}, and an array is counted in INTEGER"
        raise SqlTypeError(message, hint=f"write CAST({index} AS INT)", location=node.index.at)
    return nodes.Item(operand.type.value_type, operand, index)


def field_of(node: ast.FieldOf, checker: Checker, _: pa.DataType | None) -> Typed:
    operand = checker.visit(node.operand)
    if not pa.types.is_struct(operand.type):
        is_map = pa.types.is_map(operand.type)
        hint = f"write {operand}['{node.field}']" if is_map else "-> must follow a STRUCT"
        raise SqlTypeError(
            f"{operand} is {type_name(operand.type)}, and has no fields", hint=hint, location=node.operand.at
        )
    names = [field.name for field in operand.type]
    if node.field not in names:
        hint = closest(node.field, names) or f"the fields are {', '.join(map(quoted, names))}"
        raise UnknownName(f"there is no field {quoted(node.field)} in {operand}", hint=hint, location=node.at)
    return nodes.Field(operand.type.field(node.field).type, operand, node.field)
