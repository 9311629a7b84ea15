"""The order in which an aggregate folded its events, found again from the topic of its events.

Its own events have a sequence. An event of another writer has none: it was folded when it was read, which may have been
after events that follow it in the topic. The sequence of the next own event shows how many had been folded before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
E = TypeVar("E")


class Gap(ValueError):
    """An own event whose predecessors are missing."""

    def __init__(self, sequence: int, version: int) -> None:
        super().__init__(f"the event has sequence {sequence}, but the aggregate has version {version}")


class Refolded(NamedTuple, Generic[S, E]):
    """The state up to the last own event, and the foreign events whose place after it is not known yet."""

    known: S
    open: list[E]


def with_own(
    before: Refolded[S, E], event: E, sequence: int, version_of: Callable[[S], int], fold: Callable[[S, E], S]
) -> Refolded[S, E]:
    """Fold an own event after as many foreign ones as its sequence says; one that was folded already changes nothing.

    A foreign event that cannot be folded is left out, as it was when it was first read.
    """
    known, rest = before.known, list(before.open)
    if sequence <= version_of(known):
        return before
    while version_of(known) < sequence - 1:
        if not rest:
            raise Gap(sequence, version_of(known))
        known = tried(known, rest.pop(0), fold)
    return Refolded(fold(known, event), rest)


def with_open(before: Refolded[S, E], fold: Callable[[S, E], S]) -> S:
    """Fold what is still open: no own event follows it."""
    found = before.known
    for event in before.open:
        found = tried(found, event, fold)
    return found


def tried(state: S, event: E, fold: Callable[[S, E], S]) -> S:
    """Fold a foreign event, unless it cannot be: it is a dead letter then, and not part of the aggregate."""
    try:
        return fold(state, event)
    except Exception:  # noqa: BLE001 - the user's methods may raise anything
        return state
