"""What functions give, as DESCRIBE FUNCTION tells it."""

from __future__ import annotations

import pytest

from potok import function
from potok.sql.functions.registry import all_functions, function_named
from potok.sql.functions.result_types import result_of


@pytest.mark.parametrize("name", sorted(all_functions()))
def test_every_way_to_call_a_function_gives_something(name: str) -> None:
    known = all_functions()[name]
    assert all(result_of(known, overload) for overload in known.overloads)


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("ABS", ["INTEGER", "BIGINT", "DECIMAL", "DOUBLE"]),
        ("CONCAT", ["VARCHAR", "BYTES"]),
        ("ARRAY_JOIN", ["VARCHAR"]),
        ("AS_MAP", ["MAP<K, V>"]),
        ("TRANSFORM", ["ARRAY<R>", "MAP<R, S>"]),
        ("COALESCE", ["ANY"]),
        ("AVG", ["DOUBLE"]),
        ("COUNT", ["BIGINT", "BIGINT"]),
        ("SUM_LIST", ["INTEGER|BIGINT|DOUBLE"]),
        ("EXPLODE", ["T"]),
    ],
)
def test_letters_and_choices_are_those_of_the_signature(name: str, results: list[str]) -> None:
    known = all_functions()[name]
    assert [result_of(known, overload) for overload in known.overloads] == results


def test_a_function_of_the_user_gives_what_its_annotation_says() -> None:
    @function(name="result_types_halves")
    def halves(value: float, times: int = 1) -> list[float]:
        return [value / 2] * times

    known = function_named("RESULT_TYPES_HALVES")
    assert known is not None
    assert [result_of(known, overload) for overload in known.overloads] == ["ARRAY<DOUBLE>"]
