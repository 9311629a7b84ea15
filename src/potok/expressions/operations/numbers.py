"""Functions of numbers: `absolute`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Call, Expr
from potok.expressions.operations.operation import Operation
from potok.expressions.python_types import INT64_MIN, NUMBERS, family
from potok.expressions.vectorised.numbers import bounds
from potok.expressions.vectorised.vector import Vector, cast, either, required, where


def _absolute_type(args: Sequence[Expr], _: tuple[object, ...]) -> pa.DataType:
    return pa.float64() if family(args[0].type) == "float" else pa.int64()


def _absolute(vectors: Sequence[Vector], call: Call) -> Vector:
    (operand,) = vectors
    data = cast(operand.data, call.type)
    overflow = None
    if call.type == pa.int64() and bounds(data)[0] == INT64_MIN:
        overflow = where(pc.equal(data, INT64_MIN))
    return Vector(pc.abs(data), either(required(operand), overflow))


NUMBER_OPERATIONS: Final = (Operation("absolute", "function", NUMBERS, _absolute_type, _absolute),)
