"""The grammar of expressions.

From loose to tight: OR, AND, NOT, one predicate (`=`, IS NULL, BETWEEN, IN, LIKE), `||`, `+ -`, `* / %`, a sign, then
what follows a value: `[..]` and `->`. Predicates do not chain: `a = b = c` is not an expression, as in ksqlDB.
"""

from __future__ import annotations

import math
from decimal import Decimal

from potok.sql.syntax import ast
from potok.sql.syntax.calls import call_or_name, constructor
from potok.sql.syntax.lexer.cursor import Cursor, whole_number
from potok.sql.syntax.lexer.tokens import NUMBERS, Kind, Token
from potok.sql.syntax.lexer.words import CONSTRUCTORS
from potok.sql.syntax.type_names import type_name
from potok.sql.syntax.walk import parts_of

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
BOOLEAN = {"OR": 0, "AND": 1}
ARITHMETIC = {"||": 0, "+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
"""Operators by precedence; all are left-associative."""

MAX_LEVELS = 200
"""The maximum depth of an expression; each operator is one level. Expressions are processed recursively."""

MAX_DIGITS = 38


def expression(cursor: Cursor) -> ast.Expression:
    first = cursor.peek()
    with cursor.deeper() as outermost:
        found = _boolean(cursor)
    if outermost and levels(found) > MAX_LEVELS:
        raise cursor.error(
            f"this expression has more than {MAX_LEVELS} levels",
            first,
            hint="write IN (...) for many comparisons, or compute a part of it in a stream of its own",
        )
    return found


def _boolean(cursor: Cursor, level: int = 0) -> ast.Expression:
    first = cursor.peek()
    left = _negation(cursor)
    while (token := cursor.peek()).kind is Kind.WORD and BOOLEAN.get(token.value, -1) >= level:
        cursor.take()
        left = ast.Binary(token.value, left, _boolean(cursor, BOOLEAN[token.value] + 1), at=cursor.since(first))
    return left


def levels(expression: ast.Expression) -> int:
    """Return the depth of an expression; computed without recursion."""
    found = 0
    row: list[ast.Node] = [expression]
    while row:
        found += 1
        row = [child for node in row for child in parts_of(node)]
    return found


def _negation(cursor: Cursor) -> ast.Expression:
    negations = []
    while cursor.at("NOT"):
        negations.append(cursor.take())
    operand = _predicate(cursor)
    for token in reversed(negations):
        operand = ast.Unary("NOT", operand, at=cursor.since(token))
    return operand


def _predicate(cursor: Cursor) -> ast.Expression:
    first = cursor.peek()
    left = value(cursor)
    token = cursor.peek()
    if token.kind is Kind.SYMBOL and token.value in COMPARISONS:
        cursor.take()
        compared = ast.Binary(token.value, left, value(cursor), at=cursor.since(first))
        after = cursor.peek()
        if after.kind is Kind.SYMBOL and after.value in COMPARISONS:
            raise cursor.error("comparisons do not chain", hint="write a = b AND b = c")
        return compared
    if cursor.accept("IS"):
        return _is(cursor, first, left)
    negated = cursor.at("NOT") and any(cursor.at(word, ahead=1) for word in ("BETWEEN", "IN", "LIKE"))
    if negated:
        cursor.take()
    if cursor.accept("BETWEEN"):
        low = value(cursor)
        cursor.expect("AND")
        return ast.Between(left, low, value(cursor), negated, at=cursor.since(first))
    if cursor.accept("IN"):
        return ast.In(left, _in_list(cursor), negated, at=cursor.since(first))
    if cursor.accept("LIKE"):
        return _like(cursor, first, left, negated)
    return left


def _is(cursor: Cursor, first: Token, left: ast.Expression) -> ast.Expression:
    negated = cursor.accept("NOT")
    if cursor.accept("NULL"):
        return ast.IsNull(left, negated, at=cursor.since(first))
    if not cursor.at("DISTINCT"):
        hint = f"write = {cursor.peek().written}" if cursor.at("TRUE") or cursor.at("FALSE") else ""
        raise cursor.expected("NULL or DISTINCT FROM", near=("NULL", "DISTINCT"), hint=hint)
    cursor.expect("DISTINCT", "FROM")
    op = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return ast.Binary(op, left, value(cursor), at=cursor.since(first))


def _in_list(cursor: Cursor) -> tuple[ast.Expression, ...]:
    opening = cursor.expect_symbol("(")
    if cursor.at("SELECT"):
        raise cursor.error("a query is not allowed in IN (...)", hint="join the two, or list the values")
    items = [expression(cursor)]
    while cursor.accept_symbol(","):
        items.append(expression(cursor))
    cursor.close(opening, ")")
    return tuple(items)


def _like(cursor: Cursor, first: Token, left: ast.Expression, negated: bool) -> ast.Expression:
    pattern = value(cursor)
    escape = ""
    if cursor.accept("ESCAPE"):
        token = cursor.peek()
        escape = cursor.string("a character in quotes")
        if len(escape) != 1:
            raise cursor.error("ESCAPE takes exactly one character", token)
    return ast.Like(left, pattern, escape, negated, at=cursor.since(first))


def value(cursor: Cursor, level: int = 0) -> ast.Expression:
    """Parse an operand of a predicate: no AND, OR, NOT or predicate outside of parentheses."""
    first = cursor.peek()
    left = _signed(cursor)
    while (token := cursor.peek()).kind is Kind.SYMBOL and ARITHMETIC.get(token.value, -1) >= level:
        cursor.take()
        right = value(cursor, ARITHMETIC[token.value] + 1)
        if token.value == "||":
            left = ast.Call("CONCAT", (left, right), at=cursor.since(first))
        else:
            left = ast.Binary(token.value, left, right, at=cursor.since(first))
    return left


def _signed(cursor: Cursor) -> ast.Expression:
    signs: list[Token] = []
    while cursor.at_symbol("+") or cursor.at_symbol("-"):
        if cursor.at_symbol("-") and cursor.peek(1).kind in NUMBERS:
            break
        signs.append(cursor.take())
    operand = primary(cursor)
    for sign in reversed(signs):
        operand = ast.Unary(sign.value, operand, at=cursor.since(sign))
    return operand


def primary(cursor: Cursor) -> ast.Expression:
    """Parse a value with all `[..]` and `->` that follow it; `->*` is left to the SELECT."""
    first = cursor.peek()
    found = _atom(cursor)
    while True:
        if cursor.at_symbol("["):
            opening = cursor.take()
            index = expression(cursor)
            cursor.close(opening, "]")
            found = ast.Subscript(found, index, at=cursor.since(first))
        elif cursor.at_symbol("->") and not cursor.at_symbol("*", ahead=1):
            cursor.take()
            field = cursor.name("the name of a field")
            found = ast.FieldOf(found, field, at=cursor.since(first))
        else:
            return found


def _atom(cursor: Cursor) -> ast.Expression:
    first = cursor.peek()
    if first.kind is Kind.STRING:
        return ast.Literal(cursor.take().value, at=cursor.since(first))
    if first.kind in NUMBERS or (cursor.at_symbol("-") and cursor.peek(1).kind in NUMBERS):
        found = number(cursor)
        return ast.Literal(found, at=cursor.since(first))
    if cursor.at_symbol("("):
        return _parenthesized(cursor)
    if first.kind is Kind.WORD:
        if first.value in CONSTANTS:
            cursor.take()
            return ast.Literal(CONSTANTS[first.value], at=cursor.since(first))
        if first.value in ("CASE", "CAST"):
            return _case(cursor) if first.value == "CASE" else _cast(cursor)
        if first.value in CONSTRUCTORS and (cursor.at_symbol("[", 1) or cursor.at_symbol("(", 1)):
            return constructor(cursor, expression)
    if cursor.at_name():
        return call_or_name(cursor, expression)
    raise _no_value(cursor)


CONSTANTS: dict[str, bool | None] = {"NULL": None, "TRUE": True, "FALSE": False}


def _no_value(cursor: Cursor) -> Exception:
    if cursor.at_symbol("*"):
        return cursor.error("* means all columns only in SELECT *, and all records only in COUNT(*)")
    if cursor.peek().kind is Kind.WORD:
        cursor.name("a value")
    return cursor.expected("a value")


def _parenthesized(cursor: Cursor) -> ast.Expression:
    opening = cursor.take()
    if cursor.at("SELECT"):
        raise cursor.error("a query is not allowed inside an expression", hint="create a table of it, and join that")
    found = expression(cursor)
    if cursor.at_symbol(","):
        raise cursor.error("a list is not allowed here", hint="write ARRAY[a, b] or STRUCT(x := a, y := b)")
    cursor.close(opening, ")")
    return found


def _case(cursor: Cursor) -> ast.Expression:
    first = cursor.take()
    operand = None if cursor.at("WHEN") else value(cursor)
    whens = []
    cursor.expect("WHEN")
    while True:
        condition = expression(cursor)
        cursor.expect("THEN")
        whens.append((condition, expression(cursor)))
        if not cursor.accept("WHEN"):
            break
    otherwise = expression(cursor) if cursor.accept("ELSE") else None
    if not cursor.accept("END"):
        raise cursor.expected("WHEN, ELSE or END", near=("WHEN", "ELSE", "END"))
    return ast.Case(operand, tuple(whens), otherwise, at=cursor.since(first))


def _cast(cursor: Cursor) -> ast.Expression:
    first = cursor.take()
    opening = cursor.expect_symbol("(")
    operand = expression(cursor)
    cursor.expect("AS")
    type_ = type_name(cursor)
    cursor.close(opening, ")")
    return ast.Cast(operand, type_, at=cursor.since(first))


def number(cursor: Cursor) -> int | Decimal | float:
    """Parse a number with an optional sign."""
    negative = cursor.accept_symbol("-")
    token = cursor.peek()
    if token.kind not in NUMBERS:
        raise cursor.expected("a number")
    cursor.take()
    if token.kind is Kind.INTEGER:
        return whole_number(cursor, token, negative=negative)
    if token.kind is Kind.FLOAT:
        found = float(token.value)
        if math.isinf(found):
            raise cursor.error("this number is too large for DOUBLE", token)
        return -found if negative else found
    if sum(char.isdigit() for char in token.value) > MAX_DIGITS:
        raise cursor.error(f"a DECIMAL has at most {MAX_DIGITS} digits", token, hint="write it as a DOUBLE: 1.5e0")
    exact = Decimal(token.value)
    return exact.copy_negate() if negative else exact
