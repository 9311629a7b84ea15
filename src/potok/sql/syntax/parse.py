"""Parse text to statements: the entry points of this package."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from potok.sql.errors import SqlError, SqlSyntaxError, similar
from potok.sql.syntax import ast
from potok.sql.syntax.expressions import expression
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind, Source, Token, scan
from potok.sql.syntax.lexer.variables import Variables, expand
from potok.sql.syntax.lexer.words import STATEMENTS
from potok.sql.syntax.statements import statement

T = TypeVar("T")

_GROWS = re.compile(r"""[\w@'`".-]{2}""")
"""Adjacent tokens that would merge if a variable between them were replaced without a space."""


def parse_script(text: str, variables: Mapping[str, str] | None = None, *, bounded: bool = False) -> list[ast.Parsed]:
    """The statements of a script, each of which ends with `;`.

    A DEFINE applies to the statements after it. Positions refer to `text`. `bounded` limits the memory of untrusted
    text.

    >>> [parsed.statement.name for parsed in parse_script("DEFINE s = 'a'; DROP STREAM ${s};")][1]
    'A'
    """
    source = Source(text)
    known = Variables(variables)

    def parse() -> list[ast.Parsed]:
        found = []
        for tokens in _split(scan(source, bounded=bounded)):
            parsed = _finished(source, tokens, known)
            found.append(parsed)
            if isinstance(parsed.statement, ast.Define):
                known.define(parsed.statement.name, parsed.statement.value)
        return found

    return _located(text, parse)


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A statement that cannot be parsed: the error, and the name that it would create, if any."""

    error: SqlError
    makes: str = ""


def parse_leniently(text: str, variables: Mapping[str, str] | None = None) -> list[ast.Parsed | Unparsed]:
    """Parse a script, with the error of each statement that cannot be parsed in its position."""
    source = Source(text)
    known = Variables(variables)
    found: list[ast.Parsed | Unparsed] = []
    try:
        split = _split(scan(source))
    except SqlError as error:
        return [Unparsed(error.in_text(text))]
    for tokens in split:
        try:
            parsed = _finished(source, tokens, known)
        except SqlError as error:
            found.append(Unparsed(error.in_text(text), _made_by(tokens)))
            continue
        found.append(parsed)
        if isinstance(parsed.statement, ast.Define):
            known.define(parsed.statement.name, parsed.statement.value)
    return found


def parse_expression(text: str) -> ast.Expression:
    """Parse an expression."""

    def parse() -> ast.Expression:
        source = Source(text)
        cursor = Cursor(source, expand(source, scan(source), Variables()))
        found = expression(cursor)
        if not cursor.done:
            raise cursor.error(f"the expression should end here, found {cursor.peek().written}")
        return found

    return _located(text, parse)


def is_complete(text: str) -> bool:
    """Return whether a text ends with `;` outside of quotes and comments; if not, the prompt waits for more."""
    try:
        tokens = scan(Source(text))
    except SqlSyntaxError as error:
        return "never closed" not in error.message and text.rstrip().endswith(";")
    return len(tokens) > 1 and tokens[-2].written == ";"


def _located(text: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except SqlError as error:
        raise error.in_text(text) from None


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Yield the tokens of each statement without its `;`, followed by an END token, which says `;` unless the statement
    is unterminated; skip empty statements."""
    statements: list[list[Token]] = []
    current: list[Token] = []
    for token in tokens:
        if token.kind is Kind.END and current:
            statements.append([*current, token])
            break
        if token.kind is not Kind.SYMBOL or token.value != ";":
            current.append(token)
        elif current:
            end = current[-1].end
            statements.append([*current, Token(Kind.END, "", ";", end, token.end)])
            current = []
    return statements


def _unfinished(source: Source, end: Token) -> SqlSyntaxError:
    location = source.location(end.start, end.end)
    return SqlSyntaxError("the statement is not finished", hint="end it with ;", location=location)


def _finished(source: Source, tokens: list[Token], variables: Variables) -> ast.Parsed:
    """Parse a statement terminated by `;`. Errors before a missing terminator are reported first."""
    end = tokens[-1]
    if end.written == ";":
        return _parse(source, tokens, variables)
    unfinished = _unfinished(source, end)
    try:
        _parse(source, tokens, variables)
    except SqlError as error:
        if error.location != unfinished.location:
            raise
    raise unfinished


def _made_by(tokens: list[Token]) -> str:
    """Return the name that an invalid statement would create: the name before its columns, WITH or AS."""
    if similar(tokens[0].value, STATEMENTS, 0.7) != "CREATE":
        return ""
    for before, token in itertools.pairwise(tokens):
        if token.kind is Kind.END or token.value in ("(", "WITH", "AS"):
            return before.value if before.kind in (Kind.WORD, Kind.QUOTED) else ""
    return ""


def _parse(source: Source, tokens: list[Token], variables: Variables) -> ast.Parsed:
    expanded = expand(source, tokens, variables)
    found = statement(Cursor(source, expanded))
    return ast.Parsed(found, _text(source, expanded), found.at)


def _text(source: Source, tokens: list[Token]) -> str:
    """Return the text of the statement with variables replaced and comments kept."""
    parts: list[str] = []
    at, changed = tokens[0].start, False
    for token in tokens[:-1]:
        between = source.text[at : token.start]
        before, changed = changed, token.written != source.text[token.start : token.end]
        if not between and parts and (before or changed) and _GROWS.fullmatch(parts[-1][-1] + token.written[0]):
            between = " "
        parts += [between, token.written]
        at = token.end
    return "".join(parts) + ";"
