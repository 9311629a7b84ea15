"""Where the marks of a Kafka log lie, which Kafka has not: in a directory, or in books on a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from potok.connectors.books import BookChanged, Books
from potok.log.errors import MarkChanged

_PROTECTED = "protected/"


class Home(Protocol):
    """What a log without marks of its own needs somebody for."""

    def mark(self, name: str) -> bytes | None: ...

    def marks(self, prefix: str) -> dict[str, bytes]: ...

    def set_marks(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None: ...

    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None: ...

    def protected(self) -> dict[tuple[str, int], int]: ...


class BooksHome:
    """Books on a server as a home: nothing that matters is on the disk of the machine that runs a query."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def mark(self, name: str) -> bytes | None:
        return self._books.mark(name)

    def marks(self, prefix: str) -> dict[str, bytes]:
        return self._books.marks(prefix)

    def set_marks(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        try:
            self._books.set_marks(updates, expect)
        except BookChanged as error:
            raise MarkChanged(error.name) from error

    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        places = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
        self._books.set_marks({_PROTECTED + owner: json.dumps(places).encode() if places else None})

    def protected(self) -> dict[tuple[str, int], int]:
        """The least offset of each partition that somebody needs."""
        least: dict[tuple[str, int], int] = {}
        for data in self._books.marks(_PROTECTED).values():
            for topic, partition, offset in json.loads(data):
                least[topic, partition] = min(offset, least.get((topic, partition), offset))
        return least
