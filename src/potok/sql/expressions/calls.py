"""Function calls: resolve the overload, and type its lambdas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import pyarrow as pa

from potok.sql.errors import Refused, SqlTypeError, UnknownName, closest
from potok.sql.expressions import nodes
from potok.sql.expressions.checker import Checker
from potok.sql.expressions.literals import coerced, fold, implied
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import (
    Accepted,
    AggregateFunction,
    LambdaShape,
    Overload,
    ScalarFunction,
    TableFunction,
    Types,
)
from potok.sql.functions.registry import all_functions, function_named, users_functions
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, DATE, DOUBLE, INT, NULL, TIME, TIMESTAMP, VARCHAR, quoted, type_name

UNIT_FIRST: Final = frozenset({"DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB"})
"""Functions whose first argument is a keyword."""
UNITS: Final = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
"""The keywords for units of time, also without the S."""
_RANKS: Final = {INT: 1, BIGINT: 2, DOUBLE: 4}


@dataclass(frozen=True, slots=True)
class _Fit:
    """An overload that accepts the arguments, and the cost of its casts."""

    number: int
    accepted: Accepted
    arguments: tuple[Typed, ...]
    distance: int


def call(node: ast.Call, checker: Checker, _: pa.DataType | None) -> Typed:
    meant = checker.scope.call(node)
    if meant is not None:
        return meant
    function = function_named(node.name)
    if function is None:
        names = {**all_functions(), **users_functions()}
        hint = closest(node.name, names) or "LIST FUNCTIONS shows all functions"
        raise UnknownName(f"there is no function {quoted(node.name)}", hint=hint, location=node.at)
    if isinstance(function, AggregateFunction):
        hint = "it is allowed in the select list and in HAVING of a query with GROUP BY, not inside another aggregate"
        raise Refused(f"the aggregate {node.name} is not allowed here", hint=hint, location=node.at)
    if isinstance(function, TableFunction):
        hint = f"write it as an item of the select list: SELECT {node.name}(...) AS x"
        raise Refused(f"the table function {node.name} is not allowed here", hint=hint, location=node.at)
    return resolved(node, function, checker)


def resolved(node: ast.Call, function: ScalarFunction | TableFunction, checker: Checker) -> nodes.FunctionCall:
    """Return a call with the overload that needs the fewest casts, the first one of equals."""
    arguments = [_argument(node, at, part, checker) for at, part in enumerate(node.arguments)]
    fits = _fits(node, function, arguments, checker)
    for timed in _with_times(arguments) if not fits else ():
        fits = fits or _fits(node, function, timed, checker)
    if not fits:
        _refuse(node, function, arguments)
    best = min(fits, key=lambda fit: (fit.distance, fit.number))
    own = function.overloads[best.number] if users_functions().get(node.name) is function else None
    return nodes.FunctionCall(best.accepted.result, node.name, best.arguments, best.number, own)


def _fits(
    node: ast.Call, function: ScalarFunction | TableFunction, arguments: Sequence[Typed | None], checker: Checker
) -> list[_Fit]:
    fits: list[_Fit] = []
    for number, overload in enumerate(function.overloads):
        fit = _fit(number, overload, node, arguments, checker)
        if fit is not None:
            fits.append(fit)
            if fit.distance == 0:
                break
    return fits


def _with_times(arguments: Sequence[Typed | None]) -> Iterator[list[Typed | None]]:
    """Convert string arguments to dates or times where a function expects these: one of them, or all."""
    texts = [at for at, argument in enumerate(arguments) if argument is not None and argument.type == VARCHAR]
    for type_ in (TIMESTAMP, DATE, TIME):
        for chosen in (*([at] for at in texts), texts):
            found = [
                _time_of(argument, type_) if at in chosen and argument is not None else argument
                for at, argument in enumerate(arguments)
            ]
            if all(found[at] is not None for at in chosen):
                yield found


def _time_of(text: Typed, type_: pa.DataType) -> Typed | None:
    """Convert a string to a date or a time; None for a literal that is not one."""
    if not isinstance(text, nodes.Constant):
        return nodes.CastTo(type_, text)
    try:
        return coerced(text, type_)
    except ValueError:
        return None


def _argument(node: ast.Call, at: int, part: ast.Expression, checker: Checker) -> Typed | None:
    """Return None for a lambda, whose type depends on the overload."""
    if isinstance(part, ast.Lambda):
        return None
    if at == 0 and node.name in UNIT_FIRST and isinstance(part, ast.Name) and not part.source:
        return _unit(part)
    return checker.visit(part)


def _unit(node: ast.Name) -> Typed:
    if node.name in UNITS or f"{node.name}S" in UNITS:
        return nodes.text(node.name)
    hint = closest(node.name, UNITS) or f"write {', '.join(UNITS)}"
    raise UnknownName(f"there is no unit of time {quoted(node.name)}", hint=hint, location=node.at)


def _fit(
    number: int, overload: Overload, node: ast.Call, given: Sequence[Typed | None], checker: Checker
) -> _Fit | None:
    found = list(given)
    types: list[pa.DataType | LambdaShape] = [
        argument.type if argument is not None else LambdaShape(_width(part))
        for part, argument in zip(node.arguments, given, strict=True)
    ]
    has_lambda = any(isinstance(type_, LambdaShape) for type_ in types)
    if has_lambda and (overload.lambda_types is None or overload.accept(types) is None):
        return None
    for at, part in enumerate(node.arguments):
        if isinstance(part, ast.Lambda) and overload.lambda_types is not None:
            made = _lambda(part, overload.lambda_types(types, at), checker)
            found[at], types[at] = made, LambdaShape(len(part.parameters), made.type)
    accepted = overload.accept(types)
    if accepted is None:
        return None
    cast = tuple(
        _cast_argument(argument, to, part)
        for argument, to, part in zip(found, accepted.arguments, node.arguments, strict=True)
        if argument is not None
    )
    return _Fit(number, accepted, cast, _distance(types, accepted.arguments))


def _width(node: ast.Expression) -> int:
    return len(node.parameters) if isinstance(node, ast.Lambda) else 0


def _lambda(node: ast.Lambda, types: Sequence[pa.DataType], checker: Checker) -> nodes.LambdaOf:
    reused = [name for name in node.parameters if name in checker.parameters or node.parameters.count(name) > 1]
    if reused:
        hint = "give it another name"
        raise Refused(f"the parameter {quoted(reused[0])} is declared twice", hint=hint, location=node.at)
    if len(types) != len(node.parameters):
        message = f"the lambda has {len(node.parameters)} parameters, and is called with {len(types)}"
        raise SqlTypeError(message, hint="write (k, v) => ... for two", location=node.at)
    body = checker.inside(dict(zip(node.parameters, types, strict=True))).visit(node.body)
    return nodes.LambdaOf(body.type, node.parameters, body)


def _cast_argument(argument: Typed, to: pa.DataType | LambdaShape, node: ast.Expression) -> Typed:
    if isinstance(to, LambdaShape):
        if not isinstance(argument, nodes.LambdaOf) or to.body in (None, argument.type):
            return argument
        assert isinstance(node, ast.Lambda)
        body = implied(argument.body, to.body, node.body)
        return nodes.LambdaOf(body.type, argument.parameters, body)
    if argument.type == to:
        return argument
    if argument.type == NULL:
        return nodes.null(to)
    return fold(nodes.CastTo(to, argument))


def _distance(given: Types, wanted: Types) -> int:
    """Return the cost of a cast, 0 if none is needed. NULL fits everything; a decimal of another scale is closer than
    another kind of number."""
    total = 0
    for one, other in zip(given, wanted, strict=True):
        if isinstance(one, LambdaShape) or isinstance(other, LambdaShape) or one in (other, NULL):
            continue
        total += 1 + 10 * abs(_rank(one) - _rank(other))
    return total


def _rank(type_: pa.DataType) -> int:
    return 3 if pa.types.is_decimal(type_) else _RANKS.get(type_, 0)


def _refuse(node: ast.Call, function: ScalarFunction | TableFunction, arguments: Sequence[Typed | None]) -> NoReturn:
    given = ", ".join("lambda" if argument is None else type_name(argument.type) for argument in arguments)
    ways = "; ".join(overload.signature for overload in function.overloads)
    raise SqlTypeError(f"{node.name} does not take ({given})", hint=f"it can be called as {ways}", location=node.at)


def lambda_alone(node: ast.Lambda, checker: Checker, _: pa.DataType | None) -> Typed:  # noqa: ARG001 - a rule has all three
    hint = "lambdas are arguments: TRANSFORM(items, x => x + 1)"
    raise Refused("a lambda is not allowed here", hint=hint, location=node.at)


def any_row(node: ast.AnyRow, checker: Checker, _: pa.DataType | None) -> Typed:  # noqa: ARG001 - a rule has all three
    raise Refused("* is not allowed here", hint="it is the argument of COUNT(*)", location=node.at)
