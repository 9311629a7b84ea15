"""The rows of the matrix: each breaks one thing, mends it as a user would, and proves that the answer is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.scene import Scene

VERDICT = "equal to the oracle, nothing lost, nothing twice"


class NotHere(Exception):
    """This machine lacks what a row needs; the row says so, and is neither held nor missed."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was done. Only a comparison with the oracle makes one, so a row cannot end well without."""

    done: str

    def __str__(self) -> str:
        return f"{self.done}; {VERDICT}"


@dataclass(frozen=True, slots=True)
class Row:
    """`servers` names what it talks to besides Spark."""

    name: str
    does: str
    play: Callable[[Scene], Proof]
    servers: tuple[str, ...] = ()


ROWS: dict[str, Row] = {}


def row(
    name: str, does: str, *, servers: tuple[str, ...] = ()
) -> Callable[[Callable[[Scene], Proof]], Callable[[Scene], Proof]]:
    """Puts a function into the matrix."""

    def register(play: Callable[[Scene], Proof]) -> Callable[[Scene], Proof]:
        assert name not in ROWS, f"two rows are called {name}"
        ROWS[name] = Row(name, does, play, servers)
        return play

    return register
