"""The cells of one shard of a query, in LMDB: many processes read while one writes."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from potok.errors import StateError
from potok.state.buffered import BufferedTable
from potok.state.cell import Cell, decode_cell
from potok.state.environment import close_environment, open_environment
from potok.state.fence import Attempt, StaleAttempt

# LMDB takes keys of 511 bytes. A longer one is cut, closed by a digest, and kept whole in its cell.
_LONGEST = 480
_CUT = 440
_HASHED = _CUT + 2 + 16
LONGEST_PREFIX = _CUT
"""What all keys that begin alike have in common in the store too; more of it may be cut."""

# LMDB has no empty key, so that one is hashed too; and so are keys as long as a hashed one, so that none looks like it.
_AMBIGUOUS = frozenset((0, _HASHED))
_EMPTY = b"\xff" * _CUT + b"\xff#" + blake2b(b"", digest_size=16).digest()
_META = "/meta"
_ATTEMPT = b"attempt"
_ATTEMPT_FORMAT = struct.Struct(">IQ")


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

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no state at {path}", hint="run the query once, or check its name and --broker")


class ShardStore:
    """The tables of one shard."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        if not create and not (path / "data.mdb").exists():
            raise StateMissing(path)
        self.path = path
        self._environment = open_environment(path, create=create)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The raw cells of many keys, in one short transaction."""
        trees = BufferedTable(table, self._environment.table)
        return self._environment.read(lambda txn: trees.get_many(txn, keys))

    def put_many(
        self,
        attempt: Attempt,
        writes: Iterable[tuple[str, list[tuple[bytes, bytes]]]],
        removals: Iterable[tuple[str, list[bytes]]] = (),
    ) -> None:
        """Write everything in one transaction, unless a later attempt has been here."""
        writes = [(table, items) for table, items in writes if items]
        removals = [(table, keys) for table, keys in removals if keys]
        trees = {table: BufferedTable(table, self._environment.table) for table, _ in [*writes, *removals]}
        meta = self._environment.table(_META)

        def work(txn: Any) -> None:
            seen = txn.get(_ATTEMPT, None, meta)
            highest = Attempt(*_ATTEMPT_FORMAT.unpack(seen)) if seen else attempt
            if attempt < highest:
                raise StaleAttempt(attempt, highest, str(self.path))
            txn.put(_ATTEMPT, _ATTEMPT_FORMAT.pack(*attempt), db=meta)
            for table, keys in removals:
                for key in keys:
                    trees[table].delete(txn, key)
            for table, items in writes:
                trees[table].put_many(txn, items)

        self._environment.write(work)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, page: int = 5_000
    ) -> Iterator[tuple[bytes, Cell]]:
        """The cells with start <= key < stop, in order; read in pages, so that no transaction lives long."""
        while True:
            rows = self.page(table, start, stop, limit=page)
            for key, data in rows:
                cell = decode_cell(data, table, key)
                yield told_key(key, cell), cell
            if len(rows) < page:
                return
            start = rows[-1][0] + b"\x00"

    def scan_ranges(self, table: str, ranges: Sequence[tuple[bytes, bytes | None]]) -> list[list[tuple[bytes, Cell]]]:
        """The cells with start <= key < stop for each of many ranges, in one transaction."""
        trees = BufferedTable(table, self._environment.table)

        def work(txn: Any) -> list[list[tuple[bytes, bytes]]]:
            return [list(trees.scan(txn, start, stop)) for start, stop in ranges]

        found: list[list[tuple[bytes, Cell]]] = []
        for rows in self._environment.read(work):
            cells = [(key, decode_cell(data, table, key)) for key, data in rows]
            found.append([(told_key(key, cell), cell) for key, cell in cells])
        return found

    def page(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """Up to `limit` raw cells from `start` on, in one short transaction."""
        trees = BufferedTable(table, self._environment.table)
        return self._environment.read(lambda txn: list(itertools.islice(trees.scan(txn, start, stop), limit)))

    def entries(self, table: str) -> int:
        return self._environment.read(BufferedTable(table, self._environment.table).entries)

    def drop_tables_except(self, kept: set[str], stores: Mapping[str, Container[str]] = {}) -> None:
        """Delete the tables that belong to none of these steps, or to none of the stores of a step that has some."""

        def belongs(name: str) -> bool:
            step, _, rest = name.partition("/")
            store = rest.split("/")[0]
            return step in kept and (not store.isidentifier() or step not in stores or store in stores[step])

        own = {_META} | {name for name in self._environment.table_names() if belongs(name)}
        gone = [name for name in self._environment.table_names() if name not in own]
        handles = [self._environment.table(name) for name in gone]

        def work(txn: Any) -> None:
            for handle in handles:
                txn.drop(handle, delete=False)

        if gone:
            self._environment.write(work)

    def size_bytes(self) -> int:
        return self._environment.size_bytes()

    def close(self) -> None:
        close_environment(self.path)
