"""The allow-list of bytecode that may be traced. A proxy does not see everything that is done with it: `x is None`,
`isinstance(x, int)` and `time.time()` do not call it, and a branch taken once is taken for every record. So the
bytecode is checked before it is run. Only straight-line code passes, and a small simulation of the stack follows what
is called and on what: methods of the proxies and Potok's functions, nothing else.

Global names and closure variables must hold constants. Their values are captured when the topology is built:
the workers get a copy of the function in any case, so later changes in the program never reach them.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Final

from potok.expressions.literals import is_constant
from potok.expressions.operations.registry import METHODS
from potok.expressions.tracing.reasons import reason_for
from potok.expressions.tracing.refusal import NotTraceable
from potok.expressions.tracing.stack_slots import (
    Constant,
    Container,
    Known,
    Member,
    Nothing,
    Slot,
    StandIn,
    attribute,
    builtin,
    combined,
    is_number,
    outside,
    value,
)


def check(function: Callable[..., object], arguments: int) -> FunctionType:
    """Return the function itself, if it may be traced with this number of arguments."""
    if type(function) is not FunctionType:
        raise NotTraceable(_other_callable(function))
    code = function.__code__
    reason = reason_for(code)
    if reason is not None:
        raise NotTraceable(reason)
    if code.co_argcount < arguments:
        raise NotTraceable(f"it takes {code.co_argcount} arguments, not {arguments}")
    _Simulation(function, arguments).run()
    return function


def captured(function: FunctionType) -> dict[str, object]:
    """Return the closure variables that are set."""
    values: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    return values


def _other_callable(function: object) -> str:
    name = getattr(function, "__name__", "")
    if isinstance(function, type):
        return f"it is the class {name}; write a lambda"
    if inspect.isbuiltin(function) or inspect.ismethoddescriptor(function):
        return f"it is the built-in {name}; write a lambda"
    if inspect.ismethod(function):
        return "it is a bound method; write a lambda or a function"
    return f"it is a {type(function).__name__}; write a lambda or a function"


class _Simulation:
    """Reads the code once from top to bottom: without branches, that is the order in which it runs."""

    def __init__(self, function: FunctionType, arguments: int) -> None:
        self._function = function
        self._stack: list[Slot] = []
        self._locals = _parameters(function, arguments)

    def run(self) -> None:
        for instruction in dis.get_instructions(self._function.__code__):
            if instruction.opname in _IGNORED:
                continue
            step = _STEPS.get(instruction.opname)
            if step is None:
                raise NotTraceable(f"its bytecode has {instruction.opname}, which is not traced")
            step(self, instruction)

    def push(self, *slots: Slot) -> None:
        self._stack.extend(slots)

    def pop(self, count: int = 1) -> list[Slot]:
        if len(self._stack) < count:
            raise NotTraceable("its bytecode is not understood")
        start = len(self._stack) - count
        taken = self._stack[start:]
        del self._stack[start:]
        return taken

    def load_const(self, instruction: dis.Instruction) -> None:
        if not is_constant(instruction.argval):
            raise NotTraceable(f"it uses a constant {type(instruction.argval).__name__}")
        self.push(Constant(instruction.argval))

    def load_fast(self, instruction: dis.Instruction) -> None:
        for name in _names(instruction):
            self.push(self._local(name))

    def store_fast(self, instruction: dis.Instruction) -> None:
        for name in _names(instruction):
            (self._locals[name],) = self.pop()

    def store_then_load(self, instruction: dis.Instruction) -> None:
        stored, loaded = _names(instruction)
        (self._locals[stored],) = self.pop()
        self.push(self._local(loaded))

    def _local(self, name: str) -> Slot:
        if name not in self._locals:
            raise NotTraceable(f"it reads {name} before it is set")
        return self._locals[name]

    def load_deref(self, instruction: dis.Instruction) -> None:
        self.push(outside(instruction.argval, captured(self._function)))

    def load_global(self, instruction: dis.Instruction) -> None:
        name, scope = instruction.argval, self._function.__globals__
        if name not in scope and hasattr(builtins, name):
            raise builtin(name)
        slot = outside(name, scope)
        self.push(*((Nothing(), slot) if (instruction.arg or 0) & 1 else (slot,)))

    def push_null(self, _: dis.Instruction) -> None:
        self.push(Nothing())

    def load_attribute(self, instruction: dis.Instruction) -> None:
        (owner,) = self.pop()
        # Since 3.12 the lowest bit of LOAD_ATTR means that a call follows; older versions have LOAD_METHOD.
        before_call = instruction.opname == "LOAD_METHOD" or (_MERGED and bool((instruction.arg or 0) & 1))
        member = attribute(owner, instruction.argval)
        self.push(*((member, Nothing()) if before_call else (member,)))

    def operate(self, instruction: dis.Instruction) -> None:
        count = _OPERANDS[instruction.opname]
        operands = [value(slot) for slot in self.pop(count)]
        if instruction.argrepr in ("%", "%=") and not is_number(operands[0]):
            # A format string without a placeholder never evaluates the right side.
            raise NotTraceable("it formats text; use potok.functions.concat")
        if instruction.opname == "CALL_INTRINSIC_1" and instruction.arg != _UNARY_POSITIVE:
            raise NotTraceable("its bytecode has CALL_INTRINSIC_1, which is not traced")
        self.push(combined(*operands))

    def build(self, instruction: dis.Instruction) -> None:
        count = instruction.arg or 0
        size = {"BUILD_MAP": 2 * count, "BUILD_CONST_KEY_MAP": count + 1}.get(instruction.opname, count)
        for slot in self.pop(size):
            value(slot)
        self.push(Container())

    def extend(self, instruction: dis.Instruction) -> None:
        for slot in self.pop(2 if instruction.opname == "MAP_ADD" else 1):
            value(slot)

    def call(self, instruction: dis.Instruction) -> None:
        names = 1 if instruction.opname == "CALL_KW" else 0
        operands = [value(slot) for slot in self.pop((instruction.arg or 0) + names)]
        called = [slot for slot in self.pop(2) if not isinstance(slot, Nothing)]
        match called:
            case [Member(name)] if name in METHODS:
                self.push(StandIn())
            case [Member(name)]:
                raise NotTraceable(f"it calls the method {name}(), which is not traced")
            case [Known()]:
                self.push(combined(*operands))
            case _:
                raise NotTraceable("it calls a function that is not in potok.functions")

    def discard(self, _: dis.Instruction) -> None:
        raise NotTraceable("it discards a computed value")

    def result(self, instruction: dis.Instruction) -> None:
        if instruction.opname == "RETURN_CONST":
            self.load_const(instruction)
        value(*self.pop())


def _names(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the local variables of an instruction: since 3.13 there may be two."""
    return instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)


def _parameters(function: FunctionType, arguments: int) -> dict[str, Slot]:
    """The arguments are proxies, and every further parameter must have a constant default."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    slots: dict[str, Slot] = dict.fromkeys(names[:arguments], StandIn())
    defaults: dict[str, object] = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    for name in (*names[arguments:], *code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]):
        if name not in defaults or not is_constant(defaults[name]):
            raise NotTraceable(f"the parameter {name} has no constant default")
        slots[name] = Constant(defaults[name])
    return slots


_MERGED: Final = sys.version_info >= (3, 12)
_UNARY_POSITIVE: Final = 5

_IGNORED: Final = frozenset({"RESUME", "NOP", "PRECALL", "KW_NAMES", "COPY_FREE_VARS", "EXTENDED_ARG", "CACHE"})

_OPERANDS: Final = {
    "UNARY_NEGATIVE": 1, "UNARY_INVERT": 1, "UNARY_POSITIVE": 1, "CALL_INTRINSIC_1": 1,
    "BINARY_OP": 2, "COMPARE_OP": 2, "BINARY_SUBSCR": 2, "BINARY_SLICE": 3,
}  # fmt: skip

_STEPS: Final[dict[str, Callable[[_Simulation, dis.Instruction], None]]] = {
    "LOAD_CONST": _Simulation.load_const,
    "LOAD_FAST": _Simulation.load_fast,
    "LOAD_FAST_CHECK": _Simulation.load_fast,
    "LOAD_FAST_LOAD_FAST": _Simulation.load_fast,
    "STORE_FAST": _Simulation.store_fast,
    "STORE_FAST_STORE_FAST": _Simulation.store_fast,
    "STORE_FAST_LOAD_FAST": _Simulation.store_then_load,
    "LOAD_DEREF": _Simulation.load_deref,
    "LOAD_GLOBAL": _Simulation.load_global,
    "PUSH_NULL": _Simulation.push_null,
    "LOAD_ATTR": _Simulation.load_attribute,
    "LOAD_METHOD": _Simulation.load_attribute,
    "CALL": _Simulation.call,
    "CALL_KW": _Simulation.call,
    "POP_TOP": _Simulation.discard,
    "RETURN_VALUE": _Simulation.result,
    "RETURN_CONST": _Simulation.result,
    **dict.fromkeys(_OPERANDS, _Simulation.operate),
    **dict.fromkeys(
        ("BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_LIST", "BUILD_TUPLE", "BUILD_SET", "BUILD_SLICE"), _Simulation.build
    ),
    **dict.fromkeys(
        ("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "LIST_APPEND", "SET_ADD", "MAP_ADD"), _Simulation.extend
    ),
}
