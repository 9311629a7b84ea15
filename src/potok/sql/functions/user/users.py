"""`@potok.function`: a user's Python function as a function of SQL.

How a worker finds it: a checked statement holds the overload itself if the function is user-defined
(`FunctionCall` in `potok/sql/expressions/nodes.py`), and an aggregate holds its fold. The overload holds the Python
function, and the plan of a query is sent by cloudpickle: by value if the function is of the program's own file, by name
if it is of a module that the workers import too. So nothing has to be registered there, and a running query keeps the
function with which it was created; a new definition applies from the next statement on.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_type_hints, overload

import pyarrow as pa

from potok.errors import Location, TopologyError
from potok.sql.functions.function import (
    AggregateFunction,
    AggregateOverload,
    Overload,
    ScalarFunction,
    SqlFunction,
    TableFunction,
)
from potok.sql.functions.registry import add_function
from potok.sql.functions.user.calls import AggregateAccept, ColumnCall, Parameters, RowCall, UserAccept
from potok.sql.functions.user.types import NoType, UserType, items_type, user_type
from potok.sql.types import type_name

F = TypeVar("F", bound=Callable[..., Any])

_TYPES = "int, float, str, bool, bytes, Decimal, date, time, datetime, list[T], dict[K, V], a dataclass, or T | None"


class MissingAnnotation(TopologyError):
    """A parameter or the result of a function without a type annotation."""

    def __init__(self, function: str, what: str, example: str, at: Location | None) -> None:
        super().__init__(f'{what} of "{function}" has no type', hint=f"write {example}", at=at)


class UnusableAnnotation(TopologyError):
    """An annotation for which SQL has no type."""

    def __init__(self, function: str, what: str, annotation: Any, at: Location | None, hint: str = "") -> None:
        rendered = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        message = f'{what} of "{function}" is of type {rendered}, which SQL cannot use'
        super().__init__(message, hint=hint or f"use {_TYPES}", at=at)


class UnusableFunction(TopologyError):
    """A function or a class that cannot be called from SQL."""


@overload
def function(target: F, /) -> F: ...


@overload
def function(
    *, name: str = "", columns: bool = False, table: bool = False, deterministic: bool = True
) -> Callable[[F], F]: ...


def function(
    target: F | None = None,
    /,
    *,
    name: str = "",
    columns: bool = False,
    table: bool = False,
    deterministic: bool = True,
) -> F | Callable[[F], F]:
    """Make a Python function usable in SQL, from the next statement on.

    >>> @function
    ... def shout(text: str, marks: int = 1) -> str:
    ...     "In capitals, with exclamation marks."
    ...     return text.upper() + "!" * marks
    >>> shout("so")
    'SO!'

    After that, `SELECT SHOUT(name, 3) FROM users` works. The annotations define the types. A parameter with a default
    may be omitted. The function is called with NULL only if the annotation has `| None`; otherwise the result is NULL.
    If the function raises for a record, the result is NULL, and the reason is reported with the query.

    A function that yields, or one with `table=True`, returns a row for each value. A class with the
    methods `start(self)`, `add(self, state, ...)` and `result(self, state)` is an aggregate; `undo(self, state, ...)`
    lets it aggregate tables, and `merge(self, left, right)` sessions. The parameters of its `__init__` are literals
    after the columns.

    Args:
        name: The name in SQL, instead of its own name; always in upper case.
        columns: It takes and returns `pyarrow.Array`s; annotations define their types.
        table: It returns a list of values, each of which becomes a row.
        deterministic: False if it returns different results for equal arguments.
    """
    names = sys._getframe(1).f_locals

    def register(target: F) -> F:
        reader = _Reader(target, names)
        called = (name or target.__name__).upper()
        if isinstance(target, type):
            add_function(_aggregate(called, reader, target))
        elif table or inspect.isgeneratorfunction(target):
            add_function(_table(called, reader, target))
        else:
            add_function(_scalar(called, reader, target, columns, deterministic))
        return target

    return register if target is None else register(target)


class _Reader:
    """Reads the annotations of a function or of the methods of a class, with their positions."""

    def __init__(self, target: Callable[..., Any], names: dict[str, Any]) -> None:
        self.name = getattr(target, "__qualname__", str(target))
        self._names = names
        code = getattr(target, "__code__", None) or _first_code(target)
        self.at = None if code is None else Location(code.co_filename, code.co_firstlineno)

    def parameters(self, target: Callable[..., Any], skipped: int = 0) -> tuple[Parameters, str]:
        """Return the parameters after the first ones, and their text in a signature."""
        hints = self._hints(target)
        types: list[UserType] = []
        rendered: list[str] = []
        optional, rest = 0, None
        for parameter in list(inspect.signature(target).parameters.values())[skipped:]:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
                self._refuse_keyword(parameter)
                continue
            type_ = self._type(parameter.name, hints, f"{parameter.name}: int")
            text = f"{parameter.name} {type_name(type_.type)}"
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = type_
                rendered.append(f"[, {text}, ...]")
                continue
            types.append(type_)
            is_optional = parameter.default is not parameter.empty
            optional += is_optional
            rendered.append(f"[, {text}]" if is_optional else f", {text}")
        return Parameters(tuple(types), optional, rest), "".join(rendered)

    def result(
        self, target: Callable[..., Any], read: Callable[[Any], UserType] = user_type, hint: str = ""
    ) -> UserType:
        hints = self._hints(target)
        if hints.get("return") in (None, type(None)):
            raise MissingAnnotation(self.name, "the result", f"def {target.__name__}(...) -> int:", self.at)
        return self._read("the result", hints["return"], read, hint)

    def _type(self, parameter: str, hints: dict[str, Any], example: str) -> UserType:
        if parameter not in hints:
            raise MissingAnnotation(self.name, f'parameter "{parameter}"', example, self.at)
        return self._read(f'parameter "{parameter}"', hints[parameter], user_type)

    def _read(self, what: str, annotation: Any, read: Callable[[Any], UserType], hint: str = "") -> UserType:
        try:
            return read(annotation)
        except NoType:
            raise UnusableAnnotation(self.name, what, annotation, self.at, hint) from None

    def _hints(self, target: Callable[..., Any]) -> dict[str, Any]:
        try:
            return get_type_hints(target, localns=self._names, include_extras=True)
        except NameError as error:
            message = f'an annotation of "{self.name}" names {error.name}, which is not known there'
            raise UnusableFunction(message, hint="define it before the function", at=self.at) from error

    def _refuse_keyword(self, parameter: inspect.Parameter) -> None:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            message = f'parameter "{parameter.name}" of "{self.name}" cannot be given in SQL, which has no names there'
            raise UnusableFunction(message, hint="move it before the *, or give it a default", at=self.at)


def _first_code(target: Any) -> Any:
    methods: Iterable[Any] = vars(target).values() if isinstance(target, type) else ()
    return next((method.__code__ for method in methods if hasattr(method, "__code__")), None)


def _signature(name: str, rendered: str) -> str:
    return f"{name}({rendered.removeprefix(', ')})" if not rendered.startswith("[, ") else f"{name}([{rendered[3:]})"


def _summary(target: Any) -> str:
    text = inspect.getdoc(target) or ""
    return " ".join(text.split("\n\n")[0].split())


def _scalar(name: str, reader: _Reader, target: Callable[..., Any], columns: bool, deterministic: bool) -> SqlFunction:
    parameters, rendered = reader.parameters(target)
    result = reader.result(target)
    call = ColumnCall(target) if columns else RowCall(target, parameters, result)
    one = Overload(_signature(name, rendered), UserAccept(parameters, result.type), call)
    return ScalarFunction(name, "user", _summary(target), (one,), deterministic)


def _table(name: str, reader: _Reader, target: Callable[..., Any]) -> SqlFunction:
    parameters, rendered = reader.parameters(target)
    result = reader.result(target, items_type, "a table function gives list[T], or yields: Iterator[T]")
    accept = UserAccept(parameters, pa.list_(result.type))
    one = Overload(_signature(name, rendered), accept, RowCall(target, parameters, result, table=True))
    return TableFunction(name, "user", _summary(target), (one,))


def _aggregate(name: str, reader: _Reader, target: type) -> SqlFunction:
    missing = [method for method in ("start", "add", "result") if not callable(getattr(target, method, None))]
    if missing:
        hint = "an aggregate has start(self), add(self, state, ...) and result(self, state)"
        raise UnusableFunction(f'class "{reader.name}" has no method {missing[0]}', hint=hint, at=reader.at)
    parameters, rendered = reader.parameters(target.add, skipped=2)  # type: ignore[attr-defined]
    literals, more = Parameters(()), ""
    if target.__init__ is not object.__init__:  # type: ignore[misc]
        literals, more = reader.parameters(target.__init__, skipped=1)  # type: ignore[misc]
    if parameters.optional or parameters.rest or literals.rest:
        message = f'"{reader.name}" has columns that are optional or repeated, which an aggregate cannot have'
        raise UnusableFunction(message, hint="give add(self, state, ...) parameters without defaults", at=reader.at)
    result = reader.result(target.result)  # type: ignore[attr-defined]
    accept = AggregateAccept(target, parameters, literals, result)
    one = AggregateOverload(_signature(name, rendered + more), accept, columns=len(parameters.types))
    return AggregateFunction(name, _summary(target), (one,), family="user")
