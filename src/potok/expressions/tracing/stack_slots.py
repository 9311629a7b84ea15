"""Describe a value on Python's stack while straight-line code is checked, and the operations that it allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from potok.expressions.functions import FUNCTIONS
from potok.expressions.literals import is_constant
from potok.expressions.tracing.refusal import NotTraceable


@dataclass(frozen=True, slots=True)
class Constant:
    """A plain value; for the result of computing with constants, only the fact that it is plain."""

    value: object = None
    known: bool = True


@dataclass(frozen=True, slots=True)
class StandIn:
    """A proxy, or the result of an operation on one."""


@dataclass(frozen=True, slots=True)
class Container:
    """A dict, list, set, tuple or slice that the code builds, or an element of one."""


@dataclass(frozen=True, slots=True)
class Member:
    """An attribute of a proxy: a field, unless it is called."""

    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """One of Potok's functions."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of Potok, before one of its functions is looked up."""

    module: ModuleType


@dataclass(frozen=True, slots=True)
class Nothing:
    """The empty slot that calls have next to the function."""


Slot = Constant | StandIn | Container | Member | Known | Module | Nothing
Value = Constant | StandIn | Container

_INSTEAD: Final = {
    "len": "length", "abs": "absolute", "min": "least", "max": "greatest", "str": "concat", "isinstance": "is_null",
}  # fmt: skip


def value(slot: Slot) -> Value:
    """The slot as an operand."""
    match slot:
        case Member():
            return StandIn()
        case Constant() | StandIn() | Container():
            return slot
    raise NotTraceable("it passes a function or a module around")


def is_number(operand: Value) -> bool:
    """Whether the operand is a number, or a proxy, which checks its own type."""
    return isinstance(operand, StandIn) or (
        isinstance(operand, Constant) and operand.known and isinstance(operand.value, int | float)
    )


def combined(*operands: Value) -> Value:
    """Return the result of an operation on these. A proxy decides for itself, whatever the other operand is."""
    if any(isinstance(operand, StandIn) for operand in operands):
        return StandIn()
    if all(isinstance(operand, Constant) for operand in operands):
        return Constant(known=False)
    return Container()


def attribute(owner: Slot, name: str) -> Slot:
    if isinstance(owner, Module):
        return _from_outside(f"{owner.module.__name__}.{name}", getattr(owner.module, name, None))
    if name.startswith("__"):
        raise NotTraceable(f"it reads {name}")
    if isinstance(owner, StandIn | Member):
        return Member(name)
    raise NotTraceable(f"it reads the attribute {name} of something that is not a field")


def outside(name: str, scope: Mapping[str, object]) -> Slot:
    """Resolve a global name or closure variable of the function."""
    if name not in scope:
        raise NotTraceable(f"the name {name} is not defined")
    return _from_outside(name, scope[name])


def _from_outside(name: str, found: object) -> Slot:
    if any(found is function for function in FUNCTIONS.values()):
        return Known()
    if isinstance(found, ModuleType) and found.__name__.partition(".")[0] == "potok":
        return Module(found)
    if is_constant(found):
        return Constant(found)
    kind = type(found).__name__
    if isinstance(found, list | set | bytearray):
        raise NotTraceable(f"it uses {name}, a {kind}, which could change; make it a tuple or a frozenset")
    raise NotTraceable(f"it uses {name}, a {kind}; only constants and potok.functions are traced")


def builtin(name: str) -> NotTraceable:
    instead = f"; see potok.functions.{_INSTEAD[name]}" if name in _INSTEAD else ""
    return NotTraceable(f"it uses the built-in {name}{instead}")
