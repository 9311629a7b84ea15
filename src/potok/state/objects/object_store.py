"""The cells of one shard of a query in object storage, read from a copy on the local disk.

Each write appends a delta to the chain of the shard: an object whose name is the next number, and which is created only
if there is none with this name. So writers are in one order, and a writer learns of every delta before its own. One
by a later attempt fences it; one with the same bytes is its own, whose acknowledgement was lost.

The ledger names the position of each shard with every batch. A copy that has reached it needs no request. Any other
copy is brought up to it: by the deltas in between, or by a snapshot and the deltas after it. Objects that a replaced
driver writes later are not in the chain that the ledger names, even if it reuses the number of a collected delta.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from potok.backends.objects.object_client import CountedClient, ObjectClient, ObjectDamaged, ObjectMissing, Requests
from potok.backends.state_url import StoreNotReady
from potok.failpoint import failpoint
from potok.retry_policy import GIVE_UP_MS, Retry
from potok.state.cell import REPAIR
from potok.state.fence import Attempt, StaleAttempt
from potok.state.lmdb.environment import StateDamaged
from potok.state.objects.chain import Chain, NotTheChain, shards_prefix
from potok.state.objects.delta import Delta, Header, Position, digest_of, encode_cells
from potok.state.objects.shard_copy import CopyDirectory, ShardCopy
from potok.state.objects.shard_snapshot import restore_snapshot, write_snapshot
from potok.state.store import Range, Removals, Row, StateMissing, Store, Writes

log = logging.getLogger(__name__)

MOST_CELLS, MOST_BYTES = 500_000, 64 << 20
"""A snapshot follows this many cells or bytes in deltas; a quarter of the cells or half the bytes of a larger shard."""

MOST_DELTAS = 200
"""A snapshot follows this many deltas, and one more for each MiB of the shard."""

AT_ONCE = 1_000_000
"""How many cells of deltas are applied together to a copy that is restored."""

_TRY_AGAIN = "the batch is repeated until then"

LONG_S = 5.0
"""A restore that takes longer is logged as a warning, because the query waits for it."""

RESTORES = 3
"""How often a copy is restored that other processes of the machine replace."""

FOLLOWED = 500
"""Up to this many missing deltas, a copy is brought up to date with them alone."""

_building: dict[str, threading.Lock] = {}


@dataclass(frozen=True, slots=True)
class Named:
    """What the ledger says: the last committed attempt, and the position of each shard after it."""

    attempt: Attempt | None = None
    positions: Mapping[int, str] = field(default_factory=dict)


class ObjectStore(Store):
    def __init__(
        self, client: ObjectClient, query: str, shard: int, directory: Path, named: Named, *, create: bool = True
    ) -> None:
        self._client = CountedClient(client)
        self._chain = Chain(self._client, query, shard)
        self.location = self._chain.location
        self._directory = CopyDirectory(directory)
        text = named.positions.get(shard)
        self._target = None if text is None else Position.of(text)
        self._fence = named.attempt if self._target is not None else None
        self._copy: ShardCopy | None = None
        if not create and self._target is None and not self._chain.exists():
            raise StateMissing(self.location)

    @property
    def requests(self) -> Requests:
        return self._client.requests

    @property
    def position(self) -> str | None:
        reached = self._current().reached()
        return None if reached is None else str(reached)

    def local_path(self) -> Path:
        """Return the directory of the copy, brought up to date."""
        return self._current().path

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._repairing():
            return self._current().get_many(table, keys)

    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        with self._repairing():
            return self._current().page(table, start, stop, limit=limit)

    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        with self._repairing():
            return self._current().ranges(table, ranges)

    def entries(self, table: str) -> int:
        with self._repairing():
            return self._current().entries(table)

    @contextmanager
    def _repairing(self) -> Iterator[None]:
        """Discard a copy that turns out to be damaged, so that the batch is repeated on a restored one."""
        try:
            yield
        except StateDamaged as error:
            self._directory.remove()
            self._copy = None
            raise StoreNotReady(
                self.location, error.message, "the copy is restored when the batch is repeated"
            ) from error

    def tables(self) -> list[str]:
        """Return the tables; without a copy, as listed in the last delta."""
        head = self._head()
        return self._current().tables() if head is None else sorted(head.header.tables)

    def size_bytes(self) -> int:
        head = self._head()
        return self._current().size_bytes() if head is None else head.header.size

    def attempt(self) -> Attempt | None:
        """Return the highest attempt that has written; the ledger vouches for one that changed nothing here."""
        head = self._head()
        found = self._current().attempt() if head is None else head.header.attempt
        return max(filter(None, (found, self._fence)), default=None)

    def _head(self) -> Delta | None:
        """Return the delta that the ledger names, if this machine would have to restore the shard to know more."""
        if self._copy is not None or self._target is None:
            return None
        local = self._directory.opened()
        return None if local is not None and local.holds(self._target) else self._chain.at(self._target)

    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        written = [(table, items) for table, items in writes if items]
        removed = [(table, keys) for table, keys in removals if keys]
        with self._repairing():
            copy = self._fenced(attempt)
            if not written and not removed and copy.reached() is not None:
                # Nothing to store: that this attempt was here is known from the ledger, and on this machine.
                copy.put_many(attempt, [])
                return
            self._append(attempt, written, removed, ())
            if self._target is not None:
                self._maintain()

    def drop_tables(self, tables: Sequence[str]) -> None:
        there = set(self._current().tables()).intersection(tables)
        if there:
            self._append(self.attempt() or Attempt(0, 0), [], [], tuple(sorted(there)))

    def clear(self) -> None:
        self._client.delete([found.name for found in self._client.list(self._chain.prefix)])
        self._directory.remove()
        self._copy, self._target, self._fence = None, None, None

    def close(self) -> None:
        self._directory.close()

    def _fenced(self, attempt: Attempt) -> ShardCopy:
        """Return the copy, unless a later attempt has written."""
        copy = self._current()
        highest = max(filter(None, (copy.attempt(), self._fence)), default=attempt)
        if attempt < highest:
            raise StaleAttempt(attempt, highest, self.location)
        return copy

    def _append(
        self,
        attempt: Attempt,
        writes: Sequence[tuple[str, list[Row]]],
        removals: Sequence[tuple[str, list[bytes]]],
        dropped: tuple[str, ...],
    ) -> None:
        """Append a delta to the chain, and apply it to the copy."""
        body = encode_cells(writes, removals)
        written, retry = {table for table, _ in writes}, Retry(GIVE_UP_MS)
        while True:
            copy = self._fenced(attempt)
            at, tables = copy.reached(), (written | set(copy.tables())) - set(dropped)
            number, chain, parent = (at.number + 1, at.chain, at.digest) if at else (1, secrets.token_hex(8), "")
            size = copy.size_bytes()
            header = Header(number, chain, parent, attempt, copy.base(), tuple(sorted(tables)), size, dropped)
            data = header.encoded() + body
            delta = Delta(header, digest_of(data), len(data), writes, removals)
            failpoint("objects.delta.before")
            if self._client.create(self._chain.delta_name(number), data) is not None:
                failpoint("objects.delta.written")
                copy.apply(at, delta)
                return
            found = self._chain.find(number)
            if found is None:
                # Another write of this name was going on, and failed.
                if not retry.wait():
                    raise StoreNotReady(self.location, f"delta {number} can neither be created nor read", _TRY_AGAIN)
                continue
            if found.digest == delta.digest:
                # The object is ours, and its acknowledgement was lost.
                copy.apply(at, delta)
                return
            if not (found.header.number == 1 if at is None else found.follows(at)):
                if attempt < found.header.attempt:
                    raise StaleAttempt(attempt, found.header.attempt, self.location)
                raise ObjectDamaged(
                    self._client.location,
                    self._chain.delta_name(number),
                    f"it does not follow delta {number - 1} of the copy at {copy.path}",
                    f"if no other process runs the query, remove {self._directory.directory}; or {REPAIR}",
                )
            copy.apply(at, found)

    def _current(self) -> ShardCopy:
        """Return the copy, at or after the position that the ledger names, or at the end of the chain."""
        if self._copy is None:
            # Of the threads of a process, one replaces a copy; the others use the new one.
            with _building.setdefault(str(self._directory.directory), threading.Lock()):
                try:
                    self._copy = self._brought_up()
                except StateDamaged as error:
                    log.warning("%s; it is restored from %s", error.message, self.location)
                    self._directory.remove()
                    self._copy = self._brought_up()
        return self._copy

    def _brought_up(self) -> ShardCopy:
        local, end = self._directory.opened(), None
        target = self._target
        if target is None:
            end = self._chain.end(None if local is None else local.reached())
            if end is None:
                if local is None or local.reached() is not None:
                    self._directory.remove()
                    local = self._directory.empty()
                return local
            target = end.position
        if local is not None and local.holds(target):
            return local
        end = end or self._chain.at(target)
        if local is not None and self._followed(local, end):
            return local
        for _ in range(RESTORES):
            restored = self._restored(end)
            if restored.holds(target):
                return restored
            # Another process of this machine has replaced the copy before it was opened here.
            self._directory.discard(restored.path)
            local = self._directory.opened()
            if local is not None and local.holds(target):
                return local
        raise StoreNotReady(self.location, "other processes of this machine replace its copy", _TRY_AGAIN)

    def _followed(self, local: ShardCopy, end: Delta) -> bool:
        """Apply the deltas that a copy lacks; return whether they lead from it to the end."""
        at = local.reached()
        if at is None or at.chain != end.header.chain or not 0 < end.header.number - at.number <= FOLLOWED:
            return False
        try:
            deltas = list(self._chain.between(at, end))
        except NotTheChain:
            return False
        for delta in deltas:
            local.apply(at, delta)
            at = delta.position
        return True

    def _restored(self, end: Delta) -> ShardCopy:
        """Build a copy from the last snapshot and the deltas after it."""
        began, base = time.monotonic(), end.header.base
        log.info("restoring %s up to delta %d", self.location, end.header.number)
        path = self._directory.new_path()
        try:
            at = restore_snapshot(self._chain, base, path) if base.number else None
            copy = ShardCopy(path)
            some: list[Delta] = []
            for delta in self._chain.between(at, end):
                if some and (delta.header.dropped or sum(found.cells for found in some) > AT_ONCE):
                    copy.replay(at, some)
                    at, some = some[-1].position, []
                if delta.header.dropped:
                    copy.apply(at, delta)
                    at = delta.position
                else:
                    some.append(delta)
            if some:
                copy.replay(at, some)
        except NotTheChain:
            self._directory.discard(path)
            name = self._chain.delta_name(1 if at is None else at.number + 1)
            raise ObjectMissing(self._client.location, name, REPAIR) from None
        except BaseException:
            self._directory.discard(path)
            raise
        copy.close()
        found = self._directory.use(path)
        seconds = time.monotonic() - began
        log.log(
            logging.WARNING if seconds > LONG_S else logging.INFO,
            "restored %s: %.1f MB in %.1f seconds",
            self.location,
            self.requests.bytes_in / 1e6,
            seconds,
        )
        return found

    def _maintain(self) -> None:
        """Write a snapshot if one is due, and collect what neither the ledger nor a reader needs any more."""
        assert self._target is not None
        copy = self._current()
        at, base, size = copy.reached(), copy.base(), copy.size_bytes()
        if at is None:
            return
        cells = sum(copy.entries(table) for table in copy.tables())
        many = base.cells_since >= max(MOST_CELLS, cells // 4) or base.bytes_since >= max(MOST_BYTES, size // 2)
        if not many and at.number - base.number < MOST_DELTAS + (size >> 20):
            return
        position, taken = write_snapshot(self._chain, self._directory, copy)
        failpoint("objects.snapshot.written")
        copy.set_base(position, taken)
        # The snapshot before this one stays until the next: for the ledger, and for readers of an earlier batch.
        committed = copy.base_at(self._target)
        if committed is not None and committed.number:
            self._chain.collect(committed.number)
            failpoint("objects.collected")


def remove_objects(client: ObjectClient, query: str) -> None:
    """Remove all objects of the state of a query."""
    client.delete([found.name for found in client.list(shards_prefix(query))])
