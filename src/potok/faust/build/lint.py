"""Find variables that agents change and no other code sees: each Spark worker process has its own copy of a module.

In Faust, agents, timers and pages are one process, and a global is visible to all of them. Here a change of it would
be lost silently, so the worker warns about it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
import textwrap
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from potok.faust.agent import Agent

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_HOLDS = (list, dict, set, deque, bytearray)
_CHANGES = frozenset(
    (
        *("add", "discard", "remove", "update", "clear", "pop", "popitem", "setdefault"),
        *("append", "appendleft", "extend", "extendleft", "insert", "popleft", "sort", "reverse"),
        *("difference_update", "intersection_update", "symmetric_difference_update", "subtract"),
    )
)


def lost_changes(agent: Agent) -> list[str]:
    """Return warnings about variables outside of an agent that it, or its callees, change."""
    own = [agent.fun, *(sink for sink in agent.sinks if callable(sink)), agent.on_error]
    names = dict.fromkeys(name for function in _functions(own) for name in _changed(function))
    return [
        f'agent "{agent.name}" changes the variable "{name}", which is local to a worker process '
        "and invisible to timers, tasks and pages: store state in tables"
        for name in names
    ]


def _functions(own: list[Any]) -> Iterator[FunctionType]:
    """Return functions of the program, and those that they mention, each once."""
    seen: set[FunctionType] = set()
    ahead = list(own)
    while ahead:
        item = ahead.pop(0)
        if isinstance(item, partial):
            item = item.func
        found = inspect.unwrap(item.__func__ if isinstance(item, MethodType) else item) if callable(item) else None
        if not isinstance(found, FunctionType) or found in seen or _of_library(found):
            continue
        seen.add(found)
        yield found
        ahead += [value for value in _nonlocals(found).values() if isinstance(value, FunctionType)]


def _nonlocals(function: FunctionType) -> dict[str, Any]:
    """Return the nonlocal names of a function: variables of its module and of enclosing functions."""
    try:
        around = inspect.getclosurevars(function)
    except ValueError:
        # A closure variable without a value yet.
        return {}
    return {**around.globals, **around.nonlocals}


def _changed(function: FunctionType) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        # Entered at a prompt, or part of a longer line: static analysis is not possible.
        return
    outside = {name for name, value in _nonlocals(function).items() if isinstance(value, _HOLDS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (name for name in node.names if name in _bound(tree))
        elif (name := _changed_in_place(node)) in outside:
            yield name


def _bound(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _changed_in_place(node: ast.AST) -> str:
    """Return the variable whose value a statement modifies in place."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _root(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        return _root(node.func.value)
    return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _of_library(named: Any) -> bool:
    """Whether an object belongs to a library, and not to the user's program."""
    name = named.__name__ if isinstance(named, ModuleType) else getattr(named, "__module__", None) or ""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or package == __name__.partition(".")[0]:
        return package != "__main__"
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and file.startswith(_LIBRARIES)
