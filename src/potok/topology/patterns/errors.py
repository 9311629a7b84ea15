"""Patterns that are refused."""

from __future__ import annotations

from potok.errors import Location, TopologyError


class PatternError(TopologyError):
    """A pattern that cannot be used."""

    def __init__(self, message: str, *, hint: str = "", at: Location | None = None) -> None:
        super().__init__(message, hint=hint, at=at or Location.of_caller())


class PatternSyntaxError(PatternError):
    """Text that is not a pattern; the message points at the position."""

    def __init__(self, message: str, text: str, position: int, hint: str) -> None:
        self.position = position
        super().__init__(f"{message} at position {position + 1}\n  {text}\n  {' ' * position}^", hint=hint)


class UnknownVariable(PatternError):
    """A variable that the pattern does not define."""

    def __init__(self, name: str, known: list[str], where: str) -> None:
        listed = ", ".join(f'"{one}"' for one in known) or "none"
        super().__init__(f'{where} names "{name}", which the pattern does not have', hint=f"it has: {listed}")
