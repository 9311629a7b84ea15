"""A shard as of one instant, while others go on writing it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from potok.state.buffered import BufferedTable
from potok.state.cell import Cell, decode_cell
from potok.state.environment import Environment, open_environment
from potok.state.store import stored_key, told_key


class ShardSnapshot:
    """One read transaction over all tables of a shard; a shard that nothing was written to yet is empty."""

    def __init__(self, path: Path) -> None:
        self._environment: Environment | None = None
        if (path / "data.mdb").exists():
            self._environment = open_environment(path, create=False)
        self._txn: Any = None
        self._tables: dict[str, Any] = {}

    def __enter__(self) -> ShardSnapshot:
        if self._environment is not None:
            self._txn, self._tables = self._environment.snapshot()
        return self

    def __exit__(self, *_: object) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None

    def get(self, table: str, key: bytes) -> bytes | None:
        if self._txn is None:
            return None
        return BufferedTable(table, self._tables.get).get_many(self._txn, [stored_key(key)])[0]

    def scan(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[bytes, Cell]]:
        """The cells with start <= key < stop, in order."""
        if self._txn is None:
            return
        for key, data in BufferedTable(table, self._tables.get).scan(self._txn, start, stop):
            cell = decode_cell(data, table, key)
            yield told_key(key, cell), cell
