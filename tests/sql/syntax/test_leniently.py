from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.parse import Unparsed, parse_leniently


def lines(text: str) -> list[int | str]:
    """For each statement its text, or the line of the mistake in it."""
    found: list[int | str] = []
    for parsed in parse_leniently(text):
        if isinstance(parsed, Unparsed):
            assert parsed.error.place is not None and parsed.error.line_text
            found.append(parsed.error.place.line)
        else:
            found.append(parsed.text)
    return found


def test_what_is_right_is_parsed_beside_what_is_wrong() -> None:
    assert lines("DROP STREAM a;\nDORP b;\nDROP TABLE c;\nSELECT FROM x;") == ["DROP STREAM a;", 2, "DROP TABLE c;", 4]


def test_a_statement_without_its_end_is_a_mistake_like_others() -> None:
    assert lines("DORP b;\nDROP STREAM a") == [1, 2]


def test_a_text_that_cannot_even_be_cut_is_one_mistake() -> None:
    assert lines("DROP STREAM a;\nDEFINE x = 'never closed;") == [2]


def test_variables_count_from_their_definition_on() -> None:
    first, second = parse_leniently("DEFINE x = 'a'; DROP STREAM ${x};")
    assert isinstance(first, ast.Parsed) and isinstance(second, ast.Parsed)
    assert second.text == "DROP STREAM a;"


def test_nothing_is_nothing() -> None:
    assert parse_leniently(" -- nothing\n;") == []
