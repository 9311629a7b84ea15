from __future__ import annotations

import pytest

from potok.cli.prompt.pieces import pieces, statement_around


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


def test_a_semicolon_in_quotes_ends_no_statement() -> None:
    text = "SELECT ';' FROM a; SELECT b"
    assert [piece.text for piece in statement_around(text, len(text))] == ["SELECT", "b"]
    assert [piece.text for piece in statement_around(text, 3)] == ["SELECT", "';'", "FROM", "a"]


def test_names_fold_to_upper_case_unless_they_are_quoted() -> None:
    assert [piece.name for piece in statement_around("orders `Odd``name`", 0)] == ["ORDERS", "Odd`name"]
