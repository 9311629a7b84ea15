"""Read, resolve and replay dead letters."""

from potok.dead_letters.dead_letters import LetterBox
from potok.dead_letters.selection import Wanted

__all__ = ["LetterBox", "Wanted"]
