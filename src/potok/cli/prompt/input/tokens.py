"""Tokenize text that is still being typed; it may be invalid, unclosed or incomplete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from potok.sql.syntax.lexer.words import CLAUSES, RESERVED, STATEMENTS, UNITS
from potok.sql.types import SPELLINGS

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


TYPES: Final = frozenset({*SPELLINGS, "DECIMAL", "ARRAY", "MAP", "STRUCT"})

_OTHERS: Final = """
    ADD ADVANCE ALTER BEGINNING CHANGES COLUMN DEFINE EMIT ESCAPE EXPLAIN EXTENDED FINAL FUNCTION FUNCTIONS GRACE HEADER
    HEADERS HOPPING IF INTERVAL KEY OF ORDER PARTITION PAUSE PERIOD PRIMARY PROPERTIES QUERIES REPLACE RESUME RETENTION
    RUN SCRIPT SESSION SET SHOW SIZE SOURCE STREAMS TABLES TIMEOUT TOPICS TUMBLING TYPE TYPES UNDEFINE VARIABLES ASSERT
    ASC DESC DISTINCT
"""

KEYWORDS: Final = RESERVED | frozenset(_OTHERS.split()) | frozenset(STATEMENTS) | frozenset(UNITS)

LISTED: Final = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "TYPES", "VARIABLES", "PROPERTIES")
"""Objects of SHOW and LIST."""

FOLLOWERS: Final = {
    "SHOW": (*LISTED, "ALL TOPICS"),
    "LIST": (*LISTED, "ALL TOPICS"),
    "CREATE": ("STREAM", "TABLE", "OR REPLACE", "SOURCE STREAM", "SOURCE TABLE", "TYPE"),
    "REPLACE": ("STREAM", "TABLE", "SOURCE STREAM", "SOURCE TABLE"),
    "DROP": ("STREAM", "TABLE", "TYPE"),
    "ALTER": ("STREAM", "TABLE"),
    "INSERT": ("INTO",),
    "ASSERT": ("TOPIC", "NOT EXISTS TOPIC"),
    "RUN": ("SCRIPT",),
    "EMIT": ("CHANGES", "FINAL"),
    "WINDOW": ("TUMBLING (SIZE", "HOPPING (SIZE", "SESSION ("),
    "GROUP": ("BY",),
    "PARTITION": ("BY",),
    "ORDER": ("BY",),
    "GRACE": ("PERIOD",),
    "PRIMARY": ("KEY",),
    "IS": ("NULL", "NOT NULL", "DISTINCT FROM", "NOT DISTINCT FROM"),
    "SOURCE": ("STREAM", "TABLE"),
    "LEFT": ("JOIN",),
    "RIGHT": ("JOIN",),
    "FULL": ("JOIN",),
    "INNER": ("JOIN",),
    "OUTER": ("JOIN",),
}
"""Words that must be followed by one of these."""

IN_QUERIES: Final = (
    *CLAUSES,
    *("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL"),
    *("TRUE", "FALSE", "CAST(", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN", "ON", "WITHIN"),
    *("EMIT CHANGES", "EMIT FINAL", "GRACE PERIOD", "AS OF", "VALUES", "SELECT", "WITH (", "DELETE TOPIC", "EXTENDED"),
    *("TUMBLING", "HOPPING", "SESSION", "SIZE", "ADVANCE BY", "RETENTION", "ARRAY[", "MAP(", "STRUCT(", "DESC"),
    *("FROM BEGINNING", "PRIMARY KEY", "KEY", "HEADERS", "HEADER(", *sorted(UNITS)),
)
"""Keywords inside a statement."""
