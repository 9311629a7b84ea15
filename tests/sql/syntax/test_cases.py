"""Each form of the language, by what it says in full spelling; that the spelling loses nothing is tested elsewhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from potok.sql.errors import SourceLocation, SqlError
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.parse import parse_expression, parse_script
from potok.sql.syntax.statement_text import show_statement
from sql.syntax.one_statement import parse_statement

CASES = Path(__file__).parent / "cases"


def cases(name: str) -> list:
    found = tomllib.loads((CASES / f"{name}.toml").read_text())["cases"]
    assert found
    return found


@pytest.mark.parametrize(("written", "says"), cases("expressions"))
def test_an_expression_says_what_it_should(written: str, says: str) -> None:
    assert show(parse_expression(written)) == says


@pytest.mark.parametrize(("written", "says"), cases("statements"))
def test_a_statement_says_what_it_should(written: str, says: str) -> None:
    assert show_statement(parse_statement(written)) == (says or written)


@pytest.mark.parametrize("case", cases("refusals"), ids=lambda case: case["sql"])
def test_an_error_is_reported_with_its_position(case: dict) -> None:
    with pytest.raises(SqlError) as caught:
        parse_script(case["sql"])
    error = caught.value
    assert error.message == case["message"]
    assert error.hint == case.get("hint", "")
    assert error.location == SourceLocation(*case["at"])
