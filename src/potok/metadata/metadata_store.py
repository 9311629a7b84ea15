"""The metadata store: small values under names, changed by compare-and-set.

It holds ledgers, group metadata and the catalog. The embedded log is one, and changes its metadata together with its
records. A query on Kafka keeps its metadata in the embedded log, or in Redis or PostgreSQL beside its state, so that
nothing it needs is on the disk of one machine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from potok.errors import LogError


class MetadataConflict(LogError):
    """A mark did not hold what the caller expected, so nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'mark "{name}" was changed by someone else', hint="another process runs the same query; stop one of them"
        )
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return MetadataConflict, (self.name,)


class MetadataStore(Protocol):
    """Implemented by every broker, and by Redis and PostgreSQL. Any thread of any process may call every method."""

    @abstractmethod
    def get_metadata(self, name: str) -> bytes | None: ...

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        """Several marks, in this order; the embedded log reads all as of one instant."""
        return tuple(self.get_metadata(name) for name in names)

    @abstractmethod
    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        """The marks whose names begin so."""

    @abstractmethod
    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        """Set or delete (None) marks in one transaction, if those in `expect` hold what they are expected to (None: are
        absent); `MetadataConflict` otherwise."""

    @abstractmethod
    def close(self) -> None: ...
