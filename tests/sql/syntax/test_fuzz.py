"""Any text parses or is refused with a message of ours, at a position that exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from potok.sql.errors import SqlError
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.lexer.words import CLAUSES, RESERVED, STATEMENTS, UNITS
from potok.sql.syntax.parse import is_complete, parse_expression, parse_script
from potok.sql.syntax.statement_text import show_statement
from sql.syntax.one_statement import parse_statement
from sql.syntax.test_cases import cases

WRITTEN = [sql for sql, _ in cases("statements")] + [f"SELECT {sql} FROM t" for sql, _ in cases("expressions")]
PIECES = sorted({piece for sql in WRITTEN for piece in re.findall(r"\w+|'[^']*'|\S", sql)})
WORDS = sorted(
    {*RESERVED, *STATEMENTS, *UNITS, *CLAUSES, *PIECES, "->", ":=", "=>", "${x}", "--", "/*", "*/", "''", "5"}
)

tokens = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid statement with a few of its parts taken out, doubled, exchanged or replaced."""
    pieces = re.findall(r"\w+|\s+|\W", draw(st.sampled_from(WRITTEN)))
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, max(0, len(pieces) - 1))) for _ in range(2))
        change = draw(st.sampled_from(("drop", "double", "swap", "replace", "cut")))
        if not pieces:
            break
        if change == "drop":
            del pieces[at]
        elif change == "double":
            pieces.insert(other, pieces[at])
        elif change == "swap":
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif change == "replace":
            pieces[at] = draw(st.sampled_from(WORDS) | st.text(max_size=3))
        else:
            del pieces[at:]
    return "".join(pieces)


def tried(parse: Callable[[str], Any], text: str) -> tuple[Any, SqlError | None]:
    try:
        return parse(text), None
    except SqlError as error:
        return None, error


def check(text: str) -> None:
    is_complete(text)
    parsed, error = tried(lambda text: parse_script(text, {"x": "y"}), text)
    if error is not None:
        check_place(text, error)
    for part in parsed or []:
        assert parse_statement(part.text) == part.statement
        assert parse_statement(show_statement(part.statement)) == part.statement


def check_place(text: str, error: SqlError) -> None:
    lines = text.splitlines() or [""]
    assert error.location is not None
    assert 1 <= error.location.line <= len(lines)
    assert 1 <= error.location.column <= len(lines[error.location.line - 1]) + 1
    assert str(error).startswith(f"line {error.location.line}, column {error.location.column}: ")


@given(st.text(max_size=40) | st.text("'`\"$/*-;(){}<>=:.19eE_aé \n", max_size=30))
def test_random_text(text: str) -> None:
    check(text)
    expression, error = tried(parse_expression, text)
    if error is not None:
        check_place(text, error)
    else:
        assert parse_expression(show(expression)) == expression


@given(tokens, st.booleans())
def test_random_tokens(text: str, ends: bool) -> None:
    check(f"{text};" if ends else text)


@given(mutated())
def test_mutated_statements(text: str) -> None:
    check(f"{text};")
