"""What every store of cells can do, and the form in which all of them have their keys.

A store keeps the cells of one shard of a query: in LMDB (`state/lmdb/`), Redis (`state/redis/`) or PostgreSQL
(`state/postgres/`). Cells and stored keys are the same bytes everywhere, so that they can be copied from one to
another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from potok.errors import StateError
from potok.state.cell import REPAIR, Cell, decode_cell
from potok.state.fence import Attempt

# LMDB takes keys of 511 bytes. A longer one is cut, closed by a digest, and kept whole in its cell.
_LONGEST = 480
_CUT = 440
_HASHED = _CUT + 2 + 16
LONGEST_PREFIX = _CUT
"""What all keys that begin alike have in common in the store too; more of it may be cut."""

# LMDB has no empty key, so that one is hashed too; and so are keys as long as a hashed one, so that none looks like it.
_AMBIGUOUS = frozenset((0, _HASHED))
_EMPTY = b"\xff" * _CUT + b"\xff#" + blake2b(b"", digest_size=16).digest()

Row = tuple[bytes, bytes]
"""A stored key and the cell under it."""

Range = tuple[bytes, bytes | None]
"""Stored keys from the first on, and below the second."""

Writes = Iterable[tuple[str, list[Row]]]
Removals = Iterable[tuple[str, list[bytes]]]


def stored_key(key: bytes) -> bytes:
    if len(key) <= _LONGEST and len(key) not in _AMBIGUOUS:
        return key
    return key[:_CUT] + b"\xff#" + blake2b(key, digest_size=16).digest() if key else _EMPTY


def told_key(stored: bytes, cell: Cell) -> bytes:
    """The key of a cell, from the form in which the store has it."""
    return b"" if stored == _EMPTY else cell.key or stored


def stored_keys(keys: Sequence[bytes]) -> Sequence[bytes]:
    """Many keys; hardly ever does any of them need another form."""
    lengths = set(map(len, keys))
    if not lengths or (max(lengths) <= _LONGEST and lengths.isdisjoint(_AMBIGUOUS)):
        return keys
    return [stored_key(key) for key in keys]


def carried_key(key: bytes) -> bytes:
    """What a cell must carry so that its key can be told: nothing, unless the stored key differs."""
    return key if len(key) > _LONGEST or len(key) in _AMBIGUOUS else b""


def after_prefix(prefix: bytes) -> bytes | None:
    """The least key after all that begin with a prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def stored_stop(stop: bytes | None) -> bytes | None:
    """Where a scan of stored keys may end that looks for the keys below `stop`: the end of a long one may be cut."""
    return stop if stop is None or len(stop) <= LONGEST_PREFIX else after_prefix(stop[:LONGEST_PREFIX])


class StateMissing(StateError):
    """Somebody wants to read state that was never written."""

    def __init__(self, place: object) -> None:
        super().__init__(f"there is no state at {place}", hint="run the query once, or check its name and --broker")


class SnapshotGone(StateError):
    """What was being read was closed by this process, to be written or replaced; whoever looks again finds it."""

    def __init__(self, place: object) -> None:
        super().__init__(f"the state at {place} was closed while it was read", hint="read again")


class StateBehind(StateError):
    """State that lacks what a committed batch wrote: it was lost, or put back from an older copy."""

    def __init__(self, place: object, found: Attempt | None, committed: Attempt) -> None:
        there = "is gone" if found is None else f"ends with batch {found.batch}"
        super().__init__(
            f"the state at {place} {there}, and batch {committed.batch} of the query was committed",
            hint=f"put back what was there; or {REPAIR}",
        )


def check_kept(store: Store, committed: Attempt | None) -> None:
    """Whether a shard has seen the last committed attempt: to go on without what it wrote would be wrong in silence."""
    if committed is not None:
        found = store.attempt()
        if found is None or found < committed:
            raise StateBehind(store.place, found, committed)


class Store(ABC):
    """The tables of one shard. Keys are in their stored form; a table that nothing was written to is empty."""

    place: str
    """Where the shard is, for people."""

    @abstractmethod
    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The raw cells of many keys."""

    @abstractmethod
    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        """Write everything, unless a later attempt has been here (`StaleAttempt`). What is removed and written is
        there afterwards; of two writes to one key the last counts."""

    @abstractmethod
    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        """Up to `limit` raw cells with start <= key < stop, in order."""

    @abstractmethod
    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        """All raw cells of each of many ranges, in order."""

    @abstractmethod
    def entries(self, table: str) -> int:
        """How many cells a table has; cheap enough to be asked with every batch."""

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def drop_tables(self, tables: Sequence[str]) -> None: ...

    @abstractmethod
    def attempt(self) -> Attempt | None:
        """The highest attempt that has written here; None where none has."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all cells and the highest attempt."""

    @abstractmethod
    def size_bytes(self) -> int:
        """About how much room the shard takes; cheap."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what this process holds open for the shard alone."""

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, page: int = 5_000
    ) -> Iterator[tuple[bytes, Cell]]:
        """The cells with start <= key < stop, in order; read in pages, so that no transaction lives long."""
        while True:
            rows = self.page(table, start, stop, limit=page)
            yield from told(table, rows)
            if len(rows) < page:
                return
            start = rows[-1][0] + b"\x00"

    def scan_ranges(self, table: str, ranges: Sequence[Range]) -> list[list[tuple[bytes, Cell]]]:
        """The cells with start <= key < stop for each of many ranges."""
        return [list(told(table, rows)) for rows in self.ranges(table, ranges)]

    def drop_tables_except(self, kept: set[str], stores: Mapping[str, Container[str]] = {}) -> None:
        """Delete the tables that belong to none of these steps, or to none of the stores of a step that has some."""

        def belongs(name: str) -> bool:
            step, _, rest = name.partition("/")
            store = rest.split("/")[0]
            return step in kept and (not store.isidentifier() or step not in stores or store in stores[step])

        gone = [name for name in self.tables() if not belongs(name)]
        if gone:
            self.drop_tables(gone)


class ShardSnapshot(ABC):
    """A shard as somebody reads it while others write it; a shard that nothing was written to yet is empty."""

    frozen: bool
    """Whether it stays as it was when it was opened. If not, whoever reads it must see to it that no batch was
    committed before he is done."""

    @abstractmethod
    def get(self, table: str, key: bytes) -> bytes | None:
        """The raw cell of a key."""

    @abstractmethod
    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        """The raw cells with start <= stored key < stop, in order."""

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def attempt(self) -> Attempt | None: ...

    def scan(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[bytes, Cell]]:
        """The cells with start <= stored key < stop, in order."""
        return told(table, self.rows(table, start, stop))


def told(table: str, rows: Iterable[Row]) -> Iterator[tuple[bytes, Cell]]:
    """Raw cells as what they hold, under the keys that were asked for when they were written."""
    for key, data in rows:
        cell = decode_cell(data, table, key)
        yield told_key(key, cell), cell
