"""The interface of every store of cells, and the format of their keys.

A store holds the cells of one shard of a query: in LMDB (`state/lmdb/`), Redis, PostgreSQL, Cassandra
(`state/cassandra/`) or object storage (`state/objects/`). Cells and stored keys are the same bytes everywhere, so that
they can be copied from one to another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice

from potok.backends.objects.object_client import Requests
from potok.errors import StateError
from potok.state.cell import REPAIR, Cell, decode_cell
from potok.state.fence import Attempt

# LMDB supports keys of 511 bytes. A longer key is truncated, a digest is appended, and its cell contains the whole
# key.
_LONGEST = 480
_TRUNCATED = 440
_HASHED = _TRUNCATED + 2 + 16
LONGEST_PREFIX = _TRUNCATED
"""The longest prefix that is never truncated: keys that share it also share it in the store."""

# LMDB has no empty key, so that one is hashed too; keys as long as a hashed key are hashed to avoid collisions.
_AMBIGUOUS = frozenset((0, _HASHED))
_EMPTY = b"\xff" * _TRUNCATED + b"\xff#" + blake2b(b"", digest_size=16).digest()

CHUNK = 65_536
"""How many cells a bulk read returns at a time."""

Row = tuple[bytes, bytes]
"""A stored key and its cell."""

Range = tuple[bytes, bytes | None]
"""Stored keys from the first (inclusive) to the second (exclusive)."""

Writes = Iterable[tuple[str, list[Row]]]
Removals = Iterable[tuple[str, list[bytes]]]


def stored_key(key: bytes) -> bytes:
    if len(key) <= _LONGEST and len(key) not in _AMBIGUOUS:
        return key
    return key[:_TRUNCATED] + b"\xff#" + blake2b(key, digest_size=16).digest() if key else _EMPTY


def original_key(stored: bytes, cell: Cell) -> bytes:
    """Return the original key of a cell."""
    return b"" if stored == _EMPTY else cell.key or stored


def original_keys(rows: Sequence[Row], table: str) -> list[bytes]:
    """Return the original keys of many raw cells; only the few that were hashed are read from their cells."""
    keys = [key for key, _ in rows]
    if _HASHED not in set(map(len, keys)):
        return keys
    return [original_key(key, decode_cell(data, table, key)) if len(key) == _HASHED else key for key, data in rows]


def stored_keys(keys: Sequence[bytes]) -> Sequence[bytes]:
    """Return the stored form of many keys, which is usually the keys themselves."""
    lengths = set(map(len, keys))
    if not lengths or (max(lengths) <= _LONGEST and lengths.isdisjoint(_AMBIGUOUS)):
        return keys
    return [stored_key(key) for key in keys]


def carried_key(key: bytes) -> bytes:
    """Return the key if its cell must contain it because the stored key differs, else nothing."""
    return key if len(key) > _LONGEST or len(key) in _AMBIGUOUS else b""


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the least key after all keys with a prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def stored_stop(stop: bytes | None) -> bytes | None:
    """Return where a scan of stored keys for the keys below `stop` may end: a long `stop` may be truncated."""
    return stop if stop is None or len(stop) <= LONGEST_PREFIX else after_prefix(stop[:LONGEST_PREFIX])


class StateMissing(StateError):
    """State that does not exist."""

    def __init__(self, location: object) -> None:
        super().__init__(f"no state at {location}", hint="run the query once, or check its name and --broker")


class SnapshotGone(StateError):
    """A snapshot that this process closed to write or replace the files; a new read succeeds."""

    def __init__(self, location: object) -> None:
        super().__init__(f"the state at {location} was closed while it was read", hint="read again")


class StateBehind(StateError):
    """State without the writes of a committed batch: it was lost, or restored from an older copy."""

    def __init__(self, location: object, found: Attempt | None, committed: Attempt) -> None:
        there = "is missing" if found is None else f"ends with batch {found.batch}"
        super().__init__(
            f"the state at {location} {there}, but batch {committed.batch} of the query was committed",
            hint=f"restore the lost state; or {REPAIR}",
        )


def check_not_behind(store: Store, committed: Attempt | None) -> None:
    """Raise if a shard lacks the last committed attempt: continuing without its writes would be silently wrong."""
    if committed is not None:
        found = store.attempt()
        if found is None or found < committed:
            raise StateBehind(store.location, found, committed)


class Store(ABC):
    """The tables of one shard. Keys are in their stored form; a table that was never written is empty."""

    location: str
    """The location of the shard, for messages."""

    @property
    def position(self) -> str | None:
        """Return the position that the ledger stores for this shard; None if the store needs none."""
        return None

    @property
    def requests(self) -> Requests | None:
        """Return the requests sent since the store was opened, if each of them has a price."""
        return None

    @abstractmethod
    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the raw cells of many keys."""

    @abstractmethod
    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        """Write everything, unless a later attempt has written here (`StaleAttempt`).

        A key that is both removed and written exists afterwards; of two writes to one key the last counts.
        """

    @abstractmethod
    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        """Return up to `limit` raw cells with start <= key < stop, in order."""

    @abstractmethod
    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        """Return all raw cells of each of many ranges, in order."""

    @abstractmethod
    def entries(self, table: str) -> int:
        """Count the cells of a table; cheap enough for every batch."""

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def drop_tables(self, tables: Sequence[str]) -> None: ...

    @abstractmethod
    def attempt(self) -> Attempt | None:
        """Return the highest attempt that has written here, or None."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all cells and the highest attempt."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the approximate size of the shard; cheap."""

    @abstractmethod
    def close(self) -> None:
        """Release what this process holds open only for this shard."""

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, page: int = 5_000
    ) -> Iterator[tuple[bytes, Cell]]:
        """Yield the cells with start <= key < stop, in order; read in pages, to keep transactions short."""
        while True:
            rows = self.page(table, start, stop, limit=page)
            yield from decoded(table, rows)
            if len(rows) < page:
                return
            start = rows[-1][0] + b"\x00"

    def scan_ranges(self, table: str, ranges: Sequence[Range]) -> list[list[tuple[bytes, Cell]]]:
        """Return the cells with start <= key < stop for each of many ranges."""
        return [list(decoded(table, rows)) for rows in self.ranges(table, ranges)]

    def drop_tables_except(self, steps: set[str], stores: Mapping[str, Container[str]] = {}) -> None:
        """Drop the tables that belong to none of these steps, or to none of the stores of a step with stores."""

        def belongs(name: str) -> bool:
            step, _, rest = name.partition("/")
            store = rest.split("/")[0]
            return step in steps and (not store.isidentifier() or step not in stores or store in stores[step])

        gone = [name for name in self.tables() if not belongs(name)]
        if gone:
            self.drop_tables(gone)


class ShardSnapshot(ABC):
    """A shard as readers see it during writes; a shard that was never written is empty."""

    frozen: bool
    """Whether the snapshot never changes. If not, the reader must check that no batch was committed during the read.
    """

    @abstractmethod
    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the raw cell of a key."""

    @abstractmethod
    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        """Yield the raw cells with start <= stored key < stop, in order."""

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def attempt(self) -> Attempt | None: ...

    def scan(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[bytes, Cell]]:
        """Yield the cells with start <= stored key < stop, in order."""
        return decoded(table, self.rows(table, start, stop))

    def chunks(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[list[Row]]:
        """Yield the raw cells with start <= stored key < stop, many at a time and in any order."""
        rows = self.rows(table, start, stop)
        while chunk := list(islice(rows, CHUNK)):
            yield chunk


def decoded(table: str, rows: Iterable[Row]) -> Iterator[tuple[bytes, Cell]]:
    """Decode raw cells, under their original keys."""
    for key, data in rows:
        cell = decode_cell(data, table, key)
        yield original_key(key, cell), cell
