from __future__ import annotations

import pytest
from prompt_toolkit.document import Document

from potok.cli.prompt.input.highlight import SqlLexer, coloured


def styles(text: str) -> dict[str, str]:
    return {part[1]: part[0].removeprefix("class:sql.") for part in coloured(text) if part[1].strip()}


def test_each_kind_of_word_has_its_colour() -> None:
    found = styles("select SUM(amount), 'x', 1.5, ${v} FROM orders -- all\n")
    assert found["select"] == found["FROM"] == "keyword"
    assert found["SUM"] == "function"
    assert (found["amount"], found["orders"]) == ("", "")
    assert (found["'x'"], found["1.5"], found["${v}"], found["-- all"]) == ("string", "number", "variable", "comment")
    assert styles("CREATE STREAM s (a VARCHAR)")["VARCHAR"] == "type"


@pytest.mark.parametrize("text", ["", "SELECT 'not\nclosed", "/* a\nb */ x;\n\n", "a\n"])
def test_every_line_is_shown_as_it_is(text: str) -> None:
    line = SqlLexer().lex_document(Document(text))
    shown = ["".join(part[1] for part in line(number)) for number in range(len(text.split("\n")))]
    assert shown == text.split("\n")
