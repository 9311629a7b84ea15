from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from potok.expressions import Function, TracedAggregate, UnknownField, Untraceable, trace_aggregate, trace_reduce
from potok.expressions.functions import coalesce, greatest, least, when
from potok.records.rows import rows_of

ORDER = pa.struct([("amount", pa.float64()), ("n", pa.int64()), ("name", pa.string()), ("day", pa.date32())])

AGGREGATORS: dict[str, tuple[Any, Callable[..., Any], str]] = {
    "sum": (0.0, lambda k, v, agg: agg + v["amount"], "sum(value.amount)"),
    "sum from an int": (0, lambda k, v, agg: agg + v["amount"], "sum(value.amount)"),
    "sum of ints from a float": (1.5, lambda k, v, agg: agg + v.n, "sum(value.n)"),
    "count": (0, lambda k, v, agg: agg + 1, "sum(1)"),
    "count by step": (10, lambda v, agg: agg + 1 + 2, "sum(3)"),
    "constants before the record": (0, lambda v, agg: agg - 1 - 2 + v.n, "sum(-3 + value.n)"),
    "the aggregate last": (0, lambda v, agg: v.n + agg, "sum(value.n)"),
    "several addends": (0, lambda v, agg: agg + v.n - 1 + 2 * v.n, "sum((value.n - 1) + (2 * value.n))"),
    "difference": (0, lambda v, agg: agg - v.n, "sum(-value.n)"),
    "difference in parentheses": (0, lambda v, agg: agg - (v.n - 1), "sum(-(value.n - 1))"),
    "condition": (0, lambda v, agg: agg + when(v.n > 3, 1, 0), "sum(when(value.n > 3, 1, 0))"),
    "missing as zero": (0.0, lambda v, agg: agg + coalesce(v.amount, 0), "sum(coalesce(value.amount, 0))"),
    "minimum": (None, lambda v, agg: least(agg, v.amount), "min(value.amount)"),
    "maximum": (None, lambda v, agg: greatest(v.name, agg), "max(value.name)"),
    "maximum of several": (0, lambda v, agg: greatest(agg, v.n, 3), "max(greatest(value.n, 3))"),
    "dict": (
        {"n": 0, "total": 0.0, "first": None},
        lambda k, v, agg: {
            "n": agg["n"] + 1,
            "total": agg["total"] + v["amount"],
            "first": least(agg["first"], v["day"]),
        },
        "{n: sum(1), total: sum(value.amount), first: min(value.day)}",
    ),
    "dict with the key": (
        {"n": 0},
        lambda k, v, agg: {"user": k, "kind": "order", "n": agg["n"] + 1},
        "{user: same(key), kind: same('order'), n: sum(1)}",
    ),
    "dict in a dict": (
        {"a": {"n": 0}, "unit": "EUR"},
        lambda k, v, agg: {**agg, "a": {"n": agg["a"]["n"] + v.n}},
        "{a.n: sum(value.n), unit: same('EUR')}",
    ),
}


def traced(initial: Any, function: Callable[..., Any]) -> TracedAggregate | Untraceable:
    return trace_aggregate(initial, Function.of(function, (2, 3)), pa.string(), ORDER)


def folded(initial: Any, function: Callable[..., Any], key: str, rows: list[Any]) -> Any:
    aggregate = initial
    for row in rows:
        aggregate = function(key, row, aggregate) if function.__code__.co_argcount == 3 else function(row, aggregate)
    return aggregate


def merged(aggregate: TracedAggregate, values: pa.Array, key: str, split: int) -> Any:
    """Each part folded by itself, then the parts merged in reverse, as if they had come from two partitions."""
    parts = []
    for part in (values.slice(split), values.slice(0, split)):
        columns = {"key": pa.array([key] * len(part)), "value": part}
        contributions = []
        for term in aggregate.terms:
            found = term.evaluate(columns, len(part))
            assert found.suspect is None
            assert found.column.type == term.type
            total, *others = found.column.to_pylist()
            for other in others:
                total = term.merge(total, other)
            contributions.append(total)
        parts.append(contributions)
    totals = [
        term.merge(term.merge(term.initial, left), right)
        for term, left, right in zip(aggregate.terms, *parts, strict=True)
    ]
    return assembled(aggregate, totals)


def assembled(traced: TracedAggregate, values: Sequence[Any]) -> Any:
    """The aggregate that the user sees, from the values of the terms."""
    if traced.terms[0].path == ():
        return values[0]
    aggregate: dict[str, Any] = {}
    for term, value in zip(traced.terms, values, strict=True):
        inner = aggregate
        for name in term.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[term.path[-1]] = value
    return aggregate


@pytest.mark.parametrize("name", AGGREGATORS)
def test_merging_parts_returns_what_the_aggregator_returns(name: str) -> None:
    initial, function, text = AGGREGATORS[name]
    aggregate = traced(initial, function)
    assert isinstance(aggregate, TracedAggregate), aggregate
    assert str(aggregate) == text
    generator = random.Random(name)
    rows = [
        {"amount": generator.randint(-40, 40) / 4, "n": generator.randint(-5, 5), "name": generator.choice("abc"),
         "day": generator.randint(0, 900)}
        for _ in range(20)
    ]  # fmt: skip
    values = pa.array(rows, ORDER)
    expected = folded(initial, function, "user", rows_of(values))
    assert merged(aggregate, values, "user", 7) == expected
    assert list(expected) == [field.name for field in aggregate.type] if isinstance(expected, dict) else True
    assert cloudpickle.loads(cloudpickle.dumps(aggregate)) == aggregate


@pytest.mark.parametrize(
    ("initial", "function", "reason"),
    [
        ("", lambda v, agg: agg + v.name, "not a sum, least or greatest"),
        ([], lambda v, agg: agg + [v.name], "list"),
        (0, lambda v, agg: v.n - agg, "not a sum of itself"),
        (0, lambda v, agg: agg * 2 + v.n, "not a sum of itself"),
        (0, lambda v, agg: agg + agg + v.n, "not a sum of itself"),
        (0, lambda v, agg: agg * v.n, "not a sum, least or greatest"),
        (0, lambda v, agg: v.n, "not a sum, least or greatest"),
        (0, lambda v, agg: max(agg, v.n), "built-in max"),
        (0, lambda v, agg: agg + 1 if v.n else agg, "`if`"),
        (None, lambda v, agg: coalesce(agg, 0) + v.n, "starts from a number"),
        (True, lambda v, agg: agg + 1, "bool"),
        (0, lambda v, agg: agg - -(2**63) + v.n, "64 bits"),
        ({}, lambda v, agg: {"n": 1}, "initial dict"),
        ({"a": 0, "b": 0}, lambda v, agg: {"a": agg["b"] + 1, "b": agg["a"] + 1}, "not a sum of itself"),
        ({"a": 0, "b": 0}, lambda v, agg: {"a": agg["a"] + agg["b"], "b": agg["b"] + 1}, "not a sum of itself"),
        (
            {"a": None, "b": 0},
            lambda v, agg: {"a": least(agg["a"], agg["b"]), "b": agg["b"] + 1},
            "more of the aggregate",
        ),
        ({"a": 0}, lambda v, agg: agg["a"] + 1, "loses its field"),
        ({"a": {"b": 0}}, lambda v, agg: {"a": 1}, "becomes something else"),
    ],
)
def test_a_fold_that_cannot_be_merged_runs_as_python(initial: Any, function: Callable[..., Any], reason: str) -> None:
    found = traced(initial, function)
    assert isinstance(found, Untraceable), found
    assert reason in found.reason


def test_a_field_that_the_initial_value_lacks_is_an_error() -> None:
    with pytest.raises(UnknownField):
        traced({"total": 0}, lambda v, agg: {"total": agg["totl"] + 1})


def test_adding_none_is_suspect_and_raises_what_the_aggregator_raises() -> None:
    aggregate = traced(0.0, lambda v, agg: agg + v.amount)
    assert isinstance(aggregate, TracedAggregate)
    (term,) = aggregate.terms
    found = term.evaluate({"value": pa.array([{"amount": 1.0}, {"amount": None}], ORDER)}, 2)
    assert found.suspect.to_pylist() == [False, True]
    with pytest.raises(TypeError):
        term.contribution({"value": {"amount": None}})
    assert term.contribution({"value": {"amount": 2.5}}) == 2.5


def test_least_takes_none_without_suspicion() -> None:
    aggregate = traced(None, lambda v, agg: least(agg, v.n))
    assert isinstance(aggregate, TracedAggregate)
    (term,) = aggregate.terms
    found = term.evaluate({"value": pa.array([{"n": None}, {"n": 3}], ORDER)}, 2)
    assert found.suspect is None
    assert term.merge(term.merge(None, None), 3) == 3


def test_the_type_of_a_sum_is_that_of_its_parts() -> None:
    for initial, function, type_ in (
        (0, lambda v, agg: agg + v.n, pa.int64()),
        (0, lambda v, agg: agg + v.amount, pa.float64()),
        (0.0, lambda v, agg: agg + v.n, pa.float64()),
        (0, lambda v, agg: agg + (v.n > 1), pa.int64()),
    ):
        found = traced(initial, function)
        assert isinstance(found, TracedAggregate)
        assert found.type == found.terms[0].type == type_


@pytest.mark.parametrize(
    ("function", "type_", "text"),
    [
        (lambda a, b: a + b, pa.int64(), "sum(value)"),
        (lambda a, b: b + a, pa.float64(), "sum(value)"),
        (lambda a, b: least(a, b), pa.string(), "min(value)"),
    ],
)
def test_a_reducer_is_merged_without_an_initial_value(function: Any, type_: pa.DataType, text: str) -> None:
    found = trace_reduce(Function.of(function, (2,)), type_)
    assert isinstance(found, TracedAggregate)
    assert str(found) == text
    (term,) = found.terms
    assert term.merge(term.initial, "a") == "a"


@pytest.mark.parametrize(
    ("function", "type_"),
    [
        (lambda a, b: a + b, pa.string()),
        (lambda a, b: a - b * a, pa.int64()),
        (lambda a, b: {"n": a["n"] + b["n"]}, ORDER),
        (lambda a, b: a + b, None),
        (lambda a, b: b, pa.int64()),
    ],
)
def test_a_reducer_that_depends_on_order_or_shape_runs_as_python(function: Any, type_: pa.DataType | None) -> None:
    assert isinstance(trace_reduce(Function.of(function, (2,)), type_), Untraceable)
