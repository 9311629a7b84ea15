"""Count bytes held for clients: request bodies in progress, and responses from their encoding until they are sent."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable

from potok.server.errors import Busy
from potok.sql.budget import NobodyWaits

Connection = Hashable
"""Identity of a connection: the address and port of its client."""


class HeldBytes:
    """Counts held bytes, in total and per connection. Safe to call from any thread.

    Args:
        most: Maximum for all connections together.
        most_each: Maximum for one connection, with all of its requests.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self.most, self.most_each = most, most_each
        self.total = 0
        self.lock = threading.Lock()
        self._of: Counter[Connection] = Counter()

    def take(self, size: int, connection: Connection) -> None:
        """Count bytes before they are stored; raises `Busy` if there are too many. Call with the lock."""
        if self.total + size > self.most or self._of[connection] + size > self.most_each:
            if not self._of[connection]:
                del self._of[connection]
            raise Busy
        self.total += size
        self._of[connection] += size

    def give_back(self, size: int, connection: Connection) -> None:
        """Release counted bytes. Call with the lock."""
        self.total -= size
        self._of[connection] -= size
        if not self._of[connection]:
            del self._of[connection]


class Holding:
    """Bytes held by one request, released at its end.

    A response is counted by the thread that encodes it. If the request ends before that, because its client
    disconnected or its time is over, the next `take` stops the thread.
    """

    __slots__ = ("_connection", "_held", "_is_closed", "size")

    def __init__(self, held: HeldBytes, connection: Connection) -> None:
        self._held, self._connection, self.size = held, connection, 0
        self._is_closed = False

    def take(self, size: int) -> None:
        if not size:
            return
        with self._held.lock:
            if self._is_closed:
                raise NobodyWaits
            self._held.take(size, self._connection)
            self.size += size

    def give_back(self, size: int | None = None) -> None:
        """Release some bytes; all if no size is given."""
        if not self.size:
            return
        with self._held.lock:
            self._give_back(self.size if size is None else min(size, self.size))

    def close(self) -> None:
        """Release all bytes; no more can be taken."""
        with self._held.lock:
            self._is_closed = True
            self._give_back(self.size)

    def _give_back(self, given: int) -> None:
        if given:
            self.size -= given
            self._held.give_back(given, self._connection)
