"""Find the tables and topics that a function uses: by the names that it and its callees look up."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

DEPTH = 4
"""How far calls and attributes are followed."""


def used_objects(function: Any, kinds: tuple[type, ...], apart: type) -> list[Any]:
    """Return the objects of some kinds that a function can reach, each once, in the order in which they are found; not
    those that it could only reach through an object of the kind `apart`, which has them all.
    """
    found: list[Any] = []
    seen: set[int] = set()
    ahead: list[tuple[Any, int]] = [(function, 0)]
    while ahead:
        item, depth = ahead.pop(0)
        if id(item) in seen or isinstance(item, apart):
            continue
        seen.add(id(item))
        if isinstance(item, kinds):
            found.append(item)
        elif depth < DEPTH:
            ahead += [(other, depth + 1) for other in _reached(item, kinds)]
    return found


def _reached(item: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(item, MethodType):
        yield from (item.__func__, item.__self__)
    elif isinstance(item, FunctionType):
        yield from _of_function(item)
    elif isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list | tuple | set):
        yield from item
    elif hasattr(item, "__wrapped__"):
        yield item.__wrapped__
    elif not isinstance(item, ModuleType | type) and hasattr(item, "__dict__"):
        # A user's object: its attributes, such as the tables of a service.
        yield from (value for value in vars(item).values() if isinstance(value, (*kinds, dict, list, FunctionType)))


def _of_function(function: FunctionType) -> Iterator[Any]:
    names = set(_names(function.__code__))
    scope = function.__globals__
    for name in sorted(names & scope.keys()):
        value = scope[name]
        if isinstance(value, ModuleType):
            yield from (vars(value)[inner] for inner in sorted(names & vars(value).keys()))
        else:
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    yield from (function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).values()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def has_ampersand(function: Any) -> bool:
    """Whether the code of a function has `a & b`, which may combine two streams."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and any(
        step.opname == "BINARY_OP" and step.argrepr in ("&", "&=") for step in dis.get_instructions(code)
    )


def mentions(function: Any, *names: str) -> bool:
    """Whether the code of a function looks up one of these names."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and not set(names).isdisjoint(_names(code))
