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

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import escape as glob_escape
from itertools import chain, islice
from typing import Any

from potok.backends.redis_connection import connect, reached
from potok.backends.state_url import Where
from potok.errors import StateError
from potok.state.fence import Attempt, StaleAttempt
from potok.state.store import Range, Removals, Row, ShardSnapshot, StateMissing, Store, Writes, stored_key

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


def _attempt(stamp: bytes, location: str) -> Attempt:
    try:
        return Attempt(int(stamp[:10]), int(stamp[10:]))
    except ValueError as error:
        hint = "another program writes to this database: give Potok one of its own, and restore the state from a backup"
        raise StateError(f"the number of the last attempt at {location} is not written by Potok", hint=hint) from error


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


PUT = """
-- KEYS: attempt, table names, cells, index. ARGV: attempt, table, "put" or "remove" or "fence", items.
-- Attempts are texts of one length, digits only, so that they compare as texts.
-- Lua accepts a few thousand arguments per call, so long lists are passed in slices.
local seen = redis.call('GET', KEYS[1])
if seen and seen > ARGV[1] then return seen end
if seen ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
local last = #ARGV
if ARGV[3] == 'put' then
  redis.call('SADD', KEYS[2], ARGV[2])
  for first = 4, last, 4000 do
    local stop = math.min(first + 3999, last)
    redis.call('HSET', KEYS[3], unpack(ARGV, first, stop))
    local scored, n = {}, 0
    for i = first, stop, 2 do
      scored[n + 1], scored[n + 2], n = 0, ARGV[i], n + 2
    end
    redis.call('ZADD', KEYS[4], unpack(scored))
  end
elseif ARGV[3] == 'remove' then
  for first = 4, last, 4000 do
    local stop = math.min(first + 3999, last)
    redis.call('HDEL', KEYS[3], unpack(ARGV, first, stop))
    redis.call('ZREM', KEYS[4], unpack(ARGV, first, stop))
  end
end
return false
"""

PAGE = """
-- KEYS: cells, index. ARGV: the number of cells wanted, then pairs of bounds. Gives for each pair keys and cells.
local found = {}
for i = 2, #ARGV, 2 do
  local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[i], ARGV[i + 1], 'LIMIT', 0, ARGV[1])
  local cells, n = {}, 0
  for first = 1, #keys, 4000 do
    local part = redis.call('HMGET', KEYS[1], unpack(keys, first, math.min(first + 3999, #keys)))
    for j = 1, #part do
      n = n + 1
      cells[n] = part[j]
    end
  end
  found[#found + 1] = {keys, cells}
end
return found
"""


_RANGE_PAGE = 5_000
EXPIRY_S = 24 * 3600


class RedisSnapshot(ShardSnapshot):
    """A shard, read during writes.

    Redis has no snapshots. But a cell holds the value of one batch back, so a reader that finds the same committed
    batch in the ledger before and after its reads has seen exactly that batch: writes of the running batch count with
    their old value. If a batch was committed in between, the read starts over (`snapshots/snapshot.py`), so a read
    must be shorter than a batch.
    """

    frozen = False

    def __init__(self, where: Where, query: str, shard: int, keys: ShardKeys | None = None) -> None:
        self._where, self._keys, self._client = where, keys or ShardKeys(query, shard), connect(where)
        self._store = RedisStore(where, query, shard, keys=keys)

    def get(self, table: str, key: bytes) -> bytes | None:
        with reached(self._where):
            found: bytes | None = self._client.hget(self._keys.cells(table), stored_key(key))
            return found

    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        while True:
            rows = self._store.page(table, start, stop, limit=_RANGE_PAGE)
            yield from rows
            if len(rows) < _RANGE_PAGE:
                return
            start = rows[-1][0] + b"\x00"

    def tables(self) -> list[str]:
        return self._store.tables()

    def attempt(self) -> Attempt | None:
        return self._store.attempt()


class FrozenSnapshot(RedisSnapshot):
    """A copy that is never written."""

    frozen = True


@contextmanager
def frozen_snapshots(where: Where, query: str, shards: int) -> Iterator[list[ShardSnapshot]]:
    """Copy all shards on the server, which is much faster than reading them.

    The copies take as much memory as the shards, and expire if they are not removed.
    """
    client, token = connect(where), secrets.token_hex(8)
    copies = [ShardKeys(query, shard, f"copy-{token}") for shard in range(shards)]
    try:
        for shard, copy in enumerate(copies):
            _copy(client, where, ShardKeys(query, shard), copy)
        yield [FrozenSnapshot(where, query, shard, copy) for shard, copy in enumerate(copies)]
    finally:
        for copy in copies:
            _remove(client, where, copy)


def _copy(client: Any, where: Where, keys: ShardKeys, copy: ShardKeys) -> None:
    with reached(where):
        tables = [name.decode() for name in client.smembers(keys.tables)]
        pairs = [(keys.attempt, copy.attempt), (keys.tables, copy.tables)]
        for table in tables:
            pairs += [(keys.cells(table), copy.cells(table)), (keys.index(table), copy.index(table))]
        pipeline = client.pipeline(transaction=True)
        for source, target in pairs:
            pipeline.copy(source, target, replace=True)
            pipeline.expire(target, EXPIRY_S)
        pipeline.execute()


def _remove(client: Any, where: Where, copy: ShardKeys) -> None:
    with reached(where):
        tables = [name.decode() for name in client.smembers(copy.tables)]
        names = [name for table in tables for name in (copy.cells(table), copy.index(table))]
        client.unlink(copy.attempt, copy.tables, *names)
