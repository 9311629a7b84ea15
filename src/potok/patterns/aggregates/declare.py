"""Declare aggregates: the commands that they decide, and the events that change them."""

from __future__ import annotations

import dataclasses
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

from potok.errors import Location, PotokError, TopologyError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

AGGREGATE_MARK = "__potok_aggregate__"
COMMAND_MARK = "__potok_command__"
APPLIES_MARK = "__potok_applies__"

NAMES: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()
"""The names that annotations of a class may use besides those of its module: the class may be local to a function."""


class RejectedError(PotokError):
    """A command that the aggregate does not accept in its state. The text is the reason in the result."""


@dataclasses.dataclass(frozen=True, slots=True)
class AggregateDeclaration:
    """What `@potok.aggregate` was given."""

    name: str
    events: str
    at: Location | None


@dataclasses.dataclass(frozen=True, slots=True)
class CommandDeclaration:
    """What `@potok.command` was given."""

    creates: bool
    at: Location | None


def aggregate(name: str, *, events: str) -> Callable[[C], C]:
    """Declare a class as an event-sourced aggregate. Its fields are the state, and each needs a default.

    >>> @aggregate("orders", events="order-events")
    ... class Order:
    ...     status: str = "new"

    Args:
        name: Names the table, and the topics `NAME-commands` and `NAME-results`.
        events: The topic of the events.
    """
    at = Location.of_caller()
    if not name or not events:
        hint = 'write @potok.aggregate("orders", events="order-events")'
        raise TopologyError("an aggregate needs a name and a topic of events", hint=hint, at=at)

    def mark(cls: C) -> C:
        made = _state_class(cls, at)
        # Only names that an annotation can mean; the module of the class is searched as well.
        caller = sys._getframe(1).f_locals
        names = {key: value for key, value in caller.items() if isinstance(value, type)}
        setattr(made, AGGREGATE_MARK, AggregateDeclaration(name, events, at))
        NAMES[made] = names
        return made

    return mark


@overload
def command(function: F) -> F: ...
@overload
def command(*, creates: bool = False) -> Callable[[F], F]: ...
def command(function: F | None = None, *, creates: bool = False) -> F | Callable[[F], F]:
    """Declare a method that decides a command: it yields events, or raises `potok.RejectedError`.

    Args:
        function: The method; its argument is annotated with the class of the command.
        creates: The command creates the aggregate, and is rejected if it exists. Once a class has such a command, all
            others are rejected until the aggregate exists.
    """
    at = Location.of_caller()

    def mark(found: F) -> F:
        setattr(found, COMMAND_MARK, CommandDeclaration(creates, at))
        return found

    return mark if function is None else mark(function)


def applies(function: F) -> F:
    """Declare a method that changes the aggregate; its argument is annotated with the class of an event.

    It must not fail and must not depend on anything but the aggregate and the event: it is called again whenever the
    state is rebuilt.
    """
    setattr(function, APPLIES_MARK, Location.of_caller() or True)
    return function


def _state_class(cls: C, at: Location | None) -> C:
    """Return the class as a dataclass that only events change."""
    made: Any = cls
    if "__dataclass_fields__" not in cls.__dict__:
        try:
            made = dataclasses.dataclass(cls)
        except (TypeError, ValueError) as error:
            hint = "give every field a default; write items: list[str] = field(default_factory=list)"
            raise TopologyError(f"the fields of {cls.__name__} are not a state: {error}", hint=hint, at=at) from error
    for field in dataclasses.fields(made):
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            hint = f"give it the value that it has before the first event: {field.name}: {_spelled(field)} = ..."
            raise TopologyError(f'field "{field.name}" of {cls.__name__} has no default', hint=hint, at=at)
    return made  # type: ignore[no-any-return]


def _spelled(field: dataclasses.Field[Any]) -> str:
    return field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
