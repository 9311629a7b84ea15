"""Call a lambda once with proxies, and return the resulting expression.

A wrong trace is worse than a slow step, so any uncertainty makes a function untraceable, with a reason for
`explain`. An error in the program, such as a field that does not exist, is raised instead.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import pyarrow as pa

from potok.errors import Location, TopologyError
from potok.expressions.expr import Column, Expr
from potok.expressions.function import Function, rebuilt
from potok.expressions.python_types import UNTYPED
from potok.expressions.tracing.bytecode import captured, check
from potok.expressions.tracing.proxy import Proxy, result_of
from potok.expressions.tracing.recorder import Recorder
from potok.expressions.tracing.refusal import NotTraceable


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the function: the column it comes from, and its type if it has one."""

    name: str
    type: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Traced:
    """A function that runs natively.

    `function` is the user's own, with every name it reads bound to the value used in `expr`. Suspect rows run
    through it, so that both always agree.
    """

    expr: Expr
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Untraceable:
    """A function that runs as Python, and why."""

    reason: str


def trace(function: Function | Callable[..., Any], arguments: Sequence[Argument]) -> Traced | Untraceable:
    """Return the expression of a function, or the reason why it has none.

    Raises:
        UnknownField: It reads a field that the type of the argument does not have.
        InvertedBool: It writes `~` before a condition.
    """
    if isinstance(function, Function) and function.expr is not None:
        return Traced(function.expr, function.callable)
    called = function.callable if isinstance(function, Function) else function
    try:
        checked = check(called, len(arguments))
        fixed = _with_fixed_names(checked)
        recorder = Recorder()
        returned = fixed(*(_stand_in(argument, recorder) for argument in arguments))
        return Traced(result_of(returned, recorder), fixed)
    except TopologyError as error:
        code = getattr(called, "__code__", None)
        if error.at is None and code is not None:
            error.at = Location(code.co_filename, code.co_firstlineno)
        raise
    except NotTraceable as refusal:
        return Untraceable(refusal.reason)
    except Exception as error:  # noqa: BLE001 - user code
        return Untraceable(f"traced, it raises {type(error).__name__}: {error}")


def record_arguments(function: Function, key: pa.DataType | None, value: pa.DataType | None) -> tuple[Argument, ...]:
    """Return the arguments of a function of `(k, v)` or `(v)`."""
    return (Argument("key", key), Argument("value", value))[2 - function.arity :]


def _stand_in(argument: Argument, recorder: Recorder) -> Proxy:
    return Proxy(Column(UNTYPED if argument.type is None else argument.type, argument.name), recorder)


def _with_fixed_names(function: FunctionType) -> FunctionType:
    read = {step.argval for step in dis.get_instructions(function.__code__) if step.opname == "LOAD_GLOBAL"}
    scope = {name: function.__globals__[name] for name in read}
    return rebuilt(function, scope, tuple(CellType(content) for content in captured(function).values()))
