"""Format expressions as SQL; parsing the text returns the same expression."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.variables import quoted_text
from potok.sql.syntax.lexer.words import quoted

OR, AND, NOT, PREDICATE, VALUE, PLUS, TIMES, SIGN, PRIMARY = range(9)
"""The precedence of an expression; an operand with a lower precedence than required is parenthesized."""

_LEVELS = {"OR": OR, "AND": AND, "+": PLUS, "-": PLUS, "*": TIMES, "/": TIMES, "%": TIMES}


def show(expression: ast.Expression) -> str:
    """An expression as SQL text.

    >>> from potok.sql.syntax.parse import parse_expression
    >>> show(parse_expression("(a + 1) * `b c` > 2"))
    '(A + 1) * `b c` > 2'
    """
    return _show(expression, OR)


def show_type(type_: ast.TypeName) -> str:
    if type_.name == "STRUCT":
        fields = ", ".join(f"{quoted(name)} {show_type(field)}" for name, field in type_.fields)
        return f"STRUCT<{fields}>"
    if type_.arguments:
        return f"{type_.name}<{', '.join(map(show_type, type_.arguments))}>"
    numbers = f"({', '.join(map(str, type_.numbers))})" if type_.numbers else ""
    return quoted(type_.name) + numbers


def show_constant(value: bool | int | Decimal | float | str | None) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return quoted_text(value)
    if isinstance(value, Decimal):
        exact = format(value, "f")
        return exact if "." in exact else f"{exact}."
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return str(value)


def _show(expression: ast.Expression, precedence: int) -> str:
    text, level = _written(expression)
    return f"({text})" if level < precedence else text


def _written(node: ast.Expression) -> tuple[str, int]:
    """Return the text of an expression and its precedence."""
    match node:
        case ast.Binary():
            return _binary(node)
        case ast.Unary("NOT", operand):
            return f"NOT {_show(operand, NOT)}", NOT
        case ast.Unary(op, operand):
            # A sign before a number would be parsed as part of it, and two signs as a comment.
            text = _show(operand, PRIMARY)
            return f"{op}({text})" if text[0] in "-.0123456789" else f"{op}{text}", SIGN
        case ast.IsNull(operand, negated):
            return f"{_show(operand, VALUE)} IS {'NOT ' if negated else ''}NULL", PREDICATE
        case ast.Between(operand, low, high, negated):
            bounds = f"{_show(low, VALUE)} AND {_show(high, VALUE)}"
            return f"{_show(operand, VALUE)} {'NOT ' if negated else ''}BETWEEN {bounds}", PREDICATE
        case ast.In(operand, items, negated):
            return f"{_show(operand, VALUE)} {'NOT ' if negated else ''}IN ({listed(items)})", PREDICATE
        case ast.Like(operand, pattern, escape, negated):
            end = f" ESCAPE {quoted_text(escape)}" if escape else ""
            like = f"{'NOT ' if negated else ''}LIKE {_show(pattern, VALUE)}{end}"
            return f"{_show(operand, VALUE)} {like}", PREDICATE
        case _:
            return _primary(node), PRIMARY


def _binary(node: ast.Binary) -> tuple[str, int]:
    level = _LEVELS.get(node.op, PREDICATE)
    left = VALUE if level == PREDICATE else level
    right = VALUE if level == PREDICATE else level + 1
    return f"{_show(node.left, left)} {node.op} {_show(node.right, right)}", level


def _primary(node: ast.Expression) -> str:
    match node:
        case ast.Name(name, source):
            return f"{quoted(source)}.{quoted(name)}" if source else quoted(name)
        case ast.Literal(value):
            return show_constant(value)
        case ast.Case():
            return _case(node)
        case ast.Cast(operand, type_):
            return f"CAST({show(operand)} AS {show_type(type_)})"
        case ast.Subscript(operand, index):
            return f"{_show(operand, PRIMARY)}[{show(index)}]"
        case ast.FieldOf(operand, field):
            return f"{_show(operand, PRIMARY)}->{quoted(field)}"
        case ast.ArrayOf(items):
            return f"ARRAY[{listed(items)}]"
        case ast.MapOf(pairs):
            return f"MAP({', '.join(f'{show(key)} := {show(value)}' for key, value in pairs)})"
        case ast.StructOf(fields):
            return f"STRUCT({', '.join(f'{quoted(name)} := {show(value)}' for name, value in fields)})"
        case ast.Lambda(parameters, body):
            names = ", ".join(map(quoted, parameters))
            return f"{names if len(parameters) == 1 else f'({names})'} => {show(body)}"
        case ast.AnyRow(source):
            return f"{quoted(source)}.*" if source else "*"
        case ast.Call(name, arguments):
            return f"{quoted(name)}({listed(arguments)})"
    raise TypeError(f"{type(node).__name__} is not an expression")


def _case(node: ast.Case) -> str:
    operand = "" if node.operand is None else f" {_show(node.operand, VALUE)}"
    whens = "".join(f" WHEN {show(condition)} THEN {show(result)}" for condition, result in node.whens)
    otherwise = "" if node.otherwise is None else f" ELSE {show(node.otherwise)}"
    return f"CASE{operand}{whens}{otherwise} END"


def listed(expressions: Iterable[ast.Expression]) -> str:
    return ", ".join(map(show, expressions))
