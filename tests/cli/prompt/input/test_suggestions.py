from __future__ import annotations

import pytest

from potok.cli.prompt.input.suggestions import suggestions
from potok.cli.prompt.targets.target import Names, SourceNames
from potok.sql.types import BIGINT, VARCHAR, struct

NAMES = Names(
    {
        "ORDERS": SourceNames(
            "STREAM", {"ID": VARCHAR, "AMOUNT": BIGINT, "ADDRESS": struct([("CITY", VARCHAR), ("ZIP", VARCHAR)])}
        ),
        "USERS": SourceNames("TABLE", {"USER_ID": VARCHAR, "odd name": VARCHAR}),
    },
    topics=("orders", "user-topic"),
    queries=("CTAS_T_1",),
    types=("MONEY",),
)


def offered(text: str) -> list[str]:
    """What is offered at the bar in the text."""
    cursor = text.index("|")
    return [found.text for found in suggestions(text.replace("|", "", 1), cursor, NAMES)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SEL|", "SELECT"),
        ("sel|", "select"),
        ("SELECT * FROM ord|", "orders"),
        ("SELECT * FROM users; select * from us|", "users"),
        ("SELECT am| FROM orders;", "amount"),
        ("SELECT AM| FROM orders;", "AMOUNT"),
        ("SELECT o.am| FROM orders o;", "amount"),
        ("SELECT address->zi| FROM orders;", "zip"),
        ("SELECT * FROM orders JOIN USE|", "USERS"),
        ("SELECT `od| FROM users;", "`odd name`"),
        ("DESCRIBE ord|", "orders"),
        ("TERMINATE CT|", "CTAS_T_1"),
        ("PRINT us|", "'user-topic'"),
        ("PRINT 'us|", "'user-topic'"),
        ("SELECT substr| FROM orders;", "substring("),
        ("DESCRIBE FUNCTION SUBSTR|", "SUBSTRING"),
        ("SHOW ST|", "STREAMS"),
        ("SELECT * FROM orders EMIT C|", "CHANGES"),
        ("CREATE STREAM s (a INT) WITH (VALUE_F|", "VALUE_FORMAT = "),
        ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT = 'j|", "'JSON'"),
        ("CREATE STREAM s (a VARC|", "VARCHAR"),
        ("CREATE STREAM s (a MON|", "MONEY"),
        ("DROP TABLE IF EXISTS |", "USERS"),
        ("HEL|", "HELP"),
    ],
)
def test_what_fits_comes_first(text: str, first: str) -> None:
    assert offered(text)[0] == first


def test_drop_offers_only_what_it_can_drop() -> None:
    assert offered("DROP STREAM |") == ["ORDERS", "IF EXISTS"]


def test_nothing_is_offered_inside_numbers_and_variables() -> None:
    assert offered("SELECT 12|") == []
    assert offered("SELECT ${a|") == []


def test_without_a_prefix_columns_are_suggested_and_not_all_keywords() -> None:
    assert offered("SELECT | FROM orders;") == ["ID", "AMOUNT", "ADDRESS"]


def test_a_column_of_another_statement_is_not_offered() -> None:
    assert "AMOUNT" not in offered("SELECT A| FROM users; SELECT * FROM orders;")


def test_a_suggestion_says_what_it_is_and_what_it_replaces() -> None:
    (found,) = suggestions("SELECT amou FROM orders;", 11, NAMES)
    assert (found.text, found.about, found.length) == ("amount", "BIGINT", 4)


@pytest.mark.parametrize(
    "text", ["'", "SELECT 'a", ".", "->", "WITH (", "x.", "= =", ";;", "(((", "SELECT a->b->", "\x00"]
)
def test_no_text_is_too_odd(text: str) -> None:
    for cursor in range(len(text) + 1):
        suggestions(text, cursor, NAMES)
