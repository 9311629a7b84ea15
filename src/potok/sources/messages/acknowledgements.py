"""Acknowledge deliveries in their order."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Delivery(Generic[T]):
    """What was delivered together, and whether it is settled."""

    __slots__ = ("problem", "settled", "tags")

    def __init__(self, tags: T) -> None:
        self.tags = tags
        self.settled = False
        self.problem: str | None = None


class Acknowledgements(Generic[T]):
    """The deliveries of one connection that are not acknowledged yet: none is before those that came earlier."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery[T]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, tags: T) -> Delivery[T]:
        delivery = Delivery(tags)
        self._waiting.append(delivery)
        return delivery

    def take_back(self) -> None:
        """Forget the last delivery, which was not handed over."""
        self._waiting.pop()

    def settle(self, delivery: Delivery[T], problem: str | None) -> list[Delivery[T]]:
        """Note that a delivery is settled, and return those that can be acknowledged."""
        delivery.settled, delivery.problem = True, problem
        found = []
        while self._waiting and self._waiting[0].settled:
            found.append(self._waiting.popleft())
        return found
