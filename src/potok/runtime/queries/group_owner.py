"""Which process runs a group of queries."""

from __future__ import annotations

import uuid
from pathlib import Path

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.runtime.queries.lock import QueryLock, QueryTakenOver, this_process


class GroupOwner:
    """Ownership of a group by the process that runs it. On one machine a lock excludes others; a process on another
    machine, or one that lost its lock, learns from the metadata that it was replaced.
    """

    def __init__(self, broker: Broker, group: str) -> None:
        self._broker, self._group = broker, group
        self._lock = QueryLock(group_directory(broker, group), group)
        self._claim = f"{this_process()} {uuid.uuid4().hex}".encode()
        try:
            broker.set_metadata({_owner_key(group): self._claim})
        except BaseException:
            self._lock.release()
            raise

    def taken_over(self) -> QueryTakenOver | None:
        """Return the error to raise if another process runs the group."""
        try:
            owner = self._broker.get_metadata(_owner_key(self._group)) or b""
        except PotokError:
            # The owner is unknown.
            return None
        return None if owner == self._claim else QueryTakenOver(self._group, owner.decode().rpartition(" ")[0])

    def release(self) -> None:
        self._lock.release()


def _owner_key(group: str) -> str:
    return f"shared/{group}/owner"


def group_directory(broker: Broker, group: str) -> Path:
    """Return the directory that holds the lock of a group."""
    return broker.directory / "shared" / group
