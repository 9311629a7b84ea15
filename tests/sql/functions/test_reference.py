"""The reference page is what the table of functions says, and its examples are true."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from potok.sql.errors import SqlError
from potok.sql.functions.function import AggregateFunction, ScalarFunction, TableFunction
from potok.sql.functions.reference import page
from potok.sql.functions.registry import FAMILIES, all_functions
from sql.columns import answer

PAGE = Path(__file__).parents[3] / "docs" / "sql-functions.md"
COMPUTED = "  -- "
"""The text in an example between a call and its result."""


def examples() -> list[Any]:
    return [
        pytest.param(*function.example.split(COMPUTED), id=function.name)
        for function in all_functions().values()
        if isinstance(function, ScalarFunction) and COMPUTED in function.example and function.deterministic
    ]


def test_the_page_is_as_the_table_makes_it() -> None:
    assert PAGE.read_text() == page(), "run python -m potok.sql.functions.reference > docs/sql-functions.md"


def test_all_functions_of_ksqldb_are_there() -> None:
    kinds = [type(function) for function in all_functions().values()]
    counts = {kind: kinds.count(kind) for kind in (ScalarFunction, AggregateFunction, TableFunction)}
    assert counts == {ScalarFunction: 130, AggregateFunction: 18, TableFunction: 2}


@pytest.mark.parametrize("function", all_functions().values(), ids=lambda function: function.name)
def test_a_function_says_what_it_does_and_how_it_is_called(function: Any) -> None:
    assert function.summary.endswith(".")
    assert function.example
    assert function.overloads
    for overload in function.overloads:
        assert overload.signature.startswith(f"{function.name}(")
    modules = {family.rpartition(".")[2] for family in FAMILIES}
    assert function.family in modules or function.family + "s" in modules


@pytest.mark.parametrize(("call", "given"), examples())
def test_an_example_returns_what_it_says(call: str, given: str) -> None:
    found = answer(call)
    assert found.failures == {}
    try:
        wanted = answer(given).values
    except SqlError:
        # An array, a map or an instant is not a literal: there it is enough that the call can be computed.
        assert found.values != [None]
        return
    assert [_plain(value) for value in found.values] == pytest.approx([_plain(value) for value in wanted])


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
