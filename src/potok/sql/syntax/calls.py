"""Parse names, calls with lambdas, and the constructors ARRAY[..], MAP(..) and STRUCT(..)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind, Token

T = TypeVar("T")
Grammar = Callable[[Cursor], ast.Expression]

TYPED_TEXT = ("DATE", "TIME", "TIMESTAMP")
"""`DATE '2024-01-31'` is an abbreviation for a cast."""


ROW_SEMANTICS = ("RUNNING", "FINAL")
"""Words before a call in MATCH_RECOGNIZE: which rows of the match it sees."""


def call_or_name(cursor: Cursor, expression: Grammar) -> ast.Expression:
    first = cursor.take()
    if first.kind is Kind.WORD and first.value in ROW_SEMANTICS and cursor.at_name() and cursor.at_symbol("(", 1):
        inner = call_or_name(cursor, expression)
        return ast.Call(first.value, (inner,), at=cursor.since(first))
    if cursor.at_symbol("("):
        return _call(cursor, first, expression)
    if cursor.at_symbol("."):
        cursor.take()
        if cursor.at_symbol("*"):
            raise cursor.error(f"{first.written}.* means all columns only right after SELECT or a comma")
        name = cursor.name("the name of a column")
        if cursor.at_symbol("."):
            raise cursor.error("a column has at most one name before it", hint="fields of a struct are written a->b")
        return ast.Name(name, first.value, at=cursor.since(first))
    if cursor.peek().kind is Kind.STRING and first.kind is Kind.WORD:
        return _typed_text(cursor, first)
    if cursor.at_symbol("=>"):
        raise cursor.error("a lambda is allowed only inside a call", hint="TRANSFORM(items, x => x + 1)")
    if not first.value:
        raise cursor.error("a name cannot be empty", first)
    return ast.Name(first.value, at=cursor.since(first))


def _typed_text(cursor: Cursor, type_: Token) -> ast.Expression:
    text = cursor.take()
    if type_.value == "DECIMAL":
        try:
            exact = Decimal(text.value)
        except InvalidOperation:
            exact = Decimal("NaN")
        if not exact.is_finite() or len(exact.as_tuple().digits) > 38 or abs(exact.adjusted()) > 76:
            raise cursor.error(f"'{text.value}' is not a valid DECIMAL", text)
        return ast.Literal(exact, at=cursor.since(type_))
    if type_.value not in TYPED_TEXT:
        raise cursor.error(
            f"text cannot follow {type_.written}",
            text,
            hint="an operator, a comma or a keyword is missing between them",
        )
    literal = ast.Literal(text.value, at=cursor.source.location(text.start, text.end))
    name = ast.TypeName(type_.value, at=cursor.source.location(type_.start, type_.end))
    return ast.Cast(literal, name, at=cursor.since(type_))


def _call(cursor: Cursor, first: Token, expression: Grammar) -> ast.Expression:
    opening = cursor.take()
    arguments: list[ast.Expression] = []
    if cursor.at_symbol("*"):
        star = cursor.take()
        arguments.append(ast.AnyRow(at=cursor.since(star)))
    elif cursor.at_name() and cursor.at_symbol(".", 1) and cursor.at_symbol("*", 2) and cursor.at_symbol(")", 3):
        variable = cursor.take()
        cursor.take()
        cursor.take()
        arguments.append(ast.AnyRow(variable.value, at=cursor.since(variable)))
    elif cursor.at("DISTINCT"):
        written = first.written.upper()
        hint = "write COUNT_DISTINCT(x)" if written == "COUNT" else f"{written} has no variant for distinct values"
        raise cursor.error("DISTINCT is not allowed inside a call", hint=hint)
    elif not cursor.at_symbol(")"):
        arguments.append(_argument(cursor, expression))
        while cursor.accept_symbol(","):
            arguments.append(_argument(cursor, expression))
    cursor.close(opening, ")")
    if cursor.at("OVER"):
        raise cursor.error("windows of SQL (OVER) are not supported", hint="write WINDOW ... GROUP BY")
    return ast.Call(first.value.upper(), tuple(arguments), at=cursor.since(first))


def _argument(cursor: Cursor, expression: Grammar) -> ast.Expression:
    if not _at_lambda(cursor):
        return expression(cursor)
    first = cursor.peek()
    if first.kind is not Kind.SYMBOL:
        names = [cursor.name("the name of a parameter")]
    else:
        cursor.take()
        names = [cursor.name("the name of a parameter")]
        while cursor.accept_symbol(","):
            names.append(cursor.name("the name of a parameter"))
        cursor.expect_symbol(")")
    cursor.expect_symbol("=>")
    if len(set(names)) < len(names):
        raise cursor.error("two parameters of a lambda have the same name", first)
    body = expression(cursor)
    return ast.Lambda(tuple(names), body, at=cursor.since(first))


def _at_lambda(cursor: Cursor) -> bool:
    if not cursor.at_symbol("("):
        return cursor.at_name() and cursor.at_symbol("=>", ahead=1)
    ahead = 1
    while cursor.at_name(ahead) and cursor.at_symbol(",", ahead + 1):
        ahead += 2
    return cursor.at_name(ahead) and cursor.at_symbol(")", ahead + 1) and cursor.at_symbol("=>", ahead + 2)


def constructor(cursor: Cursor, expression: Grammar) -> ast.Expression:
    first = cursor.take()
    if first.value == "ARRAY":
        opening = cursor.expect_symbol("[", hint="write ARRAY[a, b]")
        items = _listed(cursor, opening, "]", expression)
        return ast.ArrayOf(tuple(items), at=cursor.since(first))
    opening = cursor.expect_symbol("(", hint=f"write {first.value}(a := b)")
    if first.value == "MAP":
        pairs = _listed(cursor, opening, ")", lambda c: _pair(c, expression(c), expression))
        return ast.MapOf(tuple(pairs), at=cursor.since(first))
    fields = _listed(cursor, opening, ")", lambda c: _pair(c, c.name("the name of a field"), expression), bounded=True)
    names = [name for name, _ in fields]
    for name, times in Counter(names).items():
        if times > 1:
            raise cursor.error(f'the struct has two fields "{name}"', first)
    return ast.StructOf(tuple(fields), at=cursor.since(first))


def _pair(cursor: Cursor, key: T, expression: Grammar) -> tuple[T, ast.Expression]:
    cursor.expect_symbol(":=")
    return key, expression(cursor)


def _listed(
    cursor: Cursor, opening: Token, closing: str, item: Callable[[Cursor], T], *, bounded: bool = False
) -> list[T]:
    items: list[T] = []
    if not cursor.at_symbol(closing):
        items.append(item(cursor))
        while cursor.another(items) if bounded else cursor.accept_symbol(","):
            items.append(item(cursor))
    cursor.close(opening, closing)
    return items
