"""Count bytes held for clients: request bodies in progress and unsent responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from potok.server.errors import Busy

Connection = Hashable
"""Identity of a connection: the address and port of its client."""


class HeldBytes:
    """Counts held bytes, in total and per connection. Only the event loop calls it.

    Args:
        most: Maximum for all connections together.
        most_each: Maximum for one connection, with all of its requests.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self.most, self.most_each = most, most_each
        self.total = 0
        self._of: Counter[Connection] = Counter()

    def take(self, size: int, connection: Connection) -> None:
        """Count bytes before they are stored; raises `Busy` if there are too many."""
        if self.total + size > self.most or self._of[connection] + size > self.most_each:
            if not self._of[connection]:
                del self._of[connection]
            raise Busy
        self.total += size
        self._of[connection] += size

    def give_back(self, size: int, connection: Connection) -> None:
        self.total -= size
        self._of[connection] -= size
        if not self._of[connection]:
            del self._of[connection]


class Holding:
    """Bytes held by one request, released at its end."""

    __slots__ = ("_connection", "_held", "size")

    def __init__(self, held: HeldBytes, connection: Connection) -> None:
        self._held, self._connection, self.size = held, connection, 0

    def take(self, size: int) -> None:
        if size:
            self._held.take(size, self._connection)
            self.size += size

    def give_back(self, size: int | None = None) -> None:
        """Release some bytes; all if no size is given."""
        if not self.size:
            return
        given = self.size if size is None else min(size, self.size)
        if given:
            self.size -= given
            self._held.give_back(given, self._connection)
