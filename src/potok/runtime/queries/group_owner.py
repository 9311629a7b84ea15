"""Which process runs a group of queries."""

from __future__ import annotations

import uuid
from pathlib import Path

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.runtime.queries.lock import QueryLock, QueryTakenOver, this_process


class GroupOwner:
    """Held by the process that runs a group. On one machine a lock keeps others out; a process on another machine, or
    one that lost its lock, finds out by the metadata that it was replaced."""

    def __init__(self, broker: Broker, group: str) -> None:
        self._broker, self._group = broker, group
        self._lock = QueryLock(group_directory(broker, group), group)
        self._claim = f"{this_process()} {uuid.uuid4().hex}".encode()
        try:
            broker.set_metadata({_owner_mark(group): self._claim})
        except BaseException:
            self._lock.release()
            raise

    def taken_over(self) -> QueryTakenOver | None:
        """What to say if another process has begun to run the group."""
        try:
            owner = self._broker.get_metadata(_owner_mark(self._group)) or b""
        except PotokError:
            # Nobody can say.
            return None
        return None if owner == self._claim else QueryTakenOver(self._group, owner.decode().rpartition(" ")[0])

    def release(self) -> None:
        self._lock.release()


def _owner_mark(group: str) -> str:
    return f"shared/{group}/owner"


def group_directory(broker: Broker, group: str) -> Path:
    """Where the lock of a group is."""
    return broker.directory / "shared" / group
