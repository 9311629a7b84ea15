"""Check operators: the allowed operands and the result type."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from potok.sql.errors import SqlTypeError
from potok.sql.expressions import nodes
from potok.sql.expressions.checker import Checker
from potok.sql.expressions.comparing import check_pattern
from potok.sql.expressions.literals import as_target, coerced, constant, fold, implied, meeting
from potok.sql.expressions.typed import Typed
from potok.sql.expressions.unify import arithmetic_type, as_decimal, common
from potok.sql.syntax import ast
from potok.sql.types import BOOLEAN, BYTES, DATE, DOUBLE, NULL, TIME, TIMESTAMP, VARCHAR, is_number, type_name

_EQUALITY: Final = frozenset({"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_NULL_SAFE: Final = frozenset({"IS DISTINCT FROM", "IS NOT DISTINCT FROM"})


def unary(node: ast.Unary, checker: Checker, _: pa.DataType | None) -> Typed:
    if node.op == "NOT":
        return nodes.Not(BOOLEAN, truth(node.operand, checker))
    if (
        node.op == "-"
        and isinstance(node.operand, ast.Literal)
        and isinstance(node.operand.value, int | Decimal | float)
    ):
        return constant(-node.operand.value, node)
    operand = checker.visit(node.operand)
    if not is_number(operand.type):
        _refuse_sign(node, operand)
    return fold(nodes.Negate(operand.type, operand)) if node.op == "-" else operand


def _refuse_sign(node: ast.Unary, operand: Typed) -> None:
    hint = f"write {node.op}CAST({operand} AS DOUBLE)" if operand.type == VARCHAR else ""
    message = f"{operand} is {type_name(operand.type)}, and '{node.op}' takes a number"
    raise SqlTypeError(message, hint=hint, location=node.operand.at)


def truth(node: ast.Expression, checker: Checker) -> Typed:
    """Check a condition."""
    found = checker.visit(node, BOOLEAN)
    if found.type == NULL:
        return nodes.null(BOOLEAN)
    if found.type != BOOLEAN:
        hint = f"compare it with something: {found} <> 0" if is_number(found.type) else "write a comparison"
        raise SqlTypeError(
            f"{found} is {type_name(found.type)}, but a BOOLEAN is expected", hint=hint, location=node.at
        )
    return found


def binary(node: ast.Binary, checker: Checker, _: pa.DataType | None) -> Typed:
    if node.op in ("AND", "OR"):
        return nodes.Logic(BOOLEAN, node.op, truth(node.left, checker), truth(node.right, checker))
    left, right = checker.visit(node.left), checker.visit(node.right)
    if node.op in ("+", "-", "*", "/", "%"):
        return _arithmetic(node, left, right)
    return nodes.Compare(BOOLEAN, node.op, *compared(node.op, left, right, node))


def _arithmetic(node: ast.Binary, left: Typed, right: Typed) -> Typed:
    if node.op == "+" and left.type == VARCHAR and right.type == VARCHAR:
        return fold(nodes.Arithmetic(VARCHAR, "+", left, right))
    if not is_number(left.type) or not is_number(right.type):
        names = f"{type_name(left.type)} and {type_name(right.type)}"
        raise SqlTypeError(
            f"'{node.op}' does not take {names}", hint=_arithmetic_hint(node.op, left, right), location=node.at
        )
    result = arithmetic_type(node.op, left.type, right.type)
    if pa.types.is_decimal(result):
        left, right = (implied(part, as_decimal(part.type), node) for part in (left, right))
    else:
        left, right = (_number_as(part, result) for part in (left, right))
    return fold(nodes.Arithmetic(result, node.op, left, right))


def _arithmetic_hint(op: str, left: Typed, right: Typed) -> str:
    wrong = right if is_number(left.type) or left.type == VARCHAR else left
    if NULL in (left.type, right.type):
        return "write CAST(NULL AS ...) with the type of a number"
    if op == "+" and VARCHAR in (left.type, right.type):
        other = right if left.type == VARCHAR else left
        return f"write CAST({other} AS VARCHAR) to append it as text"
    if {left.type, right.type} & {DATE, TIME, TIMESTAMP}:
        return "DATEADD, TIMEADD and TIMESTAMPADD add to times: TIMESTAMPADD(HOURS, 1, at)"
    other = left if left.type == VARCHAR else wrong
    return f"write CAST({other} AS DOUBLE)" if other.type == VARCHAR else ""


def _number_as(part: Typed, to: pa.DataType) -> Typed:
    return part if part.type == to else fold(nodes.CastTo(to, part, contains=False))


def compared(op: str, left: Typed, right: Typed, node: ast.Node) -> tuple[Typed, Typed]:
    """Return both sides with comparable types."""
    if NULL in (left.type, right.type):
        return _compared_to_null(op, left, right, node)
    if is_number(left.type) and is_number(right.type):
        return _numbers(left, right)
    target = _comparison_type(op, left.type, right.type)
    if target is None:
        hint = _comparison_hint(op, left, right)
        names = f"{left} ({type_name(left.type)}) to {right} ({type_name(right.type)})"
        raise SqlTypeError(f"cannot compare {names} with {op}", hint=hint, location=node.at)
    return _cast_for_comparison(left, target, node), _cast_for_comparison(right, target, node)


def _compared_to_null(op: str, left: Typed, right: Typed, node: ast.Node) -> tuple[Typed, Typed]:
    if op in _NULL_SAFE:
        target = common([left.type, right.type])
        if target == NULL:
            target = BOOLEAN
        return implied(left, target, node), implied(right, target, node)
    other = right if left.type == NULL else left
    test = f"{other} IS {'NOT ' * (op == '<>')}NULL"
    raise SqlTypeError("a comparison with NULL is never true", hint=f"write {test}", location=node.at)


def _numbers(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    if DOUBLE in (left.type, right.type):
        return _number_as(left, DOUBLE), _number_as(right, DOUBLE)
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return _number_as(left, as_decimal(left.type)), _number_as(right, as_decimal(right.type))
    target = arithmetic_type("+", left.type, right.type)
    return _number_as(left, target), _number_as(right, target)


def _comparison_type(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    pair = {left, right}
    for time_type, others in ((TIMESTAMP, {DATE, VARCHAR}), (DATE, {VARCHAR}), (TIME, {VARCHAR})):
        if time_type in pair and pair <= {time_type, *others}:
            return time_type
    if pair in ({VARCHAR}, {BYTES}):
        return left
    same = common([left, right])
    if op in _EQUALITY and same is not None and (same == BOOLEAN or pa.types.is_nested(same)):
        return same
    return None


def _comparison_hint(op: str, left: Typed, right: Typed) -> str:
    if left.type == right.type or common([left.type, right.type]) is not None:
        return f"{type_name(left.type)} has no order: only = and <> compare it" if op not in _EQUALITY else ""
    for text, other in ((left, right), (right, left)):
        if text.type == VARCHAR and (is_number(other.type) or other.type == BOOLEAN):
            return f"write CAST({text} AS {type_name(other.type)})"
    return ""


def _cast_for_comparison(part: Typed, to: pa.DataType, node: ast.Node) -> Typed:
    if part.type == to:
        return part
    if isinstance(part, nodes.Constant):
        try:
            found = coerced(part, to)
        except ValueError as error:
            raise SqlTypeError(str(error), location=node.at) from None
        if found is not None:
            return found
    return nodes.CastTo(to, part, contains=False)


def is_null(node: ast.IsNull, checker: Checker, _: pa.DataType | None) -> Typed:
    return nodes.NullTest(BOOLEAN, checker.visit(node.operand), node.negated)


def between(node: ast.Between, checker: Checker, _: pa.DataType | None) -> Typed:
    """Cast the operand to the type of the bounds; the second bound may need a wider type than the first."""
    operand, low, high = (checker.visit(part) for part in (node.operand, node.low, node.high))
    operand, low = compared(">=", operand, low, node.low)
    wider, high = compared("<=", operand, high, node.high)
    if wider.type != operand.type:
        wider, low = compared(">=", wider, low, node.low)
    return nodes.Ranged(BOOLEAN, wider, low, high, node.negated)


def in_list(node: ast.In, checker: Checker, _: pa.DataType | None) -> Typed:
    operand, *items = unified((node.operand, *node.items), checker, lax=True)
    return nodes.Listed(BOOLEAN, operand, tuple(items), node.negated)


def like(node: ast.Like, checker: Checker, _: pa.DataType | None) -> Typed:
    operand, pattern = (_text(part, checker) for part in (node.operand, node.pattern))
    if len(node.escape) > 1:
        raise SqlTypeError(f"ESCAPE takes one character, not '{node.escape}'", location=node.at)
    if isinstance(pattern, nodes.Constant) and pattern.value is not None:
        try:
            check_pattern(pattern.value, node.escape)
        except ValueError as error:
            hint = "write it twice for itself" if "escape" in str(error) else "write a shorter one"
            raise SqlTypeError(str(error), hint=hint, location=node.pattern.at) from None
    return nodes.Matches(BOOLEAN, operand, pattern, node.escape, node.negated)


def _text(node: ast.Expression, checker: Checker) -> Typed:
    found = checker.visit(node)
    if found.type == NULL:
        return nodes.null(VARCHAR)
    if found.type != VARCHAR:
        message = f"{found} is {type_name(found.type)}, and LIKE takes VARCHAR"
        raise SqlTypeError(message, hint=f"write CAST({found} AS VARCHAR)", location=node.at)
    return found


def unified(
    parts: Sequence[ast.Expression], checker: Checker, *, lax: bool = False, wanted: pa.DataType | None = None
) -> list[Typed]:
    """Cast expressions to their common type, which is NULL if they all are. With `lax`, literals take the type of the
    other expressions."""
    found = [checker.visit(part, wanted) for part in parts]
    target: pa.DataType = NULL
    for expression, part in zip(found, parts, strict=True):
        both = meeting(target, expression) if lax else common([target, expression.type])
        if both is None:
            names = f"{expression} is {type_name(expression.type)}, and those before it are {type_name(target)}"
            raise SqlTypeError(names, hint=f"write CAST({expression} AS {type_name(target)})", location=part.at)
        target = both
    cast = as_target if lax else implied
    return [cast(expression, target, part) for expression, part in zip(found, parts, strict=True)]
