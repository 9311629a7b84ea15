"""`${name}`: a variable is replaced by a name or a value, also inside strings.

Tokens are replaced, not text, so that a variable can never end a string or start another clause. `$${` in a string is
the text `${`. Variable names are case-insensitive. ksqlDB keeps an undefined variable in a string as it is, so that a
topic named `${topic}` is requested; here that is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from potok.sql.errors import SqlSyntaxError, UnknownName, closest
from potok.sql.syntax.lexer.tokens import MOST_TEXT, NUMBERS, Kind, Source, Token, scan, too_long
from potok.sql.syntax.lexer.words import RESERVED

_IN_TEXT = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_CONSTANTS = ("TRUE", "FALSE", "NULL")


def quoted_text(text: str) -> str:
    """Quote a text as a string literal."""
    return "'" + text.replace("'", "''").replace("${", "$${") + "'"


class Variables:
    """The values of `${name}`, and how much text they may still add to a script."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._values = {name.upper(): (name, value) for name, value in (given or {}).items()}
        self._room = MOST_TEXT

    def define(self, name: str, value: str | None) -> None:
        """Set a variable; None removes it."""
        self._values.pop(name.upper(), None)
        if value is not None:
            self._values[name.upper()] = (name, value)

    def value(self, source: Source, token: Token, name: str) -> str:
        found = self._values.get(name.upper())
        if found is None:
            raise self._unknown(source, token, name)
        self._room -= len(found[1])
        if self._room < 0:
            raise too_long(source, token.start)
        return found[1]

    def _unknown(self, source: Source, token: Token, name: str) -> UnknownName:
        known = [defined for defined, _ in self._values.values()]
        hint = closest(name, known) or f"DEFINE {name} = '...';"
        if token.kind is Kind.STRING:
            hint += f" Write $${{{name}}} for the text ${{{name}}} itself."
        at = token.start + token.written.find(f"${{{name}}}")
        location = source.location(at, at + len(name) + 3)
        return UnknownName(f"there is no variable {name}", hint=hint, location=location)


def expand(source: Source, tokens: list[Token], variables: Variables) -> list[Token]:
    """Replace the variables in the tokens; each replacement has the position of its variable."""
    if all(token.kind is not Kind.VARIABLE and "${" not in token.written for token in tokens):
        return tokens
    found: list[Token] = []
    for token in tokens:
        if token.kind is Kind.VARIABLE:
            found += _meaning(source, token, variables.value(source, token, token.value))
        elif token.kind is Kind.STRING and "${" in token.value:
            found.append(_filled(source, token, variables))
        else:
            found.append(token)
    return found


def _filled(source: Source, token: Token, known: Variables) -> Token:
    def replacement(match: re.Match[str]) -> str:
        return match[1] or known.value(source, token, match[2])

    value = _IN_TEXT.sub(replacement, token.value)
    return replace(token, value=value, written=quoted_text(value))


def _meaning(source: Source, token: Token, value: str) -> list[Token]:
    """Parse a value: one name or one literal, with an optional sign."""
    try:
        tokens = scan(Source(value))[:-1]
    except SqlSyntaxError:
        tokens = []
    signed = len(tokens) == 2 and tokens[0].value == "-" and tokens[1].kind in NUMBERS
    if not signed and not (len(tokens) == 1 and tokens[0].kind not in (Kind.SYMBOL, Kind.VARIABLE)):
        raise SqlSyntaxError(
            f'{token.written} is "{value}", which is neither a name nor a value',
            hint=f"write '{token.written}' where a text is meant, or DEFINE it with its quotes: '''text'''",
            location=source.location(token.start, token.end),
        )
    return [replace(_no_keyword(part), start=token.start, end=token.end) for part in tokens]


def _no_keyword(token: Token) -> Token:
    """Return a word from a variable as a name, even if it is a keyword."""
    if token.kind is Kind.WORD and token.value not in _CONSTANTS:
        written = f"`{token.value}`" if token.value in RESERVED else token.written
        return replace(token, kind=Kind.QUOTED, written=written)
    return token
