"""Split text into tokens with positions.

The scanner and the grammar are our own. A general SQL parser supports neither the keywords nor the operators of ksqlDB
(`:=`, `->` for fields, `=>`, `${x}`, EMIT, WITHIN), drops the positions of most nodes, accepts what ksqlDB rejects, and
takes longer to import than all scripts of a day take to parse.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum

from potok.sql.errors import SourceLocation, SqlSyntaxError

MOST_TOKENS = 100_000
"""Limit for one script: each token becomes several objects of some hundred bytes."""

MOST_TEXT = 16 << 20
"""Limit for the characters of one script, including the values of its variables."""


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted name"
    STRING = "text"
    INTEGER = "whole number"
    DECIMAL = "decimal number"
    FLOAT = "floating point number"
    SYMBOL = "symbol"
    VARIABLE = "variable"
    END = "end"


NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `value` is a word in upper case or the content of quotes; `written` is the original text."""

    kind: Kind
    value: str
    written: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""
      (?P<skip>\s++ | --[^\r\n]*+ | /\*(?:[^*]++|\*(?!/))*+\*/)
    | (?P<WORD>[A-Za-z_][A-Za-z0-9_@]*+)
    | (?P<FLOAT>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)[eE][+-]?[0-9]++(?![A-Za-z0-9_@]))
    | (?P<DECIMAL>[0-9]++\.[0-9]*+(?![A-Za-z0-9_@])|\.[0-9]++(?![A-Za-z0-9_@]))
    | (?P<INTEGER>[0-9]++(?![A-Za-z0-9_@.]))
    | (?P<NAME>[0-9]++[A-Za-z_@][A-Za-z0-9_@]*+(?![A-Za-z0-9_@]))
    | (?P<digits>\.?[0-9][A-Za-z0-9_@.]*+)
    | (?P<STRING>'(?:[^']++|'')*+')
    | (?P<QUOTED>`(?:[^`]++|``)*+`|"(?:[^"]++|"")*+")
    | (?P<VARIABLE>\$\{[A-Za-z_][A-Za-z0-9_@]*+\})
    | (?P<SYMBOL><>|!=|<=|>=|\|\||:=|->|=>|\{-|-\}|/(?!\*)|[-+*%=<>(),.;\[\]{}?|^]|\$(?!\{))
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HALF = re.compile("[\ud800-\udfff]")
_UNCLOSED = {"'": "text", "`": "name", '"': "name", "/*": "comment"}
_CLOSING = {"/*": "*/"}


class Source:
    """A script, with the positions of offsets in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = (found.start() for found in _LINE_END.finditer(text) if found.end() < len(text))
        self._ends = array("Q", ends)
        """The positions of line ends, except the last."""

    def location(self, start: int, end: int) -> SourceLocation:
        """Return the range from `start` to `end`, or to the end of the line of `start`."""
        line = bisect_left(self._ends, start)
        if line and self.text.startswith("\r\n", self._ends[line - 1]) and start == self._ends[line - 1] + 1:
            line -= 1  # between CR and LF
        first = 0
        if line:
            first = self._ends[line - 1] + (2 if self.text.startswith("\r\n", self._ends[line - 1]) else 1)
        last = self._ends[line] if line < len(self._ends) else len(self.text)
        return SourceLocation(line + 1, start - first + 1, max(1, min(end, last) - start))


def scan(source: Source, *, bounded: bool = False) -> list[Token]:
    """Split a script into tokens, followed by one of kind END. `bounded` rejects a script that is too large."""
    text, tokens, at = source.text, [], 0
    if bounded and len(text) > MOST_TEXT:
        raise too_long(source, MOST_TEXT)
    half = None if text.isascii() else _HALF.search(text)
    if half is not None:
        raise SqlSyntaxError(
            f"U+{ord(half[0]):04X} is half of a character",
            hint="write the whole character; the script must be UTF-8",
            location=source.location(*half.span()),
        )
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(source, at)
        at = match.end()
        group = match.lastgroup or ""
        if group == "skip":
            continue
        if group == "digits":
            raise _starts_with_digit(source, match)
        tokens.append(_token(Kind.WORD if group == "NAME" else Kind[group], match))
        if bounded and len(tokens) > MOST_TOKENS:
            raise SqlSyntaxError(
                f"the script has more than {MOST_TOKENS:,} tokens",
                hint="send its statements in several parts",
                location=source.location(*match.span()),
            )
    end = tokens[-1].end if tokens else len(text.rstrip())
    tokens.append(Token(Kind.END, "", "", end, end))
    return tokens


def too_long(source: Source, at: int) -> SqlSyntaxError:
    """A script that is too large, by itself or with its variables."""
    hint = "send its statements in several parts, or shorter values"
    location = source.location(min(at, len(source.text)), min(at, len(source.text)) + 1)
    return SqlSyntaxError(
        f"the script has more than {MOST_TEXT >> 20} MB after variables are substituted", hint=hint, location=location
    )


def _token(kind: Kind, match: re.Match[str]) -> Token:
    written = match.group()
    value = written
    if kind is Kind.WORD:
        value = written.upper()
    elif kind in (Kind.STRING, Kind.QUOTED):
        value = written[1:-1].replace(written[0] * 2, written[0])
    elif kind is Kind.VARIABLE:
        value = written[2:-1]
    elif written == "!=":
        value = "<>"
    return Token(kind, value, written, match.start(), match.end())


def _starts_with_digit(source: Source, match: re.Match[str]) -> SqlSyntaxError:
    written = match.group()
    number = re.match(r"[0-9]+", written)
    rest = written[number.end() :] if number else ""
    hint = f"write `{written}` in backticks if it is a name"
    if number and rest.isalpha():
        hint += f", or a space between {number.group()} and {rest}"
    return SqlSyntaxError(
        f"{written} is neither a number nor a name", hint=hint, location=source.location(*match.span())
    )


def _unreadable(source: Source, at: int) -> SqlSyntaxError:
    text = source.text
    for opening, what in _UNCLOSED.items():
        if text.startswith(opening, at):
            closing = _CLOSING.get(opening, opening)
            return SqlSyntaxError(
                f"this {what} is never closed", hint=f"end it with {closing}", location=source.location(at, len(text))
            )
    if text.startswith("${", at):
        return SqlSyntaxError(
            "this is not a variable",
            hint="write ${name}: a letter or _, then letters, digits and _",
            location=source.location(at, at + 2),
        )
    char = text[at]
    hint = "write names with other letters than A to Z in backticks" if char.isalpha() else ""
    rendered = char if char.isprintable() else f"U+{ord(char):04X}"
    return SqlSyntaxError(f"unexpected {rendered}", hint=hint, location=source.location(at, at + 1))
