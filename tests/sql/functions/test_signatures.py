"""Arguments out of signatures."""

from __future__ import annotations

import pytest

from potok.sql.functions.registry import all_functions
from potok.sql.functions.signatures import Argument, arguments_of


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
    for function in all_functions().values():
        for overload in function.overloads:
            for argument in arguments_of(overload.signature):
                assert not set("[]") & set(argument.type + argument.name), overload.signature
