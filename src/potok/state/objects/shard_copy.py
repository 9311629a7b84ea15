"""The copy of a shard in LMDB on the local disk, and the position in the chain that it has reached."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from potok.permissions import private_directory, private_opener
from potok.state.fence import Attempt
from potok.state.lmdb.buffered import BufferedTable
from potok.state.lmdb.environment import close_environment, is_there
from potok.state.lmdb.lmdb_store import ATTEMPT, ATTEMPT_FORMAT, META, LmdbStore
from potok.state.objects.delta import Base, Delta, Position
from potok.storage.checked_file import boot

_POSITION, _BASE = b"position", b"base"
_HISTORY = 1_000
"""How many positions before its own a copy remembers: the ledger may name one of them."""

_CURRENT = "current"


class ShardCopy(LmdbStore):
    """Cells up to a position. Nothing is synced: after a crash of the machine the copy is restored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, durable=False)

    def reached(self) -> Position | None:
        """Return the position that the copy has reached; None if it is empty."""
        found = self._get(_POSITION)
        return None if found is None else Position.of(found.decode())

    def base(self) -> Base:
        """Return the newest snapshot that the copy knows."""
        found = self._get(_BASE)
        return Base() if found is None else Base(**json.loads(found))

    def base_at(self, position: Position) -> Base | None:
        """Return the base of the delta at a position; None if the copy has not seen that delta."""
        found = self._get(_past(position.number))
        if found is None:
            return None
        digest, base = json.loads(found)
        same = digest == position.digest and position.chain == getattr(self.reached(), "chain", None)
        return Base(**base) if same else None

    def holds(self, position: Position) -> bool:
        """Whether the copy has everything up to a position."""
        return self.base_at(position) is not None

    def _get(self, name: bytes) -> bytes | None:
        meta = self._environment.table(META)
        found: bytes | None = self._environment.read(lambda txn: txn.get(name, None, meta))
        return found

    def apply(self, at: Position | None, delta: Delta) -> None:
        """Apply the delta that follows a position. Do nothing if another process has done so."""
        change, drop = self._change(delta.writes, delta.removals), self._drop(delta.header.dropped)

        def both(txn: Any) -> None:
            drop(txn)
            change(txn)

        self._move(at, delta, both)

    def replay(self, at: Position | None, deltas: Sequence[Delta]) -> None:
        """Apply many deltas at once, none of which drops tables: of each key only the last change."""
        last: dict[str, dict[bytes, bytes | None]] = {}
        for delta in deltas:
            for table, keys in delta.removals:
                last.setdefault(table, {}).update(dict.fromkeys(keys))
            for table, rows in delta.writes:
                last.setdefault(table, {}).update(rows)
        trees = {table: BufferedTable(table, self._environment.table) for table in last}

        def change(txn: Any) -> None:
            for table, cells in last.items():
                written = sorted((key, cell) for key, cell in cells.items() if cell is not None)
                trees[table].put_sorted(txn, written)
                for key in [key for key, cell in cells.items() if cell is None]:
                    trees[table].delete(txn, key)

        self._move(at, deltas[-1], change)

    def _move(self, at: Position | None, delta: Delta, change: Callable[[Any], None]) -> None:
        """Change the cells and advance from a position to that of a delta, in one transaction."""
        meta = self._environment.table(META)

        def work(txn: Any) -> None:
            reached = txn.get(_POSITION, None, meta)
            if reached != (None if at is None else str(at).encode()):
                return
            seen = txn.get(ATTEMPT, None, meta)
            attempt = max(delta.header.attempt, Attempt(*ATTEMPT_FORMAT.unpack(seen)) if seen else Attempt(0, 0))
            txn.put(ATTEMPT, ATTEMPT_FORMAT.pack(*attempt), db=meta)
            change(txn)
            past = json.dumps([delta.digest, asdict(delta.header.base)]).encode()
            txn.put(_past(delta.header.number), past, db=meta)
            txn.delete(_past(delta.header.number - _HISTORY), db=meta)
            txn.put(_POSITION, str(delta.position).encode(), db=meta)
            txn.put(_BASE, json.dumps(asdict(delta.base)).encode(), db=meta)

        self._environment.write(work)

    def set_base(self, position: Position, base: Base) -> None:
        """Remember a snapshot that was written at the position of the copy."""
        meta = self._environment.table(META)

        def work(txn: Any) -> None:
            if txn.get(_POSITION, None, meta) == str(position).encode():
                txn.put(_BASE, json.dumps(asdict(base)).encode(), db=meta)

        self._environment.write(work)

    def copy_to(self, directory: Path) -> Position:
        """Write a compact copy of the file; return the position that it has reached."""
        meta = self._environment.table(META)
        found: bytes = self._environment.copy_to(directory, lambda txn: txn.get(_POSITION, None, meta))
        return Position.of(found.decode())


def _past(number: int) -> bytes:
    return b"past/" + max(number, 0).to_bytes(8, "big")


class CopyDirectory:
    """The directory of the copy of one shard. A copy that is restored is built next to the present one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self) -> Path | None:
        """Return where the present copy is, or None if there is none."""
        try:
            name, _, booted = (self.directory / _CURRENT).read_text().partition(" ")
        except OSError:
            return None
        if booted != str(boot()):
            # Nothing was synced: the files may be those of different moments.
            self.remove()
            return None
        return self.directory / name if is_there(self.directory / name) else None

    def opened(self) -> ShardCopy | None:
        path = self.path()
        return None if path is None else ShardCopy(path)

    def empty(self) -> ShardCopy:
        """Return a new, empty copy."""
        path = self.new_path()
        ShardCopy(path)
        return self.use(path)

    def new_path(self) -> Path:
        return private_directory(self.directory / f"copy-{secrets.token_hex(8)}")

    def use(self, path: Path) -> ShardCopy:
        """Make a complete copy the present one, and remove the one before.

        Other processes that have it open read it to the end, and then find the new one.
        """
        before = self.path()
        pointer = self.directory / f"{_CURRENT}-{secrets.token_hex(8)}"
        with open(pointer, "x", opener=private_opener) as file:
            file.write(f"{path.name} {boot()}")
        os.replace(pointer, self.directory / _CURRENT)
        if before is not None:
            self.discard(before)
        return ShardCopy(path)

    def discard(self, path: Path) -> None:
        close_environment(path)
        shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        path = self.path()
        if path is not None:
            close_environment(path)

    def remove(self) -> None:
        """Remove all copies."""
        with suppress(OSError):
            for path in self.directory.iterdir():
                if path.is_dir():
                    self.discard(path)
        shutil.rmtree(self.directory, ignore_errors=True)
