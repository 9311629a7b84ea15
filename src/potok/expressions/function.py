"""A user's function as a topology stores it: with its location in the program and its number of arguments."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CellType, CodeType, FunctionType
from typing import Any

from potok.errors import Location, TopologyError
from potok.expressions.expr import Expr
from potok.expressions.literals import is_constant


class WrongArity(TopologyError):
    """A function that does not accept the number of arguments that it would be called with."""

    def __init__(self, name: str, found: str, allowed: tuple[int, ...], hint: str, at: Location | None = None) -> None:
        wanted = " or ".join(str(count) for count in allowed)
        noun = "argument" if found == "1" else "arguments"
        super().__init__(f'"{name}" takes {found} {noun}, but it is called with {wanted}', hint=hint, at=at)


AGGREGATOR = "write lambda v, agg: ... or lambda k, v, agg: ..."
JOINER = "write lambda left, right: ... or lambda key, left, right: ..."
PROCESSOR = "write def process(key, value, ctx): ..., or pass a potok.Processor"
ON_TIMER = "write def on_timer(key, at, ctx): ..."

_ARITY_HINTS = {
    (0,): "write lambda: ...",
    (1,): "write lambda v: ...",
    (1, 2): "write lambda v: ... or lambda k, v: ...",
    (2,): "write lambda v1, v2: ...",
    (2, 3): AGGREGATOR,
}


def _hint(allowed: tuple[int, ...], given: str) -> str:
    wanted = " or ".join(str(count) for count in allowed)
    return given or _ARITY_HINTS.get(allowed, f"write a function of {wanted} arguments")


@dataclass(frozen=True, eq=False)
class Function:
    """A user's callable. Two are equal only if they are identical."""

    callable: Callable[..., Any]
    arity: int
    name: str = field(default="", kw_only=True)
    location: Location | None = field(default=None, kw_only=True)
    expr: Expr | None = field(default=None, kw_only=True)
    """Its expression, if known without tracing."""

    @classmethod
    def of(cls, function: Callable[..., Any], allowed: tuple[int, ...], hint: str = "") -> Function:
        """Check that `function` accepts one of the `allowed` numbers of arguments, and bind the variables that it
        closes over.

        `hint` says what to write instead, if the numbers alone are not enough.
        """
        code = _code_of(function)
        location = None if code is None else Location(code.co_filename, code.co_firstlineno)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        arity = _arity(function, name, allowed, _hint(allowed, hint), location)
        return cls(_with_fixed_closure(function), arity, name=name, location=location)

    def __call__(self, *args: Any) -> Any:
        return self.callable(*args)

    @property
    def source(self) -> str:
        """Return the source text of the function, "" if it is not available."""
        if self.expr is not None:
            return str(self.expr)
        code = _code_of(self.callable)
        return "" if code is None else source_of(code)

    def __str__(self) -> str:
        return self.name if self.location is None else f"{self.name} at {self.location}"


def _code_of(function: object) -> CodeType | None:
    if isinstance(function, partial):
        return _code_of(function.func)
    if isinstance(function, type):
        return None
    target = inspect.unwrap(function) if isinstance(function, FunctionType) else getattr(function, "__func__", function)
    if not isinstance(target, FunctionType):
        target = inspect.getattr_static(type(function), "__call__", None)
    return target.__code__ if isinstance(target, FunctionType) else None


def _arity(function: Callable[..., Any], name: str, allowed: tuple[int, ...], hint: str, at: Location | None) -> int:
    """Required arguments decide; `lambda v, limit=5` takes one. If several numbers are possible, the largest is
    used.
    """
    if not callable(function):
        raise TopologyError(f"{function!r} is not a function", hint=hint, at=Location.of_caller())
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some built-ins have no signature. Those that are commonly passed, such as `str`, take the value.
        return min(allowed)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(1 for parameter in positional if parameter.default is parameter.empty)
    most = sys.maxsize if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    fitting = [count for count in allowed if least <= count <= most]
    if not fitting or named:
        found = f"{least} to {most}" if least < most < sys.maxsize else str(least)
        raise WrongArity(name, found + (f" and {', '.join(named)}" if named else ""), allowed, hint, at)
    return least if least in fitting else max(fitting)


def _with_fixed_closure(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the constants that it closes over bound to their current values.

    In `for region in regions: orders.filter(lambda v: v["region"] == region)` every step means the region of
    its own iteration. A traced lambda captures that value anyway, and one that runs as Python must not differ.
    """
    if type(function) is not FunctionType or function.__closure__ is None or _rebinds(function.__code__):
        return function
    cells = tuple(_fixed(cell) for cell in function.__closure__)
    if all(fixed is cell for fixed, cell in zip(cells, function.__closure__, strict=True)):
        return function
    return rebuilt(function, function.__globals__, cells)


def _fixed(cell: CellType) -> CellType:
    try:
        content = cell.cell_contents
    except ValueError:
        return cell
    return CellType(content) if is_constant(content) else cell


def _rebinds(code: CodeType) -> bool:
    """Whether the code, or nested code, assigns to a variable of an enclosing function."""
    stored = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    nested = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return not stored.isdisjoint(code.co_freevars) or any(map(_rebinds, nested))


def rebuilt(function: FunctionType, scope: dict[str, Any], cells: tuple[CellType, ...]) -> FunctionType:
    """Return the same function with other globals and other closure variables."""
    copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__dict__.update(function.__dict__)
    return copy


def source_of(code: CodeType) -> str:
    """Return the source of a function or lambda, as one line for a lambda; "" if it cannot be found."""
    candidates = [node for node in _functions(code.co_filename) if _matches(node, code)]
    if len(candidates) > 1:
        candidates = [node for node in candidates if _encloses(node, code)]
    if not candidates:
        return ""
    # Of nested lambdas on one line, the one that starts last is the innermost.
    node = max(candidates, key=lambda found: (found.lineno, found.col_offset))
    text = ast.get_source_segment("".join(linecache.getlines(code.co_filename)), node) or ""
    return " ".join(text.split()) if isinstance(node, ast.Lambda) else text


@lru_cache(maxsize=32)
def _functions(filename: str) -> tuple[ast.Lambda | ast.FunctionDef, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda | ast.FunctionDef))


def _matches(node: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    """Whether the node starts on the code's first line and has its parameters."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return (
        _first_line(node) == code.co_firstlineno
        and isinstance(node, ast.Lambda) == (code.co_name == "<lambda>")
        and names == list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    )


def _first_line(node: ast.Lambda | ast.FunctionDef) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _encloses(node: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    """Whether all of the code's instructions are inside the node."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    for line, end_line, column, end_column in code.co_positions():
        # The first instructions have the position of the whole definition, column 0 to 0.
        if line is None or end_line is None or column is None or end_column is None or (column, end_column) == (0, 0):
            continue
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return True
