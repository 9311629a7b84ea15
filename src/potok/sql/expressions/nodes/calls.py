"""Function calls and their lambdas."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Overload
from potok.sql.types import quoted


@dataclass(frozen=True, slots=True)
class Parameter(Typed):
    """A parameter of a lambda, in its body."""

    name: str

    def __str__(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class LambdaOf(Typed):
    """A lambda; its type is that of its body."""

    parameters: tuple[str, ...]
    body: Typed

    @property
    def children(self) -> tuple[Typed, ...]:
        return (self.body,)

    def __str__(self) -> str:
        names = ", ".join(quoted(name) for name in self.parameters)
        return f"{names if len(self.parameters) == 1 else f'({names})'} => {self.body}"


@dataclass(frozen=True, slots=True)
class FunctionCall(Typed):
    """A call of a scalar or table function. Built-in functions are pickled by name and overload number; a user-defined
    function is pickled with the call, because other processes do not have it."""

    name: str
    arguments: tuple[Typed, ...]
    number: int = 0
    overload: Overload | None = None

    @property
    def children(self) -> tuple[Typed, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"
