"""Choosing between values: `when`, `coalesce`, `is_null`, `not_`, `least`, `greatest`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, get_args

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Call, Expr
from potok.expressions.literals import unify
from potok.expressions.operations.operation import Operation, Vectorised, always
from potok.expressions.python_types import Family, family, python_name
from potok.expressions.tracing.refusal import NotTraceable
from potok.expressions.truth import truthy
from potok.expressions.vectorised.comparisons import off_calendar
from potok.expressions.vectorised.vector import Data, Vector, cast, either, inherited

_ANY: Final[frozenset[Family]] = frozenset(get_args(Family))
_ORDERED: Final[frozenset[Family]] = frozenset(
    {"null", "int", "float", "string", "binary", "date", "time", "timestamp", "duration", "decimal"}
)


def _when_type(args: Sequence[Expr], _: tuple[object, ...]) -> pa.DataType:
    return unify(args[1:])[0]


def _when(vectors: Sequence[Vector], call: Call) -> Vector:
    """Both alternatives are computed, as Python computes the arguments of a function, so both can be suspect."""
    condition, then, otherwise = vectors
    chosen = pc.if_else(truthy(condition.data), cast(then.data, call.type), cast(otherwise.data, call.type))
    return Vector(chosen, inherited(*vectors))


def _unified(args: Sequence[Expr], _: tuple[object, ...]) -> pa.DataType:
    return unify(args)[0]


def _coalesce(vectors: Sequence[Vector], call: Call) -> Vector:
    return Vector(pc.coalesce(*(cast(vector.data, call.type) for vector in vectors)), inherited(*vectors))


def _ordered(args: Sequence[Expr], _: tuple[object, ...]) -> pa.DataType:
    type_ = unify(args)[0]
    if family(type_) not in _ORDERED:
        raise NotTraceable(f"values of {python_name(type_)} are not ordered by Potok's functions")
    return type_


def _extreme(better: Callable[[Data, Data], pa.Array]) -> Vectorised:
    def vector(vectors: Sequence[Vector], call: Call) -> Vector:
        off = either(*(off_calendar(vector.data) for vector in vectors))
        best, *others = (cast(vector.data, call.type) for vector in vectors)
        for other in others:
            best = _better(best, other, better)
        return Vector(best, either(inherited(*vectors), off))

    return vector


def _better(best: Data, other: Data, better: Callable[[Data, Data], pa.Array]) -> pa.Array:
    replace = better(other, best)
    if best.type == pa.float64():
        # NaN loses against every number.
        replace = pc.or_(replace, pc.and_not(pc.is_nan(best), pc.is_nan(other)))
    # A null comparison chooses null, and then the first of the two that is not null.
    return pc.coalesce(pc.if_else(replace, other, best), best, other)


def _is_null(vectors: Sequence[Vector], _: Call) -> Vector:
    (operand,) = vectors
    return Vector(pc.is_null(operand.data), operand.suspect)


def _not(vectors: Sequence[Vector], _: Call) -> Vector:
    (operand,) = vectors
    return Vector(pc.invert(truthy(operand.data)), operand.suspect)


CONDITION_OPERATIONS: Final = (
    Operation("when", "function", _ANY, _when_type, _when),
    Operation("coalesce", "function", _ANY, _unified, _coalesce),
    Operation("least", "function", _ORDERED, _ordered, _extreme(pc.less)),
    Operation("greatest", "function", _ORDERED, _ordered, _extreme(pc.greater)),
    Operation("is_null", "function", _ANY, always(pa.bool_()), _is_null),
    Operation("not_", "function", _ANY, always(pa.bool_()), _not),
)
