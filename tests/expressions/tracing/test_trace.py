"""What is traced, what it becomes, and the mistakes that tracing finds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import potok
from expressions.agreement import ARGUMENTS, VALUE, assert_agrees, traced
from expressions.rows import Rows
from potok.expressions import (
    Argument,
    Function,
    InvertedBool,
    Traced,
    UnknownField,
    evaluate,
    functions,
    record_arguments,
)
from potok.expressions import trace as trace_function
from potok.expressions.functions import coalesce, concat, isin, least, not_, when
from potok.records.value import Value

LIMIT = 100
WANTED = ("a", "b")
SINCE = datetime(2024, 1, 1, tzinfo=UTC)


def straight(k: Any, v: Any) -> Any:
    """Names and several statements are fine as long as every one is used."""
    doubled = v.i * 2
    doubled += 1
    wide = doubled > LIMIT
    return {"key": k, "wide": wide, "doubled": doubled}


def with_default(k: Any, v: Any, limit: int = 5, *, other: float = 1.5) -> Any:
    return (v.i > limit) & (v.f < other)


def closing_over(limit: int) -> Callable[..., Any]:
    return lambda k, v: v.i > limit


TRACED: dict[str, tuple[Callable[..., Any], str]] = {
    "item": (lambda k, v: v["f"] > 100, "value.f > 100"),
    "attribute": (lambda k, v: v.f > 100, "value.f > 100"),
    "constant first": (lambda k, v: 100 < v.f, "value.f > 100"),  # noqa: SIM300
    "a global constant": (lambda k, v: v.i > LIMIT, "value.i > 100"),
    "a constant closed over": (closing_over(7), "value.i > 7"),
    "a constant default": (with_default, "(value.i > 5) & (value.f < 1.5)"),
    "the value itself": (lambda k, v: v, "value"),
    "the key": (lambda k, v: k, "key"),
    "a constant": (lambda k, v: 1, "1"),
    "a pair": (lambda k, v: (v.s, v.f * 1.1), "(value.s, value.f * 1.1)"),
    "a nested field": (lambda k, v: v["address"]["city"], "value.address.city"),
    "a nested field by attribute": (lambda k, v: v.address.city, "value.address.city"),
    "an element": (lambda k, v: v.people[0].name, "value.people[0].name"),
    "a map's entry": (lambda k, v: v.m["a"], "value.m['a']"),
    "get of a field": (lambda k, v: v.get("i", 0), "value.i"),
    "get of a map": (lambda k, v: v.m.get("a", 0), "value.m.get('a', 0)"),
    "chained methods": (lambda k, v: v.s.strip().upper()[:3], "value.s.strip().upper()[:3]"),
    "a named option": (lambda k, v: v.s.split(",", maxsplit=1), "value.s.split(',', 1)"),
    "minus and plus": (lambda k, v: -v.i + +v.f, "(-value.i) + (+value.f)"),
    "bits": (lambda k, v: ~v.i & 7, "(~value.i) & 7"),
    "logic": (lambda k, v: (v.i > 1) & (v.b | v.c), "(value.i > 1) & (value.b | value.c)"),
    "an instant": (lambda k, v: v.at >= SINCE, f"value.at >= {SINCE!r}"),
    "a part of an instant": (lambda k, v: v.at.hour, "value.at.hour"),
    "a list": (lambda k, v: [v.i, 1], "[value.i, 1]"),
    "a dict": (lambda k, v: {"a": {"b": k}}, "{a: {b: key}}"),
    "equality with None": (lambda k, v: v.s == None, "value.s == None"),  # noqa: E711
    "a function": (lambda k, v: isin(v.s, ["a", "b"]), "isin(value.s, ('a', 'b'))"),
    "a function by its module": (lambda k, v: functions.isin(v.s, WANTED), "isin(value.s, ('a', 'b'))"),
    "a function by its package": (lambda k, v: potok.functions.length(v.s), "length(value.s)"),
    "a function with named arguments": (
        lambda k, v: when(v.b, then=v.i, otherwise=0),
        "when(value.b, value.i, 0)",
    ),
    "functions of functions": (
        lambda k, v: concat(k, "-", coalesce(v.s, "?")),
        "concat(key, '-', coalesce(value.s, '?'))",
    ),
    "a set": (lambda k, v: isin(v.i, {1}), "isin(value.i, (1,))"),
    "not_": (lambda k, v: not_(v.i > 1), "not_(value.i > 1)"),
    "a float and an int constant": (lambda k, v: least(v.f, 0), "least(value.f, 0)"),
    "an item of a list": (lambda k, v: [v.i, v.j][0] + [v.i, v.j][1], "value.i + value.j"),
    "a dict of dicts": (lambda k, v: {**{"a": v.i}, "b": v.j}, "{a: value.i, b: value.j}"),  # noqa: PIE800
    "a function of several lines": (
        straight,
        "{key: key, wide: ((value.i * 2) + 1) > 100, doubled: (value.i * 2) + 1}",
    ),
    "many fields": (
        lambda k, v: {
            "a": v.i,
            "b": v.i,
            "c": v.i,
            "d": v.i,
            "e": v.i,
            "f": v.i,
            "g": v.i,
            "h": v.i,
            "j": v.i,
            "k": v.i,
            "l": v.i,
            "m": v.i,
            "n": v.i,
            "o": v.i,
            "p": v.i,
            "q": v.i,
            "r": v.i,
            "s": k,
        },
        "{" + ", ".join(f"{name}: value.i" for name in "abcdefghjklmnopqr") + ", s: key}",
    ),
}


@pytest.mark.parametrize("construct", TRACED)
def test_is_traced_and_agrees_with_python(construct: str) -> None:
    function, text = TRACED[construct]
    expr = traced(function)
    assert str(expr) == text
    rows = Rows(7)
    assert_agrees(function, rows.keys(50), rows.values(50), expr)


def test_spreading_a_value_takes_all_its_fields_in_order_and_adds_the_new_one() -> None:
    expr = traced(lambda k, v: {**v, "status": "HIGH_VALUE"})
    assert [field.name for field in expr.type] == [*(field.name for field in VALUE), "status"]
    assert expr.type.field("address").type == VALUE.field("address").type
    assert expr.type.field("status").type == pa.string()


def test_spreading_a_value_over_a_field_replaces_it_in_position() -> None:
    expr = traced(lambda k, v: {**v, "i": "text"})
    assert expr.type.field(0) == pa.field("i", pa.string())
    assert "value.i," not in str(expr)


def test_a_field_with_the_name_of_a_dict_method_is_reached_by_brackets() -> None:
    order = pa.struct([("items", pa.list_(pa.string())), ("keys", pa.int64()), ("get", pa.int64())])
    value = Argument("value", order)
    assert str(traced(lambda v: v["items"][0], value)) == "value.items[0]"
    assert str(traced(lambda v: {**v, "x": v["get"]}, value)) == (
        "{items: value.items, keys: value.keys, get: value.get, x: value.get}"
    )
    found = trace_function(lambda v: v.items[0], (value,))
    assert not isinstance(found, Traced)
    assert '["items"]' in found.reason


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (lambda k, v: v["addres"], 'the value has no field "addres"', '"address"'),
        (lambda k, v: v.addres.city, 'the value has no field "addres"', '"address"'),
        (lambda k, v: v.address.citty, 'value.address has no field "citty"', '"city"'),
        (lambda k, v: v.people[0].nam, 'value.people[0] has no field "nam"', '"name"'),
        (lambda k, v: v["nothing_like_it"], 'the value has no field "nothing_like_it"', "it has: i, j, f"),
        (lambda k, v: k["id"], 'the key (str) has no field "id"', "declare a type with fields"),
        (lambda k, v: v.i.amount, 'value.i (int) has no field "amount"', "declare a type with fields"),
    ],
)
def test_an_unknown_field_is_an_error_that_names_what_was_meant(
    function: Callable[..., Any], message: str, hint: str
) -> None:
    with pytest.raises(UnknownField) as caught:
        trace_function(function, ARGUMENTS)
    assert caught.value.message == message
    assert hint in caught.value.hint
    assert caught.value.at is not None
    assert caught.value.at.file == __file__
    assert caught.value.at.line == function.__code__.co_firstlineno


def test_inverting_a_condition_is_an_error_because_python_would_call_it_true() -> None:
    with pytest.raises(InvertedBool) as caught:
        trace_function(lambda k, v: ~(v.i > 1), ARGUMENTS)
    assert "not_" in caught.value.hint


def test_an_untyped_key_does_not_matter_to_a_lambda_that_ignores_it() -> None:
    found = trace_function(lambda k, v: v.i > 1, (Argument("key", None), Argument("value", VALUE)))
    assert isinstance(found, Traced)


def test_the_arguments_of_a_function_follow_its_arity() -> None:
    one, two = Function.of(lambda v: v, (1, 2)), Function.of(lambda k, v: v, (1, 2))
    assert record_arguments(one, pa.string(), VALUE) == (Argument("value", VALUE),)
    assert record_arguments(two, pa.string(), VALUE) == ARGUMENTS


def test_suspect_rows_run_with_the_values_that_were_traced() -> None:
    scope: dict[str, Any] = {"limit": 1}
    function = eval("lambda v: v.i > limit", scope)
    found = trace_function(function, (Argument("value", VALUE),))
    assert isinstance(found, Traced)
    scope["limit"] = 1000
    assert str(found.expr) == "value.i > 1"
    assert found.function(Value(i=5)) is True
    assert function(Value(i=5)) is False


def test_a_trace_survives_the_journey_to_another_process() -> None:
    found = trace_function(lambda k, v: {**v, "x": when(v.i > LIMIT, v.s, "none")}, ARGUMENTS)
    assert isinstance(found, Traced)
    copy = cloudpickle.loads(cloudpickle.dumps(found))
    assert copy.expr == found.expr
    assert hash(copy.expr) == hash(found.expr)
    columns = {"value": pa.array([{"i": 101, "s": "a"}], VALUE)}
    assert evaluate(copy.expr, columns, 1).column.to_pylist()[0]["x"] == "a"
    assert copy.function("k", Value(i=101, s="a")) == {"i": 101, "s": "a", "x": "a"}


def test_the_room_does_not_load_spark() -> None:
    code = "import sys, potok.expressions, potok.expressions.functions; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
