"""Check expressions against a scope: resolve types, and make implicit casts explicit."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from potok.sql.errors import SqlTypeError
from potok.sql.expressions import calls, constructors, nodes, operators
from potok.sql.expressions.checker import Checker, Rule
from potok.sql.expressions.conversions.casts import can_cast
from potok.sql.expressions.literals import fold, implied, literal
from potok.sql.expressions.typed import Scope, Typed
from potok.sql.functions.function import TableFunction
from potok.sql.functions.registry import function_named
from potok.sql.syntax import ast, type_names
from potok.sql.types import BOOLEAN, NULL, type_name


def check(expression: ast.Expression, scope: Scope, *, to: pa.DataType | None = None) -> Typed:
    """Check an expression, with an implicit cast to a type if one is given. Raises `SqlError`.

    An untyped NULL has the type NULL unless `to` is given.
    """
    found = Checker(scope, _RULES).visit(expression, to)
    return found if to is None else implied(found, to, expression)


def check_table_function(call: ast.Call, scope: Scope) -> nodes.FunctionCall:
    """Check a call of a table function, which returns arrays."""
    function = function_named(call.name)
    if not isinstance(function, TableFunction):
        raise SqlTypeError(f"{call.name} is not a table function", location=call.at)
    return calls.resolved(call, function, Checker(scope, _RULES))


def _name(node: ast.Name, checker: Checker, _: pa.DataType | None) -> Typed:
    if not node.source and node.name in checker.parameters:
        return nodes.Parameter(checker.parameters[node.name], node.name)
    return checker.scope.column(node)


def _literal(node: ast.Literal, _: Checker, __: pa.DataType | None) -> Typed:
    return literal(node)


def _case(node: ast.Case, checker: Checker, wanted: pa.DataType | None) -> Typed:
    conditions = [_condition(node, when, checker) for when, _ in node.whens]
    results = [result for _, result in node.whens]
    if node.otherwise is not None:
        results.append(node.otherwise)
    found = operators.unified(results, checker, wanted=wanted)
    type_ = found[0].type
    if type_ == NULL:
        if wanted is None:
            hint = "write CAST(NULL AS ...) in one of them"
            raise SqlTypeError("all results of the CASE are NULL, it has no type", hint=hint, location=node.at)
        return nodes.null(wanted)
    otherwise = found[len(conditions)] if node.otherwise is not None else nodes.null(type_)
    return nodes.Choice(type_, tuple(zip(conditions, found, strict=False)), otherwise)


def _condition(node: ast.Case, when: ast.Expression, checker: Checker) -> Typed:
    if node.operand is None:
        return operators.truth(when, checker)
    left, right = checker.visit(node.operand), checker.visit(when)
    return nodes.Compare(BOOLEAN, "=", *operators.compared("=", left, right, when))


def _cast(node: ast.Cast, checker: Checker, _: pa.DataType | None) -> Typed:
    to = type_names.resolve(node.type, checker.scope.custom_types)
    operand = checker.visit(node.operand, to)
    if operand.type == to:
        return operand
    if operand.type == NULL:
        return nodes.null(to)
    if not can_cast(operand.type, to):
        message = f"{operand} is {type_name(operand.type)}, which cannot be cast to {type_name(to)}"
        raise SqlTypeError(message, hint=_cast_hint(operand.type, to), location=node.at)
    return fold(nodes.CastTo(to, operand))


def _cast_hint(from_: pa.DataType, to: pa.DataType) -> str:
    if pa.types.is_binary(from_):
        return "FROM_BYTES(bytes, 'utf8') makes text of BYTES"
    if from_ == BOOLEAN:
        return "write CASE WHEN x THEN 1 ELSE 0 END"
    if pa.types.is_timestamp(to):
        return "FROM_UNIXTIME(ms) makes a TIMESTAMP of milliseconds"
    if pa.types.is_timestamp(from_):
        return "UNIX_TIMESTAMP(at) gives milliseconds"
    if to == BOOLEAN:
        return "write a comparison"
    return f"take what is {type_name(to)} out of it" if pa.types.is_nested(from_) else "choose another type"


_RULES: Final[dict[type[ast.Node], Rule]] = {
    ast.Name: _name,
    ast.Literal: _literal,
    ast.Unary: operators.unary,
    ast.Binary: operators.binary,
    ast.IsNull: operators.is_null,
    ast.Between: operators.between,
    ast.In: operators.in_list,
    ast.Like: operators.like,
    ast.Case: _case,
    ast.Cast: _cast,
    ast.Subscript: constructors.subscript,
    ast.FieldOf: constructors.field_of,
    ast.ArrayOf: constructors.array_of,
    ast.MapOf: constructors.map_of,
    ast.StructOf: constructors.struct_of,
    ast.Lambda: calls.lambda_alone,
    ast.AnyRow: calls.any_row,
    ast.Call: calls.call,
}
