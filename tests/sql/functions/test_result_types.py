"""The results of functions, as DESCRIBE FUNCTION reports them."""

from __future__ import annotations

import pytest

from potok import function
from potok.sql.functions.registry import all_functions, function_named
from potok.sql.functions.result_types import Argument, arguments_of, result_of


@pytest.mark.parametrize("name", sorted(all_functions()))
def test_every_way_to_call_a_function_returns_something(name: str) -> None:
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


def test_a_function_of_the_user_returns_what_its_annotation_says() -> None:
    @function(name="result_types_halves")
    def halves(value: float, times: int = 1) -> list[float]:
        return [value / 2] * times

    known = function_named("RESULT_TYPES_HALVES")
    assert known is not None
    assert [result_of(known, overload) for overload in known.overloads] == ["ARRAY<DOUBLE>"]


@pytest.mark.parametrize(
    ("signature", "arguments"),
    [
        ("PI()", ()),
        ("ABS(x INT)", (Argument("x", "INT"),)),
        (
            "INSTR(text VARCHAR[, position INT[, occurrence INT]])",
            (Argument("text", "VARCHAR"), Argument("position", "INT", True), Argument("occurrence", "INT", True)),
        ),
        ("CONCAT(text VARCHAR, ...)", (Argument("text", "VARCHAR", variadic=True),)),
        (
            "TOPK(value INT|BIGINT[, column ANY, ...], k INT)",
            (Argument("value", "INT|BIGINT"), Argument("column", "ANY", True, True), Argument("k", "INT")),
        ),
        (
            "FILTER(map MAP<K, V>, (key, value) => BOOLEAN)",
            (Argument("map", "MAP<K, V>"), Argument("", "LAMBDA (key, value) => BOOLEAN")),
        ),
        ("DATEADD(unit, interval INT)", (Argument("unit", ""), Argument("interval", "INT"))),
    ],
)
def test_a_signature_is_taken_apart(signature: str, arguments: tuple[Argument, ...]) -> None:
    assert arguments_of(signature) == arguments


def test_every_function_can_be_taken_apart() -> None:
    for declared in all_functions().values():
        for overload in declared.overloads:
            for argument in arguments_of(overload.signature):
                assert not set("[]") & set(argument.type + argument.name), overload.signature
