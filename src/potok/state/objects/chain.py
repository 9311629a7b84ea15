"""The objects of one shard: deltas by number, snapshots in parts, and what may be collected."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from potok.backends.objects.object_client import CountedClient, ObjectDamaged, ObjectMissing
from potok.state.cell import REPAIR
from potok.state.objects.delta import Delta, DeltaUnreadable, Position, decode_delta

AT_ONCE = 8
"""How many objects are transferred at a time."""


class NotTheChain(Exception):
    """Deltas that do not lead to the wanted position: written by a driver that was replaced, after collection."""


def shards_prefix(query: str) -> str:
    """Return the prefix of all shards of a query."""
    return f"queries/{quote(query, safe='@.')}/state/"


class Chain:
    """Names, and reads with checks."""

    def __init__(self, client: CountedClient, query: str, shard: int) -> None:
        self.client, self.prefix = client, f"{shards_prefix(query)}{shard}/"
        self.location = f"{client.location} (query {query}, shard {shard})"

    def delta_name(self, number: int) -> str:
        return f"{self.prefix}delta/{number:016d}"

    def newest(self) -> int:
        """Return the number of the last delta; 0 if there is none."""
        listed = self.client.list(f"{self.prefix}delta/")
        return max((_number(found.name) for found in listed), default=0)

    def exists(self) -> bool:
        return self.newest() > 0 or self.find(1) is not None

    def end(self, reached: Position | None) -> Delta | None:
        """Return the last delta, starting from a position that a copy has reached; None if the chain is empty.

        A listing may be late, so the last number that it knows is only a start.
        """
        known = None if reached is None else self.find(reached.number)
        if known is None or known.position != reached:
            newest = self.newest()
            known = self.find(newest) if newest else None
        while (following := self.find(1 if known is None else known.header.number + 1)) is not None:
            known = following
        return known

    def delta(self, number: int) -> Delta:
        found = self.find(number)
        if found is None:
            raise ObjectMissing(self.client.location, self.delta_name(number), REPAIR)
        return found

    def find(self, number: int) -> Delta | None:
        name = self.delta_name(number)
        found = self.client.get(name)
        if found is None:
            return None
        try:
            return decode_delta(found.data)
        except DeltaUnreadable as error:
            raise ObjectDamaged(self.client.location, name, str(error), REPAIR) from error

    def at(self, position: Position) -> Delta:
        """Return the delta at a position."""
        found = self.delta(position.number)
        if found.position != position:
            why = f"its digest is {found.digest}, but the ledger names {position.digest}"
            raise ObjectDamaged(self.client.location, self.delta_name(position.number), why, REPAIR)
        return found

    def between(self, start: Position | None, end: Delta) -> Iterator[Delta]:
        """Yield the deltas after a position up to `end`; raise `NotTheChain` at the first that does not follow."""
        number = 0 if start is None else start.number
        before = start
        with ThreadPoolExecutor(AT_ONCE) as threads:
            while number < end.header.number:
                until = min(number + AT_ONCE, end.header.number)
                wanted = range(number + 1, until + 1)
                found = [end if n == end.header.number else None for n in wanted]
                got = threads.map(self.find, [n for n in wanted if n != end.header.number])
                for delta in [*got, *filter(None, found)]:
                    if delta is None or not self._follows(delta, before):
                        raise NotTheChain
                    yield delta
                    before = delta.position
                number = until

    def _follows(self, delta: Delta, before: Position | None) -> bool:
        return delta.header.number == 1 if before is None else delta.follows(before)

    def collect(self, keep_from: int) -> int:
        """Delete the snapshots before a number and the deltas up to it; return how many objects there were."""
        old = [found.name for found in self.client.list(f"{self.prefix}delta/") if _number(found.name) <= keep_from]
        snapshots = self.client.list(f"{self.prefix}snapshot/")
        old += [found.name for found in snapshots if _number(found.name.rsplit("/", 1)[0]) < keep_from]
        if old:
            self.client.delete(old)
        return len(old)

    def content(self, name: str) -> bytes:
        """Return the bytes of an object that must exist."""
        found = self.client.get(name)
        if found is None:
            raise ObjectMissing(self.client.location, name, REPAIR)
        return found.data


def _number(name: str) -> int:
    """Return the number in the last part of a name, or 0 for an object that Potok did not write."""
    digits = name.rsplit("/", 1)[-1].split("-")[0]
    return int(digits) if digits.isdigit() else 0
