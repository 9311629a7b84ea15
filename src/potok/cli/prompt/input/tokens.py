"""Tokenize text that is still being typed; it may be invalid, unclosed or incomplete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<string>'(?:[^']|'')*(?:'|\Z))
    | (?P<quoted>`(?:[^`]|``)*(?:`|\Z) | "(?:[^"]|"")*(?:"|\Z))
    | (?P<variable>\$\{[^}\n]*\}?)
    | (?P<number>\.?[0-9][\w.]*(?:(?<=[eE])[+-][0-9]+)?)
    | (?P<word>[^\W\d][\w@]*)
    | (?P<symbol><>|!=|<=|>=|\|\||:=|->|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """`kind` is space, comment, string, quoted, variable, number, word or symbol."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def name(self) -> str:
        """Return a word or quoted name as in the catalog; a symbol unchanged."""
        if self.kind == "quoted":
            mark = self.text[0]
            return self.text[1:].removesuffix(mark).replace(mark * 2, mark)
        return self.text.upper() if self.kind == "word" else self.text


def pieces(text: str) -> Iterator[Piece]:
    for match in _PIECE.finditer(text):
        yield Piece(match.lastgroup or "symbol", match.group(), match.start())


def statement_around(text: str, cursor: int) -> tuple[list[Piece], list[Piece]]:
    """Return the tokens before and after the cursor in its statement, without spaces and comments. A quote that is
    open at the cursor ends there: the rest was hardly meant to be quoted."""
    before: list[Piece] = []
    for piece in pieces(text[:cursor]):
        if piece.text == ";":
            before = []
        elif piece.kind not in ("space", "comment"):
            before.append(piece)
    behind: list[Piece] = []
    for piece in pieces(text[cursor:]):
        if piece.text == ";":
            break
        if piece.kind not in ("space", "comment"):
            behind.append(piece)
    return before, behind
