"""Assign work to tasks: the largest piece first, each to the task with the least work so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Piece = TypeVar("Piece")


def balance(pieces: Sequence[Piece], tasks: int, size: Callable[[Piece], int]) -> list[list[Piece]]:
    """Assign pieces to at most `tasks` tasks of about equal size."""
    assigned: list[list[Piece]] = [[] for _ in range(min(tasks, len(pieces)))]
    loads = [0] * len(assigned)
    for piece in sorted(pieces, key=size, reverse=True):
        least = loads.index(min(loads))
        assigned[least].append(piece)
        loads[least] += size(piece)
    return assigned
