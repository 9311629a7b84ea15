"""Recognise requests and messages that were delivered before, by the ids of the records in the log."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from operator import itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from potok.clock import now_ms
from potok.duration import Duration, to_ms
from potok.log.broker import Broker

T = TypeVar("T")

_LONGEST = 100
"""A longer id is remembered by its digest."""


def digest_of(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


class _Known(NamedTuple):
    digest: bytes
    at_ms: int


class AnotherBody(Exception):
    """The id belongs to a request or message with another body."""


class WithIds(Protocol):
    """The options of a listener whose input may have ids."""

    @property
    def id(self) -> str | None: ...
    @property
    def topic(self) -> str: ...
    @property
    def remember_ids(self) -> Duration: ...
    @property
    def max_ids(self) -> int: ...


class Deduplication(Generic[T]):
    """The ids of the last `for_ms`, at most `max_ids` of them; `T` is what is remembered of one that is under way.

    They are headers of the records, so the log alone knows what has landed: a gateway that was killed between an append
    and its acknowledgement recognises what is delivered again. At the start the ids are read from the end of the topic.
    """

    def __init__(self, for_ms: int, max_ids: int, what: str) -> None:
        self._for_ms, self._max_ids = for_ms, max_ids
        self._id_header, self._digest_header = f"potok-{what}-id", f"potok-{what}-digest"
        self._known: OrderedDict[str | bytes, _Known] = OrderedDict()
        self._under_way: dict[str, tuple[bytes, T]] = {}

    @classmethod
    def of(cls, spec: WithIds, broker: Broker, what: str) -> Deduplication[T] | None:
        """Return the ids of recent records in the topic of a listener, or None if its input has no ids."""
        if spec.id is None:
            return None
        known = cls(to_ms(spec.remember_ids), spec.max_ids, what)
        known.load(broker, spec.topic, now_ms())
        return known

    @staticmethod
    def _key(identifier: str) -> str | bytes:
        """Return what is remembered of an id: a sender may choose long ones."""
        return identifier if len(identifier) <= _LONGEST else digest_of(identifier.encode())

    def headers(self, identifier: str, digest: bytes) -> tuple[tuple[str, bytes], ...]:
        """Return the headers by which a record is recognised."""
        return (self._id_header, identifier.encode()), (self._digest_header, digest)

    def load(self, broker: Broker, topic: str, now_ms: int) -> None:
        """Read the ids of recent records."""
        since = now_ms - self._for_ms
        found: list[tuple[int, str | bytes, bytes]] = []
        for partition, end in broker.end_offsets(topic).items():
            start = broker.offset_at(topic, partition, since)
            for batch in broker.read(topic, partition, start, end):
                times, headers = batch.column("timestamp").to_pylist(), batch.column("headers").to_pylist()
                for at_ms, each in zip(times, headers, strict=True):
                    named = {header["name"]: header["value"] for header in each or ()}
                    if self._id_header in named and self._digest_header in named:
                        known = self._key(named[self._id_header].decode())
                        found.append((at_ms, known, named[self._digest_header]))
                found = sorted(found, key=itemgetter(0))[-self._max_ids :] if len(found) > 2 * self._max_ids else found
        for at_ms, identifier, digest in sorted(found, key=itemgetter(0)):
            self._remember(identifier, digest, at_ms)

    def find(self, identifier: str, digest: bytes, now_ms: int) -> T | bool:
        """Return whether it has landed before, or what is remembered of the one that is under way.

        Raises `AnotherBody`.
        """
        while self._known:
            first, known = next(iter(self._known.items()))
            if known.at_ms >= now_ms - self._for_ms:
                break
            del self._known[first]
        known_one = self._known.get(self._key(identifier))
        if known_one is not None:
            if known_one.digest != digest:
                raise AnotherBody
            return True
        under_way = self._under_way.get(identifier)
        if under_way is None:
            return False
        if under_way[0] != digest:
            raise AnotherBody
        return under_way[1]

    def begin(self, identifier: str, digest: bytes, what: T) -> None:
        self._under_way[identifier] = digest, what

    def end(self, identifier: str, *, landed: bool, now_ms: int) -> None:
        digest, _ = self._under_way.pop(identifier)
        if landed:
            self._remember(self._key(identifier), digest, now_ms)

    def _remember(self, identifier: str | bytes, digest: bytes, at_ms: int) -> None:
        self._known[identifier] = _Known(digest, at_ms)
        self._known.move_to_end(identifier)
        if len(self._known) > self._max_ids:
            self._known.popitem(last=False)
