"""Timestamps as strings: `WHERE ROWTIME >= '2024-01-01T00:00'` compares milliseconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.sql.analysis.scope import ROWTIME, WINDOW_BOUNDS
from potok.sql.errors import TypeMistake
from potok.sql.expressions.parse_text import parser
from potok.sql.syntax import ast
from potok.sql.syntax.walk import rewritten
from potok.sql.types import TIMESTAMP

_TIMES = (ROWTIME, *WINDOW_BOUNDS)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


def with_instants(query: ast.Select) -> ast.Select:
    """Replace strings that WHERE compares with ROWTIME or window bounds by milliseconds."""
    return query if query.where is None else replace(query, where=rewritten(query.where, _changed))


def _changed(node: Any) -> Any:
    match node:
        case ast.Binary(op, left, right) if op in _COMPARED and (_is_time(left) or _is_time(right)):
            return replace(node, left=_instant(left), right=_instant(right))
        case ast.Between(operand, low, high) if _is_time(operand):
            return replace(node, low=_instant(low), high=_instant(high))
    return None


def _is_time(node: ast.Expression) -> bool:
    return isinstance(node, ast.Name) and node.name in _TIMES


def _instant(node: ast.Expression) -> ast.Expression:
    if not isinstance(node, ast.Literal) or not isinstance(node.value, str):
        return node
    try:
        at = parser(TIMESTAMP)(node.value.strip())
    except ValueError as error:
        hint = "write a time such as '2024-05-26T23:59:58.123+0200', from the year on as far as you like"
        raise TypeMistake(f"'{node.value}' is no time", hint=hint, location=node.at) from error
    return replace(node, value=round(at.timestamp() * 1_000))
