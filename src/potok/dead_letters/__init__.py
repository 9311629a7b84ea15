"""Read, resolve and replay dead letters."""

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.selection import Selection

__all__ = ["DeadLetters", "Selection"]


def __dir__() -> list[str]:
    return sorted(__all__)
