"""Highlight statements while they are typed."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from potok.cli.prompt.input.tokens import pieces
from potok.cli.prompt.input.vocabulary import KEYWORDS, TYPES

STYLE = Style.from_dict(
    {
        "sql.keyword": "bold ansiblue",
        "sql.type": "ansicyan",
        "sql.function": "ansimagenta",
        "sql.string": "ansigreen",
        "sql.number": "ansiyellow",
        "sql.comment": "italic ansibrightblack",
        "sql.variable": "bold ansiyellow",
        "prompt": "bold",
        "prompt.more": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)

_STYLED = {"string", "number", "comment", "variable"}


class SqlLexer(Lexer):
    """Colour words by their role, as far as it is known before the statement is complete."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(split_lines(coloured(document.text)))

        def line(number: int) -> StyleAndTextTuples:
            return lines[number] if number < len(lines) else []

        return line


def coloured(text: str) -> StyleAndTextTuples:
    found = list(pieces(text))
    shown: StyleAndTextTuples = []
    for at, piece in enumerate(found):
        style = ""
        if piece.kind in _STYLED:
            style = f"class:sql.{piece.kind}"
        elif piece.kind == "word":
            called = at + 1 < len(found) and found[at + 1].text == "("
            style = _style_of_word(piece.name, called=called)
        shown.append((style, piece.text))
    return shown


def _style_of_word(word: str, *, called: bool) -> str:
    if word in TYPES:
        return "class:sql.type"
    if word in KEYWORDS:
        return "class:sql.keyword"
    return "class:sql.function" if called else ""
