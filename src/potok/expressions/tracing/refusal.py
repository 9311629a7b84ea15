"""Why a lambda is not traced, and the errors that tracing finds while the topology is built."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from potok.errors import Location, TopologyError


class NotTraceable(Exception):
    """Something in a lambda has no exact columnar form. This is not an error: the step runs as Python instead."""

    @property
    def reason(self) -> str:
        return str(self)


class UnknownField(TopologyError):
    """A lambda reads a field that the declared type does not have."""

    def __init__(self, name: str, of: str, known: Sequence[str] | None, at: Location | None = None) -> None:
        """`known` is None if there are no fields, because the value is not a struct."""
        self.name = name
        self.matches = tuple(get_close_matches(name, known or (), n=3, cutoff=0.6))
        if known is None:
            hint = f"use {of} itself, or declare a type with fields"
        elif self.matches:
            hint = "did you mean " + " or ".join(f'"{match}"' for match in self.matches) + "?"
        else:
            hint = f"it has: {', '.join(known)}"
        super().__init__(f'{of} has no field "{name}"', hint=hint, at=at)


class InvertedBool(TopologyError):
    """`~` on a condition: Python computes -2 or -1, and both are true."""

    def __init__(self, operand: str, at: Location | None = None) -> None:
        super().__init__(
            f"~({operand}) is always true: Python inverts the bits of a bool, and ~True is -2",
            hint="use filter_not, the opposite comparison, or potok.functions.not_(...)",
            at=at,
        )
