"""Whether the code of a function tells all that it can reach.

Most functions of agents name their tables and topics, and call a few things that have nothing to do with either. Where
something is looked up that could lead anywhere (an object of the user's own, the app, a name made at run time), nobody
can tell.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from potok.kernels.agents_values import IMMUTABLE

_LEADS_ANYWHERE = frozenset(("eval", "exec", "getattr", "globals", "locals", "vars", "__import__"))
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Reach(NamedTuple):
    """What a function names, in any way: objects of the kinds that were asked for, and lists and the like, by which it
    may share something with others."""

    named: list[Any]
    ties: list[Any]


def reach_of(function: Any, kinds: tuple[type, ...], apart: type) -> Reach | None:
    """What a function can reach, or None if that may be more than its code, and what that calls, names. What is of the
    kind `apart` has all objects of these kinds."""
    seen: set[int] = set()
    found = Reach([], [])
    ahead: list[Any] = [function]
    while ahead:
        item = ahead.pop(0)
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, kinds):
            found.named.append(item)
        elif isinstance(item, apart) or isinstance(_attributes(item).get("app"), apart):
            return None
        elif not _harmless(item):
            followed = _followed(item)
            if followed is None:
                return None
            if isinstance(item, Collection) and not isinstance(item, tuple | frozenset):
                found.ties.append(item)
            ahead += followed
    return found


def _attributes(item: Any) -> dict[str, Any]:
    return {} if isinstance(item, type) else getattr(item, "__dict__", {})


def _harmless(item: Any) -> bool:
    """What is no way to a table: plain values, and what libraries define."""
    if type(item) in IMMUTABLE or isinstance(item, Enum):
        return True
    if isinstance(item, BuiltinFunctionType):
        return item.__name__ not in _LEADS_ANYWHERE
    return isinstance(item, type | FunctionType | ModuleType) and _of_library(item)


def _of_library(named: Any) -> bool:
    name = named.__name__ if isinstance(named, ModuleType) else getattr(named, "__module__", None) or ""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or package == __name__.partition(".")[0]:
        return package != "__main__"
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and file.startswith(_LIBRARIES)


def _followed(item: Any) -> list[Any] | None:
    """What an item leads to; None if nobody can tell."""
    if isinstance(item, FunctionType):
        return _of_function(item)
    if isinstance(item, MethodType):
        return [item.__func__, item.__self__]
    if isinstance(item, partial):
        return [item.func, *item.args, *item.keywords.values()]
    if isinstance(item, Mapping):
        return list(item.values())
    if isinstance(item, Collection):
        return list(item)
    if isinstance(item, type):
        return [getattr(part, "__func__", part) for part in _parts(item)]
    if _of_library(type(item)):
        # A logger, a compiled pattern, a client: what was put into it, but not all that it is made of.
        return [value for value in _attributes(item).values() if not _of_library(type(value))]
    return None


def _parts(class_: type) -> Iterator[Any]:
    """The functions of a class of the user's, and of those that it is made from."""
    for each in class_.__mro__:
        if not _of_library(each):
            for part in vars(each).values():
                if isinstance(part, FunctionType | classmethod | staticmethod):
                    yield part
                elif isinstance(part, property):
                    yield from (function for function in (part.fget, part.fset, part.fdel) if function is not None)


def _of_function(function: FunctionType) -> list[Any] | None:
    names = set(_names(function.__code__))
    if names & _LEADS_ANYWHERE or not all(map(_imported, _imports(function.__code__))):
        return None
    found: list[Any] = []
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, ModuleType) and not _of_library(value):
            found += [vars(value)[inner] for inner in names & vars(value).keys()]
        else:
            found.append(value)
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            return None
    return [*found, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _imported(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names and not name.startswith("importlib")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in _inner(code):
        yield from _names(inner)


def _imports(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            yield step.argval
    for inner in _inner(code):
        yield from _imports(inner)


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (item for item in code.co_consts if isinstance(item, CodeType))
