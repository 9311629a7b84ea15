"""The books of queries: small marks beside their state, changed by compare-and-set.

The embedded log has marks of its own, which change together with the log. A query that reads and writes Kafka keeps its
ledger here, in the server that has its state too, so that nothing that matters is on the disk of one machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from potok.errors import StateError


class BookChanged(StateError):
    """A mark did not hold what the caller expected, so nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'mark "{name}" was changed by someone else', hint="another process runs the same query; stop one of them"
        )
        self.name = name


class Marks(Protocol):
    """Whatever keeps marks: books, or a log that has marks of its own."""

    def mark(self, name: str) -> bytes | None: ...

    def marks(self, prefix: str) -> dict[str, bytes]: ...

    def set_marks(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None: ...


class Books(ABC):
    """Marks on a server. Every method may be called from any thread and any process."""

    @abstractmethod
    def mark(self, name: str) -> bytes | None: ...

    @abstractmethod
    def marks(self, prefix: str) -> dict[str, bytes]:
        """The marks whose names begin so."""

    @abstractmethod
    def set_marks(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        """Set or delete (None) marks all at once, if those in `expect` hold what they are expected to (None: are
        absent); `BookChanged` otherwise."""

    @abstractmethod
    def close(self) -> None: ...
