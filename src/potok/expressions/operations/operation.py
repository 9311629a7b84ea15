"""An operation: its name, its type rule, and its columnar form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.expressions.expr import Call, CallStyle, Expr
from potok.expressions.python_types import Family, family, python_name
from potok.expressions.tracing.refusal import NotTraceable
from potok.expressions.vectorised.vector import Vector

Typed = Callable[[Sequence[Expr], tuple[object, ...]], pa.DataType]
"""Returns the result type, or refuses. The second argument is the options: plain Python values."""

Vectorised = Callable[[Sequence[Vector], Call], Vector]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that a `Call` can name. Its Python form is the method or Potok function of the same name."""

    name: str
    style: CallStyle
    receivers: frozenset[Family]
    typed: Typed
    vector: Vectorised
    parameters: tuple[str, ...] = ()
    """The names by which a method's options may be passed."""

    def call(self, args: Sequence[Expr], options: tuple[object, ...] = ()) -> Call:
        if family(args[0].type) not in self.receivers:
            raise NotTraceable(f"{self.name} of {python_name(args[0].type)} is not traced")
        return Call(self.typed(args, options), self.name, self.style, tuple(args), options)


def always(type_: pa.DataType, options: int = 0) -> Typed:
    """Return the type rule of an operation with a fixed result type and this many options."""

    def typed(args: Sequence[Expr], given: tuple[object, ...]) -> pa.DataType:
        if len(given) != options or len(args) != 1:
            raise NotTraceable("called with these arguments it is not traced")
        return type_

    return typed
