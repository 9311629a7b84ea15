"""Membership and size: `isin`, `contains`, `length`, and `get` of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Call, Column, Expr
from potok.expressions.literals import literal, unify
from potok.expressions.operations.operation import Operation, always
from potok.expressions.python_types import EXACT_FLOAT, INT64_MAX, INT64_MIN, NUMBERS, Family, family, widest
from potok.expressions.tracing.refusal import NotTraceable
from potok.expressions.vectorised.vector import Data, Vector, cast, either, nulls, required

_SEARCHED: Final[frozenset[Family]] = frozenset({"bool", "int", "float", "string", "binary", "date"})
_PLAIN: Final = (type(None), bool, int, float, str, bytes, date)


def _isin_type(_: Sequence[Expr], options: tuple[object, ...]) -> pa.DataType:
    (values,) = options
    if not isinstance(values, tuple) or not all(type(value) in _PLAIN for value in values):
        raise NotTraceable("isin is traced only for a list, tuple or set of plain constants")
    if any(value != value for value in values):
        raise NotTraceable("isin of NaN is not traced: NaN equals nothing, but Python finds it by identity")
    return pa.bool_()


def _isin(vectors: Sequence[Vector], call: Call) -> Vector:
    (operand,) = vectors
    (values,) = call.options
    assert isinstance(values, Iterable)
    type_ = pa.int64() if operand.data.type == pa.bool_() else widest(operand.data.type)
    present = pc.is_in(cast(operand.data, type_), value_set=pa.array(_equal_to(values, type_), type_))
    return Vector(present, operand.suspect)


def _equal_to(values: Iterable[object], type_: pa.DataType) -> list[object]:
    """Return the values that an operand of this type can be equal to, each in that type."""
    kept: list[object] = [value for value in values if value is None]
    kind = family(type_)
    for value in values:
        if kind in NUMBERS and isinstance(value, int | float):
            kept.extend(_numbers(value, kind))
        elif value is not None and family(literal(value).type) == kind:
            kept.append(value)
    return kept


def _numbers(value: float, kind: Family) -> Iterable[object]:
    if kind == "int":
        whole = int(value) if not isinstance(value, float) or value.is_integer() else None
        return () if whole is None or not INT64_MIN <= whole <= INT64_MAX else (whole,)
    if (
        abs(value) > EXACT_FLOAT
        and isinstance(value, int)
        and (value.bit_length() > 1000 or int(float(value)) != value)
    ):
        return ()
    # Arrow looks up floats by their bits, and zero has two representations.
    return (0.0, -0.0) if value == 0 else (float(value),)


def _contains_type(args: Sequence[Expr], options: tuple[object, ...]) -> pa.DataType:
    (wanted,) = options
    container = args[0].type
    if family(container) == "string" and type(wanted) is str and family(literal(wanted).type) == "string":
        return pa.bool_()
    if family(container) == "list" and type(wanted) in (str, bytes, int, bool):
        element, kind = family(container.value_type), family(literal(wanted).type)
        if element == kind or {element, kind} <= {"int", "bool"}:
            return pa.bool_()
    raise NotTraceable(
        "contains is traced only for a constant text in a string, or a constant of the element type in a list"
    )


def _contains(vectors: Sequence[Vector], call: Call) -> Vector:
    (operand,) = vectors
    (wanted,) = call.options
    if family(operand.data.type) == "string":
        return Vector(pc.match_substring(operand.data, pattern=wanted), required(operand))
    matches = pc.fill_null(pc.equal(_whole(operand.data.values), pa.scalar(wanted)), False)
    # How many matches precede each offset: a list contains one if the count grows between its offsets.
    counted = np.concatenate(([0], np.cumsum(matches.to_numpy(zero_copy_only=False), dtype=np.int64)))
    offsets = operand.data.offsets.to_numpy()
    return Vector(pa.array(counted[offsets[1:]] > counted[offsets[:-1]]), required(operand))


def _whole(values: pa.Array) -> pa.Array:
    return cast(values, pa.int64()) if family(values.type) in ("int", "bool") else values


_LENGTHS: Final[dict[Family, Callable[[Data], Data]]] = {
    "string": pc.utf8_length,
    "binary": pc.binary_length,
    "list": pc.list_value_length,
}


def _length(vectors: Sequence[Vector], _: Call) -> Vector:
    (operand,) = vectors
    return Vector(_LENGTHS[family(operand.data.type)](operand.data).cast(pa.int64()), required(operand))


def _get_type(args: Sequence[Expr], options: tuple[object, ...]) -> pa.DataType:
    container = args[0].type
    if len(options) not in (1, 2) or type(options[0]) is not str or family(container.key_type) != "string":
        raise NotTraceable("get is traced only for a constant text key and a constant default")
    found = Column(container.item_type, "found")
    return container.item_type if len(options) == 1 else unify((found, literal(options[1])))[0]


def _get(vectors: Sequence[Vector], call: Call) -> Vector:
    (operand,) = vectors
    key, default = call.options if len(call.options) == 2 else (*call.options, None)
    found = cast(pc.map_lookup(operand.data, pa.scalar(key, operand.data.type.key_type), "last"), call.type)
    suspect = required(operand)
    if default is not None and found.null_count:
        # The default applies to a missing key and not to a None value, but the lookup returns null for both.
        if operand.data.items.null_count:
            suspect = either(suspect, nulls(found))
        found = pc.fill_null(found, pa.scalar(default, call.type))
    return Vector(found, suspect)


MEMBERSHIP_OPERATIONS: Final = (
    Operation("isin", "function", _SEARCHED, _isin_type, _isin),
    Operation("contains", "function", frozenset({"string", "list"}), _contains_type, _contains),
    Operation("length", "function", frozenset(_LENGTHS), always(pa.int64()), _length),
    Operation("get", "method", frozenset({"map"}), _get_type, _get),
)
