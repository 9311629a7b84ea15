from __future__ import annotations

import pytest

from potok.cli.prompt.input.tokens import pieces, statement_around


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'it''s', `a``b` FROM t -- done\n;",
        "'never closed",
        "/* never closed",
        '"a',
        "${x",
        "1.5e-3+.5",
        "ö ° \t",
        "",
    ],
)
def test_the_pieces_of_any_text_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


def around(text: str) -> tuple[list[str], list[str]]:
    """What stands before and behind the bar."""
    cursor = text.index("|")
    before, behind = statement_around(text.replace("|", "", 1), cursor)
    return [piece.text for piece in before], [piece.text for piece in behind]


def test_a_semicolon_in_quotes_ends_no_statement() -> None:
    assert around("SELECT ';' FROM a; SELECT b|") == (["SELECT", "b"], [])
    assert around("SELECT ';', | FROM a; SELECT b") == (["SELECT", "';'", ","], ["FROM", "a"])


def test_a_quote_that_is_open_does_not_hide_what_follows() -> None:
    assert around("SELECT `od| FROM a;") == (["SELECT", "`od"], ["FROM", "a"])


def test_names_fold_to_upper_case_unless_they_are_quoted() -> None:
    assert [piece.name for piece in pieces("orders`Odd``name`")] == ["ORDERS", "Odd`name"]
