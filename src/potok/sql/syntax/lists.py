"""Parse the lists of GROUP BY, PARTITION BY and ORDER BY."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.expressions import expression
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind


def several(cursor: Cursor) -> tuple[ast.Expression, ...]:
    """Parse the expressions of GROUP BY or PARTITION BY: a list, optionally in parentheses."""
    cursor.expect("BY")
    enclosed = _at_enclosed_list(cursor)
    if enclosed:
        cursor.take()
    found = [expression(cursor)]
    while cursor.another(found):
        found.append(expression(cursor))
    if enclosed:
        cursor.expect_symbol(")")
    return tuple(found)


def _at_enclosed_list(cursor: Cursor) -> bool:
    """Return whether `(a, b)` comes next, and not `(a + b) * 2`."""
    if not cursor.at_symbol("("):
        return False
    depth, ahead = 0, 0
    while cursor.peek(ahead).kind is not Kind.END:
        token = cursor.peek(ahead)
        if token.kind is Kind.SYMBOL:
            depth += (token.value in ("(", "[")) - (token.value in (")", "]"))
            if depth == 0 or (depth == 1 and token.value == ","):
                return token.value == ","
        ahead += 1
    return False


def order_list(cursor: Cursor) -> tuple[ast.OrderItem, ...]:
    cursor.expect("BY")
    items = [_order_item(cursor)]
    while cursor.another(items):
        items.append(_order_item(cursor))
    return tuple(items)


def _order_item(cursor: Cursor) -> ast.OrderItem:
    first = cursor.peek()
    found = expression(cursor)
    descending = cursor.accept("DESC")
    if not descending:
        cursor.accept("ASC")
    nulls_first = None
    if cursor.accept("NULLS"):
        nulls_first = cursor.one_of("FIRST", "LAST") == "FIRST"
    return ast.OrderItem(found, descending, nulls_first, at=cursor.since(first))
