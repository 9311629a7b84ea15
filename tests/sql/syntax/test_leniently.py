from __future__ import annotations

import pytest

from potok.sql.errors import SourceLocation, SqlSyntaxError
from potok.sql.syntax import ast
from potok.sql.syntax.parse import Unparsed, parse_leniently, parse_script


def lines(text: str) -> list[int | str]:
    """For each statement its text, or the line of the mistake in it."""
    found: list[int | str] = []
    for parsed in parse_leniently(text):
        if isinstance(parsed, Unparsed):
            assert parsed.error.location is not None and parsed.error.line_text
            found.append(parsed.error.location.line)
        else:
            found.append(parsed.text)
    return found


def test_valid_statements_are_parsed_in_spite_of_invalid_ones() -> None:
    assert lines("DROP STREAM a;\nDORP b;\nDROP TABLE c;\nSELECT FROM x;") == ["DROP STREAM a;", 2, "DROP TABLE c;", 4]


def test_an_unterminated_statement_is_an_error() -> None:
    assert lines("DORP b;\nDROP STREAM a") == [1, 2]


def test_a_script_that_cannot_be_split_has_one_error() -> None:
    assert lines("DROP STREAM a;\nDEFINE x = 'never closed;") == [2]


def test_variables_count_from_their_definition_on() -> None:
    first, second = parse_leniently("DEFINE x = 'a'; DROP STREAM ${x};")
    assert isinstance(first, ast.Parsed) and isinstance(second, ast.Parsed)
    assert second.text == "DROP STREAM a;"


def test_nothing_is_nothing() -> None:
    assert parse_leniently(" -- nothing\n;") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CREATE STREAM a (n INT KYE) WITH (KAFKA_TOPIC = 'a');", "A"),
        ("CREATE OR REPLACE STRAEM a (n INT);", "A"),
        ("CREATE TABLE IF NOT EXISTS `b c` AS SELEC 1;", "b c"),
        ("CRETE TYPE t AS INT;", "T"),
        ("CREATE STREAM a", "A"),
        ("INSERT INTO a (n) VALEUS (1);", ""),
        ("CREATE (;", "CREATE"),
    ],
)
def test_the_name_that_a_wrong_statement_was_to_make_is_known(text: str, name: str) -> None:
    (found,) = parse_leniently(text)
    assert isinstance(found, Unparsed)
    assert found.makes == name


def test_an_error_in_the_last_statement_is_reported_before_its_missing_end() -> None:
    with pytest.raises(SqlSyntaxError, match="no statement begins with SELCT") as caught:
        parse_script("SELECT a FROM o; SELCT")
    assert (caught.value.hint, caught.value.location) == ("did you mean SELECT?", SourceLocation(1, 18, 5))
    for text in ("SELECT a FROM o; SELECT a FROM o", "SELECT a FROM o; SELECT a FROM"):
        with pytest.raises(SqlSyntaxError, match="the statement is not finished"):
            parse_script(text)
