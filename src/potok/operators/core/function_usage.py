"""What a function does with its arguments, derived from its bytecode."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR"))
_CHANGES = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"))
_ALL_NAMES = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint"))
"""Builtins that access an argument without a name in the bytecode."""

_HARMLESS = (str, int, float, bool, len, abs, round, min, max, sum, sorted, repr, ord, chr)


def uses_no_attributes(function: Callable[..., Any]) -> bool:
    """Whether a plain dict is enough, without attributes: the function uses only items, operators and harmless
    builtins."""
    # A callable may be any object, and not all objects are hashable.
    return type(function) is FunctionType and _uses_no_attributes(function)


@lru_cache(maxsize=1024)
def _uses_no_attributes(function: FunctionType) -> bool:
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    return all(_harmless(step, function.__globals__) for step in dis.get_instructions(code))


def only_looks_up(function: Callable[..., Any]) -> bool:
    """Whether the function also cannot change the dict."""
    return type(function) is FunctionType and _only_looks_up(function)


@lru_cache(maxsize=1024)
def _only_looks_up(function: FunctionType) -> bool:
    if not _uses_no_attributes(function):
        return False
    return not any(step.opname in _CHANGES or _in_place(step) for step in dis.get_instructions(function))


def _in_place(step: dis.Instruction) -> bool:
    """Whether it is an operator such as `+=`, which changes a list or a dict in place."""
    return step.opname == "BINARY_OP" and step.argrepr.endswith("=")


def fields_read(function: Callable[..., Any], position: int) -> frozenset[str] | None:
    """Return the names that a function looks up in one of its arguments, or None if it uses the argument in another
    way.

    `lambda k, v, total: total + v["amount"]` reads `amount` of its argument 1, so no other field of `v` is shuffled.
    """
    return _fields_read(function, position) if type(function) is FunctionType else None


@lru_cache(maxsize=1024)
def _fields_read(function: FunctionType, position: int) -> frozenset[str] | None:
    code = function.__code__
    if position >= code.co_argcount or code.co_varnames[position] in code.co_cellvars or _ALL_NAMES & {*code.co_names}:
        return None
    name, found = code.co_varnames[position], set[str]()
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    for step, key, use in zip(steps, [*steps[1:], None], [*steps[2:], None, None], strict=True):
        if not _mentions(step, name):
            continue
        plain_load = step.opname in ("LOAD_FAST", "LOAD_FAST_BORROW")
        if not plain_load or key is None or use is None or key.opname != "LOAD_CONST" or not _is_subscript(use):
            return None
        if not isinstance(key.argval, str):
            return None
        found.add(key.argval)
    return frozenset(found)


def _mentions(step: dis.Instruction, name: str) -> bool:
    if not step.opname.startswith(("LOAD_FAST", "STORE_FAST", "DELETE_FAST")):
        return False
    return step.argval == name or (isinstance(step.argval, tuple) and name in step.argval)


def _is_subscript(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")


def _harmless(step: dis.Instruction, scope: dict[str, Any]) -> bool:
    if step.opname in _ATTRIBUTES or step.opname.startswith(("IMPORT", "STORE_GLOBAL", "LOAD_NAME")):
        return False
    if step.opname != "LOAD_GLOBAL":
        return True
    found = scope.get(step.argval, getattr(builtins, step.argval, None))
    return isinstance(found, str | int | float | bool | type(None)) or any(found is harmless for harmless in _HARMLESS)
