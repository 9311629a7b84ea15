"""The metadata store: small values under metadata keys, changed by compare-and-set.

It holds ledgers, group metadata and the catalog. The embedded log is a metadata store and changes its metadata
together with its records. A query on Kafka keeps its metadata in the embedded log, or in Redis, PostgreSQL or Cassandra
next to its state, so that nothing it needs is on the disk of one machine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from potok.errors import LogError


class MetadataConflict(LogError):
    """A metadata key did not hold the expected value, so nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'metadata key "{name}" was changed by another process',
            hint="another process runs the same query; stop one of them",
        )
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return MetadataConflict, (self.name,)


class MetadataStore(Protocol):
    """Implemented by every broker, and by Redis, PostgreSQL and Cassandra.

    Methods may be called from any thread and process.
    """

    @abstractmethod
    def get_metadata(self, name: str) -> bytes | None: ...

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        """Return the values of several keys, in this order; the embedded log reads them at one instant."""
        return tuple(self.get_metadata(name) for name in names)

    @abstractmethod
    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        """Return the keys that start with `prefix`, with their values."""

    @abstractmethod
    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        """Set or delete (None) keys in one transaction if the keys in `expect` hold the given values (None: are
        absent).

        Raises `MetadataConflict` otherwise.
        """

    @abstractmethod
    def close(self) -> None: ...
