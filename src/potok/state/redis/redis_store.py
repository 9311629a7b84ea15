"""The cells of one shard of a query in Redis: a hash of cells for each table, and a sorted set of its keys for scans.

Writes are fenced on the server: a script compares the attempt with the highest one and writes atomically. All scripts
of one `put_many` run in one transaction, up to a size; larger writes are split into chunks, each of them fenced.

Chunks are sufficient because of the fenced cell. Each cell contains its attempt and the value before it, and an
attempt counts only once the ledger says so, after all of its writes. If the process dies between two chunks, the
cells it wrote are void and count with their old values, for the next attempt and for every reader. A later attempt
raises the fence with its first chunk, so that chunks of an earlier one are rejected. Removed cells are those that a
committed batch gave up, whose presence makes no difference; they are removed before anything is written, and their
tombstones after them, so that an interrupted sweep is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from glob import escape as glob_escape
from itertools import chain, islice
from typing import Any

from potok.backends.redis_connection import connect, reached
from potok.backends.state_url import Where
from potok.errors import StateError
from potok.state.fence import Attempt, StaleAttempt
from potok.state.redis.scripts import PAGE, PUT
from potok.state.store import Range, Removals, Row, StateMissing, Store, Writes

CHUNK = 10_000
"""Keys or cells per script call, and per reply."""

TRANSACTION = 200_000
"""Cells per transaction, which blocks the server."""

Command = tuple[str, str, list[bytes]]
"""A change of a table: "put" with alternating keys and cells, or "remove" with keys."""


class ShardKeys:
    """The names of a shard's keys in Redis. The part in braces decides the node of a cluster: one per shard."""

    def __init__(self, query: str, shard: int, copy: str = "") -> None:
        self._root = f"potok:{{{query}/{shard}}}" + (f":{copy}" if copy else "")
        self.attempt, self.tables = f"{self._root}:attempt", f"{self._root}:tables"

    def cells(self, table: str) -> str:
        return f"{self._root}:cells:{table}"

    def index(self, table: str) -> str:
        return f"{self._root}:index:{table}"


class RedisStore(Store):
    def __init__(
        self, where: Where, query: str, shard: int, *, create: bool = True, keys: ShardKeys | None = None
    ) -> None:
        self._where, self._keys, self._client = where, keys or ShardKeys(query, shard), connect(where)
        self.location = f"{where} (query {query}, shard {shard})"
        if not create:
            with reached(where):
                if not self._client.exists(self._keys.attempt):
                    raise StateMissing(self.location)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        with reached(self._where):
            pipeline = self._client.pipeline(transaction=False)
            for first in range(0, len(keys), CHUNK):
                pipeline.hmget(self._keys.cells(table), keys[first : first + CHUNK])
            return list(chain.from_iterable(pipeline.execute()))

    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        stamp = _stamp(attempt)
        with reached(self._where):
            for commands in _transactions([*_removed(removals), *_put(writes)]):
                pipeline = self._client.pipeline(transaction=True)
                for what, table, items in commands or [("fence", "", [])]:
                    pipeline.eval(PUT, 4, *self._names(table), stamp, table, what, *items)
                for seen in pipeline.execute():
                    if seen is not None:
                        raise StaleAttempt(attempt, _attempt(seen, self.location), self.location)

    def _names(self, table: str) -> tuple[str, str, str, str]:
        keys = self._keys
        return keys.attempt, keys.tables, keys.cells(table), keys.index(table)

    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < limit:
            wanted = min(CHUNK, limit - len(rows))
            (part,) = read_ranges(self._client, self._where, self._keys, table, [(start, stop)], wanted)
            rows += part
            if len(part) < wanted:
                break
            start = rows[-1][0] + b"\x00"
        return rows

    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        return read_ranges(self._client, self._where, self._keys, table, ranges, -1)

    def entries(self, table: str) -> int:
        with reached(self._where):
            return int(self._client.hlen(self._keys.cells(table)))

    def tables(self) -> list[str]:
        with reached(self._where):
            return sorted(name.decode() for name in self._client.smembers(self._keys.tables))

    def drop_tables(self, tables: Sequence[str]) -> None:
        with reached(self._where):
            pipeline = self._client.pipeline(transaction=True)
            for table in tables:
                pipeline.unlink(self._keys.cells(table), self._keys.index(table))
                pipeline.srem(self._keys.tables, table)
            pipeline.execute()

    def attempt(self) -> Attempt | None:
        with reached(self._where):
            seen = self._client.get(self._keys.attempt)
        return None if seen is None else _attempt(seen, self.location)

    def clear(self) -> None:
        self.drop_tables(self.tables())
        with reached(self._where):
            self._client.unlink(self._keys.attempt, self._keys.tables)

    def size_bytes(self) -> int:
        tables = self.tables()
        with reached(self._where):
            pipeline = self._client.pipeline(transaction=False)
            for table in tables:
                pipeline.memory_usage(self._keys.cells(table))
                pipeline.memory_usage(self._keys.index(table))
            return sum(size or 0 for size in pipeline.execute())

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""


def remove_shards(where: Where, query: str) -> None:
    """Remove all keys of a query, of all shards."""
    client = connect(where)
    with reached(where):
        found = client.scan_iter(f"potok:{{{glob_escape(query)}/*", count=1_000)
        for names in batched(found, 1_000):
            client.unlink(*names)


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def read_ranges(
    client: Any, where: Where, keys: ShardKeys, table: str, ranges: Sequence[Range], limit: int
) -> list[list[Row]]:
    """Return up to `limit` cells of each range; all, if it is negative."""
    if not ranges:
        return []
    bounds = [bound for span in ranges for bound in _bounds(span)]
    with reached(where):
        found = client.eval(PAGE, 2, keys.cells(table), keys.index(table), limit, *bounds)
    return [list(zip(names, cells, strict=True)) for names, cells in found]


def _bounds(span: Range) -> tuple[bytes, bytes]:
    start, stop = span
    return b"[" + start if start else b"-", b"+" if stop is None else b"(" + stop


def _stamp(attempt: Attempt) -> str:
    return f"{attempt.epoch:010d}{attempt.batch:020d}"


def _attempt(stamp: bytes, place: str) -> Attempt:
    try:
        return Attempt(int(stamp[:10]), int(stamp[10:]))
    except ValueError as error:
        hint = "another program writes to this database: give Potok one of its own, and restore the state from a backup"
        raise StateError(f"the number of the last attempt at {place} is not written by Potok", hint=hint) from error


def _removed(removals: Removals) -> Iterator[Command]:
    """Remove cells before their tombstones, see above."""
    for table, keys in sorted(removals, key=lambda item: item[0].endswith("/deleted")):
        for first in range(0, len(keys), CHUNK):
            yield "remove", table, keys[first : first + CHUNK]


def _put(writes: Writes) -> Iterator[Command]:
    for table, items in writes:
        for first in range(0, len(items), CHUNK):
            yield "put", table, list(chain.from_iterable(items[first : first + CHUNK]))


def _transactions(commands: list[Command]) -> Iterator[list[Command]]:
    """Group commands into transactions; one empty list if there are none."""
    size, together = 0, list[Command]()
    for command in commands:
        if together and size + len(command[2]) > 2 * TRANSACTION:
            yield together
            size, together = 0, []
        together.append(command)
        size += len(command[2])
    yield together
