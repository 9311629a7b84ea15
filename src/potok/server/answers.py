"""Finite responses, encoded in the thread that computed them and measured as they grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from potok.server.access.held_bytes import Holding
from potok.server.errors import AnswerTooLarge
from potok.server.ksql.json_rows import dump
from potok.sql.budget import in_time

STEP = 256 << 10
"""Responses are added to the total of all clients in steps of this size."""


class AnswerSize:
    """Count the bytes of a response; raises `AnswerTooLarge` beyond the limit of one, and `Busy` beyond that of all.

    Bytes count from here, not from the moment they are sent: threads may encode faster than the event loop sends.
    """

    def __init__(self, most: int, holding: Holding) -> None:
        self._most, self._holding, self.size = most, holding, 0

    def add(self, data: bytes) -> bytes:
        self.size += len(data)
        if self.size > self._most:
            raise AnswerTooLarge(self._most)
        if self.size - self._holding.size >= STEP:
            self._holding.take(self.size - self._holding.size)
        return data

    def each(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        return map(self.add, in_time(parts))

    def fragment(self, make: Callable[[], Any]) -> orjson.Fragment:
        """Return JSON that becomes part of a larger document. Parts that were already counted count once."""
        before = self.size
        data = dump(make())
        self.size = before
        return orjson.Fragment(self.add(data))

    def array(self, parts: Iterable[bytes]) -> bytes:
        """Return an array of values that are already JSON."""
        return b"[" + b",".join(self.each(parts)) + b"]"
