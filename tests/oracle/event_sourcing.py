"""What an aggregate must make of commands and of the events of others, in plain Python: one account book."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """A record before it is read: `kind` is `command` or `event`; the place is known once it is in the log."""

    kind: str
    key: str
    at: int
    name: str
    amount: int
    id: str | None = None
    expected: str = "any"


class Answer(NamedTuple):
    id: str
    status: str
    version: int


@dataclass
class Book:
    """An account: its history, and what it answered."""

    history: list[tuple[str, int, bool]] = field(default_factory=list)
    balance: int = 0
    answers: list[Answer] = field(default_factory=list)
    remembered: dict[str, tuple[int, Answer]] = field(default_factory=dict)
    remembered_at: int = -1

    def add(self, name: str, amount: int, *, own: bool) -> None:
        self.history.append((name, amount, own))
        self.balance += amount if name == "deposited" else -amount


Placed = tuple[tuple[str, int], int, Sent]
"""A record with its partition and its offset."""


def in_order(part: list[Placed], reached: dict[tuple[str, int], int]) -> Iterator[Sent]:
    """Yield records by the greatest time so far in their partition, then by partition and offset. `reached` is the
    greatest time of what precedes them."""
    keyed: list[tuple[int, tuple[str, int], int, Sent]] = []
    for partition, offset, sent in sorted(part):
        reached[partition] = max(reached.get(partition, -1), sent.at)
        keyed.append((reached[partition], partition, offset, sent))
    for _, _, _, sent in sorted(keyed, key=lambda item: item[:3]):
        yield sent


def play(books: dict[str, Book], sent: Sent, place: str, keep_ms: int) -> None:
    """Let one record happen."""
    book = books.setdefault(sent.key, Book())
    if sent.kind == "event":
        if sent.amount >= 0:  # a negative one cannot be applied
            book.add(sent.name, sent.amount, own=False)
        return
    known = None if sent.id is None else book.remembered.get(sent.id)
    now = max(sent.at, book.remembered_at)
    if known is not None and known[0] + keep_ms >= now:
        book.answers.append(known[1])
        return
    status = _decide(book, sent)
    answer = Answer(sent.id or place, status, len(book.history))
    book.answers.append(answer)
    if sent.id is not None:
        book.remembered[sent.id] = now, answer
        book.remembered_at = now


def _decide(book: Book, sent: Sent) -> str:
    version = len(book.history)
    if sent.name == "Unknown" or sent.expected == "soon":
        return "invalid"
    wanted = {"any": True, "none": version == 0, "exists": version > 0}
    if not wanted.get(sent.expected, sent.expected == str(version)):
        return "wrong_version"
    if sent.name == "Deposit":
        for _ in range(2):
            book.add("deposited", sent.amount, own=True)
        return "accepted"
    if sent.name == "Withdraw":
        if sent.amount > book.balance:
            return "rejected"
        book.add("withdrawn", sent.amount, own=True)
        return "accepted"
    return "failed"


def states(books: dict[str, Book]) -> dict[str, Any]:
    return {
        key: {"version": len(book.history), "state": {"balance": book.balance}}
        for key, book in books.items()
        if book.history
    }
