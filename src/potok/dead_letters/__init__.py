"""Read, resolve and replay dead letters."""

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.selection import Wanted

__all__ = ["DeadLetters", "Wanted"]


def __dir__() -> list[str]:
    return sorted(__all__)
