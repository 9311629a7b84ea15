"""How an aggregation is computed: as columns that merge, or row by row in Python."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from potok.errors import Location, TopologyError
from potok.expressions.expr import Column, Expr
from potok.expressions.function import Function
from potok.expressions.tracing.aggregate import AggregateTerm, TracedAggregate, trace_aggregate
from potok.expressions.tracing.trace import Traced, Untraceable, record_arguments, trace
from potok.records.declared_class import class_of
from potok.topology.nodes import AggregatePart, Aggregation

NUMBERS = (pa.int64(), pa.float64())
_SUMMABLE = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_duration,
    pa.types.is_null,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One mergeable number of an aggregate: `op` is count, sum, min or max, of the non-null results of `expr`.

    With an initial value, a key starts with it; without one, a key without values has no result.
    """

    op: str
    expr: Expr | None
    type: pa.DataType
    initial: int | float | None = None
    term: AggregateTerm | None = None


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """With slots, records are pre-aggregated where they are read; without, they move to their shard and are
    aggregated there.
    """

    kind: str
    slots: tuple[Slot, ...]
    fields: tuple[str, ...]
    selector: Expr | None
    result: pa.DataType | None
    reason: str = ""
    order_dependent: bool = False
    each_record: bool = False
    """Whether it reports one change for each record."""

    @property
    def native(self) -> bool:
        return bool(self.slots)


class NotNumbers(TopologyError):
    """A sum or an average of values that are not numbers."""

    def __init__(self, aggregation: Aggregation, type_: pa.DataType, at: Location | None) -> None:
        function = aggregation.function
        what = "the values" if function is None else function.name
        if function is not None and "<lambda>" in what:
            what = function.source or what
        super().__init__(
            f"cannot take the {aggregation.kind} of {what}: it is {type_}",
            hint='choose a field that holds numbers, or make one: sum(lambda v: float(v["amount"]))',
            at=at if function is None else function.location or at,
        )


def check_numbers(aggregation: Aggregation, of: Expr | None, at: Location | None) -> None:
    """Reject a sum of text at build time; where the type is unknown, each record is checked when it is
    processed.
    """
    if aggregation.kind in ("sum", "avg") and of is not None and not any(test(of.type) for test in _SUMMABLE):
        raise NotNumbers(aggregation, of.type, at)


def plan_aggregation(aggregation: Aggregation, key: pa.DataType | None, value: pa.DataType | None) -> AggregatePlan:
    if aggregation.kind == "count":
        return AggregatePlan("count", (Slot("count", None, pa.int64()),), (), None, pa.int64())
    if aggregation.kind == "fold":
        return _plan_fold(aggregation, key, value)
    if aggregation.kind == "reduce":
        result = reduced_type(aggregation, value)
        return AggregatePlan("reduce", (), (), None, result, "a reducer runs as Python", order_dependent=True)
    return _plan_named(aggregation, key, value)


def reduced_type(aggregation: Aggregation, value: pa.DataType | None) -> pa.DataType | None:
    """Return the result type of a reducer: the declared one, or that of the values if they are instances of a class."""
    if aggregation.schema is not None:
        return aggregation.schema.arrow
    return value if value is not None and class_of(value) is not None else None


def row_by_row(plan: AggregatePlan, reason: str = "it emits one change for each record") -> AggregatePlan:
    """Return the same aggregate without pre-aggregation: each record is aggregated on its shard."""
    if not plan.native:
        return plan
    selector = plan.slots[0].expr if plan.kind not in ("count", "fold") else None
    return replace(plan, slots=(), fields=(), selector=selector, reason=reason)


def _plan_named(aggregation: Aggregation, key: pa.DataType | None, value: pa.DataType | None) -> AggregatePlan:
    kind = aggregation.kind
    selector, type_, reason = _selector(aggregation, key, value)
    if selector is not None and type_ in NUMBERS:
        if kind in ("sum", "min", "max"):
            return AggregatePlan(kind, (Slot(kind, selector, type_),), (), None, type_)
        if kind == "avg":
            slots = (Slot("sum", selector, type_), Slot("count", selector, pa.int64()))
            return AggregatePlan(kind, slots, (), None, pa.float64())
    result = {"count_distinct": pa.int64(), "collect_list": pa.list_(type_) if type_ else None}.get(kind, type_)
    if kind in ("sum", "avg"):
        result = None
    why = reason or f"{kind} of {type_} is kept row by row"
    return AggregatePlan(kind, (), (), selector, result, why, order_dependent=kind == "collect_list")


def _selector(
    aggregation: Aggregation, key: pa.DataType | None, value: pa.DataType | None
) -> tuple[Expr | None, pa.DataType | None, str]:
    if aggregation.function is None:
        if value is None:
            return None, None, "the values are dynamic"
        return Column(value, "value"), value, ""
    traced = trace_function(aggregation.function, key, value)
    if isinstance(traced, Untraceable):
        return None, None, traced.reason
    return traced.expr, traced.expr.type, ""


def _plan_fold(aggregation: Aggregation, key: pa.DataType | None, value: pa.DataType | None) -> AggregatePlan:
    if aggregation.parts:
        return _plan_parts(aggregation.parts)
    assert aggregation.function is not None
    declared = aggregation.schema.arrow if aggregation.schema else None
    if value is None:
        return AggregatePlan("fold", (), (), None, declared, "the values are dynamic", order_dependent=True)
    traced = trace_aggregate(aggregation.initial, aggregation.function, key, value)
    if not isinstance(traced, TracedAggregate):
        return AggregatePlan("fold", (), (), None, declared, traced.reason, order_dependent=True)
    if not all(_mergeable(term) for term in traced.terms):
        reason = "its aggregate holds more than numbers"
        return AggregatePlan("fold", (), (), None, declared, reason, order_dependent=True)
    slots = tuple(_term_slot(term) for term in traced.terms)
    fields = tuple(term.path[0] for term in traced.terms if term.path)
    if fields:
        result = pa.struct([pa.field(name, slot.type) for name, slot in zip(fields, slots, strict=True)])
    else:
        result = slots[0].type
    return AggregatePlan("fold", slots, fields, None, declared if declared == result else result)


def _plan_parts(parts: tuple[AggregatePart, ...]) -> AggregatePlan:
    slots = tuple(
        Slot(part.op, None if part.function is None else part.function.expr, part.type, part.initial) for part in parts
    )
    result = pa.struct([pa.field(part.name, part.type) for part in parts])
    return AggregatePlan("fold", slots, tuple(part.name for part in parts), None, result)


def _mergeable(term: AggregateTerm) -> bool:
    numeric = term.initial is None or type(term.initial) in (int, float)
    return term.op in ("sum", "min", "max") and term.type in NUMBERS and len(term.path) <= 1 and numeric


def _term_slot(term: AggregateTerm) -> Slot:
    assert term.initial is None or isinstance(term.initial, int | float)
    return Slot(term.op, term.term, term.type, term.initial, term)


def trace_function(function: Function, key: pa.DataType | None, value: pa.DataType | None) -> Traced | Untraceable:
    """Trace a function of (value) or (key, value) over the types of a stream."""
    if value is None:
        return Untraceable("the values are dynamic")
    try:
        return trace(function, record_arguments(function, key, value))
    except TopologyError as error:
        error.at = function.location or error.at
        raise
