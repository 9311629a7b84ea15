"""What a function does with its arguments, as far as its bytecode tells."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR"))
_CHANGES = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"))
_HARMLESS = (str, int, float, bool, len, abs, round, min, max, sum, sorted, repr, ord, chr)


@lru_cache(maxsize=1024)
def asks_no_attributes(function: Callable[..., Any]) -> bool:
    """Whether a plain dict does as well as one with attributes: only items, operators and harmless builtins are
    used."""
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    return all(_harmless(step, function.__globals__) for step in dis.get_instructions(code))


@lru_cache(maxsize=1024)
def only_looks_up(function: Callable[..., Any]) -> bool:
    """Whether, besides, it cannot change the dict that it is given."""
    if not asks_no_attributes(function):
        return False
    return not any(step.opname in _CHANGES for step in dis.get_instructions(function))


def _harmless(step: dis.Instruction, scope: dict[str, Any]) -> bool:
    if step.opname in _ATTRIBUTES or step.opname.startswith(("IMPORT", "STORE_GLOBAL", "LOAD_NAME")):
        return False
    if step.opname != "LOAD_GLOBAL":
        return True
    found = scope.get(step.argval, getattr(builtins, step.argval, None))
    return isinstance(found, str | int | float | bool | type(None)) or any(found is harmless for harmless in _HARMLESS)
