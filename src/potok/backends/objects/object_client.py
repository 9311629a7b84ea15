"""What Potok needs of object storage: whole objects, created or replaced under a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from potok.errors import StateError


class Stored(NamedTuple):
    """An object: its bytes, and the version that a conditional replacement expects."""

    data: bytes
    version: str


class Listed(NamedTuple):
    """An object in a listing; the time is that of its last change."""

    name: str
    size: int
    changed_at_ms: int


class ObjectMissing(StateError):
    """An object that the state needs and that does not exist."""

    def __init__(self, location: str, name: str, hint: str) -> None:
        super().__init__(f'object "{name}" is missing in {location}', hint=hint)
        self.location, self.name = location, name

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectMissing, (self.location, self.name, self.hint)


class ObjectDamaged(StateError):
    """An object whose content differs from what was written."""

    def __init__(self, location: str, name: str, why: str, hint: str) -> None:
        super().__init__(f'object "{name}" in {location} is damaged: {why}', hint=hint)
        self._parts = (location, name, why, hint)

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectDamaged, self._parts


class ObjectClient(Protocol):
    """A bucket or a directory. Names are relative to the prefix of the location.

    An error means that the outcome is unknown: a write may have happened.
    """

    location: str

    def get(self, name: str) -> Stored | None:
        """Return an object, or None if it does not exist."""

    def create(self, name: str, data: bytes) -> str | None:
        """Write an object that does not exist; return its version, or None if it exists."""

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """Write an object if it still has this version; return the new version, or None if it has another one."""

    def list(self, prefix: str) -> list[Listed]:
        """Return the objects below a prefix, which ends with a slash, by name."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that do not exist are ignored."""


@dataclass(slots=True)
class Requests:
    """How many requests were sent, and how many bytes went each way."""

    puts: int = 0
    gets: int = 0
    lists: int = 0
    deletes: int = 0
    bytes_out: int = 0
    bytes_in: int = 0

    def add(self, other: Requests) -> None:
        for name, count in other.counts().items():
            setattr(self, name, getattr(self, name) + count)

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> Requests:
        return cls(**counts)


@dataclass(slots=True)
class CountedClient:
    """Count the requests that are sent through a client."""

    client: ObjectClient
    requests: Requests = field(default_factory=Requests)

    @property
    def location(self) -> str:
        return self.client.location

    def get(self, name: str) -> Stored | None:
        self.requests.gets += 1
        found = self.client.get(name)
        self.requests.bytes_in += 0 if found is None else len(found.data)
        return found

    def create(self, name: str, data: bytes) -> str | None:
        self._sent(data)
        return self.client.create(name, data)

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        self._sent(data)
        return self.client.replace(name, data, version)

    def list(self, prefix: str) -> list[Listed]:
        found = self.client.list(prefix)
        self.requests.lists += 1 + len(found) // 1_000
        return found

    def delete(self, names: Sequence[str]) -> None:
        self.requests.deletes += len(names)
        self.client.delete(names)

    def _sent(self, data: bytes) -> None:
        self.requests.puts += 1
        self.requests.bytes_out += len(data)
