"""Membership in a group of the embedded log: a lease that is renewed in the background."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence

from potok.clock import now_ms
from potok.errors import LogError
from potok.log.consumer_groups import Membership, PartitionId, PartitionListener
from potok.log.embedded import group_metadata
from potok.log.embedded.group_metadata import Enrolled, GroupMetadata
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.errors import BrokerClosed, PartitionsMovedError

_LOOK_SECONDS = 0.2
"""The interval at which a member checks for changes."""

_LEAVE_SECONDS = 5.0

_logger = logging.getLogger("potok.log")


class EmbeddedMembership(Membership):
    def __init__(
        self,
        metadata: Metadata,
        group: str,
        topics: Sequence[str],
        listener: PartitionListener,
        lease_ms: int,
        max_pause_ms: int,
    ) -> None:
        self.group = group
        self._listener = listener
        self._held: dict[PartitionId, int] = {}
        self._meant: set[PartitionId] = set()
        self._seat = _Seat(metadata, group, Enrolled(_client(), tuple(topics), lease_ms), max_pause_ms / 1000)
        self._seat.join()
        # Not the transaction itself: the garbage collector may run in the middle of another one.
        weakref.finalize(self, self._seat.left.set).atexit = False

    @property
    def member(self) -> str:
        return self._seat.member

    @property
    def settled(self) -> bool:
        return not self._seat.changed and self._meant <= self._held.keys()

    def changed(self) -> bool:
        self._seat.asked_at = time.monotonic()
        return self._seat.changed

    def refresh(self) -> None:
        if not self.changed():
            return
        try:
            self._hear()
        except BaseException:
            # Repeat a failed notification at the next refresh, even if the group metadata is unchanged.
            self._seat.changed = True
            raise

    def _hear(self) -> None:
        found = self._seat.look()
        if self.member not in found.members:
            self._revoke(list(self._held), [])
            self._seat.join()
            found = self._seat.look()
        owned, self._meant = found.owned_by(self.member), found.meant_for(self.member)
        lost = [
            topic_partition
            for topic_partition, generation in self._held.items()
            if owned.get(topic_partition) != generation
        ]
        leaving = [topic_partition for topic_partition in owned if topic_partition not in self._meant]
        if lost or leaving:
            self._revoke(
                lost
                + [
                    topic_partition
                    for topic_partition in leaving
                    if topic_partition in self._held and topic_partition not in lost
                ],
                leaving,
            )
            owned = self._seat.look().owned_by(self.member)
        gained = {
            topic_partition: since
            for topic_partition, since in owned.items()
            if topic_partition not in self._held and topic_partition in self._meant
        }
        if gained:
            self._assign(gained)

    def assignment(self) -> frozenset[PartitionId]:
        return frozenset(self._held)

    def commit(self, offsets: Mapping[PartitionId, int]) -> None:
        self._seat.asked_at = time.monotonic()
        if not offsets:
            return
        try:
            self._seat.write(lambda txn: group_metadata.commit(txn, self.group, self.member, offsets, self._held))
        except PartitionsMovedError:
            self._seat.changed = True
            raise

    def close(self) -> None:
        self._held = {}
        self._seat.leave()

    def _assign(self, gained: Mapping[PartitionId, int]) -> None:
        """Assign partitions. If the listener fails, it is called again: the partitions may have no position yet."""
        self._held |= gained
        try:
            self._listener.assigned(sorted(gained))
        except BaseException:
            for topic_partition in gained:
                del self._held[topic_partition]
            raise

    def _revoke(self, revoked: Sequence[PartitionId], released: Sequence[PartitionId]) -> None:
        """Revoke partitions, even if the listener fails: it was called, and is not called again."""
        try:
            if revoked:
                self._listener.revoked(sorted(revoked))
        finally:
            for topic_partition in revoked:
                self._held.pop(topic_partition, None)
            if released:
                self._seat.write(lambda txn: group_metadata.release(txn, self.group, self.member, released))


class _Seat:
    """The state of the background thread. It does not refer to the membership, so that an unreferenced membership
    ends."""

    def __init__(self, metadata: Metadata, group: str, enrolled: Enrolled, max_pause: float) -> None:
        self._metadata = metadata
        self._group = group
        self._enrolled = enrolled
        self._max_pause = max_pause
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._seen: bytes | None = None
        self._parsed: tuple[bytes | None, GroupMetadata] = (None, GroupMetadata())
        self.member = ""
        self.changed = True
        self.asked_at = time.monotonic()
        self.left = threading.Event()
        self._thread = threading.Thread(target=self._stay, name=f"potok-group-{group}", daemon=True)

    def write(self, work: group_metadata.Work) -> None:
        self._metadata.write(work)

    def join(self) -> None:
        with self._lock:
            member = uuid.uuid4().hex
            self.write(lambda txn: group_metadata.join(txn, self._group, member, self._enrolled, now_ms()))
            self.member = member
        if not self._thread.is_alive():
            self._thread.start()
            _seats.add(self)

    def look(self) -> GroupMetadata:
        self.changed = False
        self._seen = self._metadata.read(self._raw)
        return GroupMetadata.of_bytes(self._seen)

    def leave(self) -> None:
        """Leave in the thread, so that it does not renew the lease concurrently."""
        self.left.set()
        if os.getpid() == self._process and self._thread.is_alive():
            self._thread.join(_LEAVE_SECONDS)

    def _raw(self, txn: Transaction) -> bytes | None:
        return group_metadata.raw(txn, self._group)

    def _news(self, txn: Transaction) -> tuple[bytes | None, bool]:
        """Return the group metadata, and whether it contains a member with an expired lease."""
        found = self._raw(txn)
        if found != self._parsed[0]:
            self._parsed = (found, GroupMetadata.of_bytes(found))
        return found, len(group_metadata.living(txn, self._group, self._parsed[1], now_ms())) < len(
            self._parsed[1].members
        )

    def _stay(self) -> None:
        renewed_at = time.monotonic()
        lease = self._enrolled.lease_ms / 1000
        while not self.left.wait(min(_LOOK_SECONDS, lease / 6)):
            try:
                if self.member and time.monotonic() - self.asked_at > self._max_pause:
                    self._give_up()
                found, somebody_is_gone = self._metadata.read(self._news)
                if self.member and (somebody_is_gone or time.monotonic() - renewed_at > lease / 3):
                    self.write(lambda txn: group_metadata.beat(txn, self._group, self.member, now_ms()))
                    renewed_at = time.monotonic()
                if found != self._seen:
                    self.changed = True
            except BrokerClosed:
                return
            except LogError as error:
                _logger.warning('a member of group "%s" could not renew its lease: %s', self._group, error)
        try:
            self._quit()
        except LogError as error:
            _logger.info('a member could not leave group "%s" cleanly: %s', self._group, error)

    def _give_up(self) -> None:
        _logger.warning(
            'a consumer of group "%s" did not poll for %g seconds; its partitions were reassigned (max_pause=)',
            self._group,
            self._max_pause,
        )
        self._quit()
        self.changed = True

    def _quit(self) -> None:
        with self._lock:
            member, self.member = self.member, ""
            self.write(lambda txn: group_metadata.leave(txn, self._group, member, now_ms()))


_seats: weakref.WeakSet[_Seat] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    """Hand over the partitions of consumers that were not closed, at the exit of the program."""
    for seat in list(_seats):
        seat.leave()


def _client() -> str:
    return f"{socket.gethostname()} pid {os.getpid()}"
