"""Text made of what was parsed gives the same again."""

from __future__ import annotations

from hypothesis import given

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.parse import parse_expression, parse_script
from potok.sql.syntax.statement_text import show_statement
from potok.sql.syntax.walk import walk
from sql.syntax.one_statement import parse_statement
from sql.syntax.strategies import expressions, statements


def kinds(node: ast.Node) -> list[type]:
    """1, TRUE, 1.0 and 1e0 are equal to Python, but not to SQL."""
    return [type(part.value) for part in walk(node) if isinstance(part, ast.Literal)]


@given(expressions)
def test_an_expression_is_read_back_from_its_text(expression: ast.Expression) -> None:
    again = parse_expression(show(expression))
    assert again == expression
    assert kinds(again) == kinds(expression)


@given(statements)
def test_a_statement_is_read_back_from_its_text(statement: ast.Statement) -> None:
    text = show_statement(statement)
    again = parse_statement(text)
    assert again == statement
    assert kinds(again) == kinds(statement)
    assert [parsed.statement for parsed in parse_script(f"{text};")] == [statement]


@given(statements)
def test_the_text_that_a_script_keeps_of_a_statement_parses_to_it(statement: ast.Statement) -> None:
    (parsed,) = parse_script(f"-- a comment\n{show_statement(statement)} ;")
    assert parse_statement(parsed.text) == statement
