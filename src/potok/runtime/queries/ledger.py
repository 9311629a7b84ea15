"""The ledger of a query: what has been committed. It changes together with the output of a batch, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from potok.log.broker import Broker, MetadataAfter, PublishedBatch, Staged, TaskOutput
from potok.log.errors import MetadataConflict
from potok.log.failpoint import failpoint
from potok.runtime.queries.lock import QueryTakenOver, this_process
from potok.state.entry import Entry, metadata_key_of
from potok.state.offsets import Offsets


class Ledger:
    """The writer of a ledger: every change expects the ledger as it was read, which excludes a second driver."""

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self.query = broker, query
        self._key = metadata_key_of(query, "ledger")
        self._data = broker.get_metadata(self._key)
        self.entry = Entry() if self._data is None else Entry.of_bytes(self._data)

    @property
    def is_new(self) -> bool:
        return self._data is None

    def begin_epoch(self, metadata_keys: Mapping[str, bytes | None], **changes: Any) -> None:
        """Start the next epoch; uncommitted work of the previous one becomes void."""
        last = self.entry
        ended = dict(last.ended) if last.clean else {**last.ended, last.epoch: last.batch}
        entry = replace(last, epoch=last.epoch + 1, ended=ended, clean=False, **changes)
        self._set(entry, {**metadata_keys, metadata_key_of(self.query, "holder"): this_process().encode()})

    def intend(self, end: Offsets, *, durable: bool) -> None:
        """Record where the next batch ends before it starts.

        Until it is committed, every attempt at it has the same end: cells written by one attempt count for the next.
        `durable` preserves this across a crash, for output that may be visible before the commit.
        """
        entry = replace(self.entry, intended=end)
        if durable and self.entry.intended != end:
            failpoint("intent.before")
            self._set(entry, {})
            failpoint("intent.recorded")
        self.entry = entry

    def drop_intent(self) -> None:
        """Drop a batch that has nothing left to read because the program or its offsets have changed."""
        self.entry = replace(self.entry, intended=None)

    def check_owner(self) -> None:
        """Raise `QueryTakenOver` if another process has started an epoch."""
        data = self._broker.get_metadata(self._key)
        if data != self._data and data is not None and Entry.of_bytes(data).epoch > self.entry.epoch:
            holder = self._broker.get_metadata(metadata_key_of(self.query, "holder")) or b""
            raise QueryTakenOver(self.query, holder.decode())

    def move_clock(self, stream_time_ms: int) -> None:
        """Advance the stream time of every partition that is behind an instant to it, for tests."""
        entry = self.entry
        times = {
            topic: {
                part: max(stream_time_ms, entry.stream_times.get(topic, {}).get(part, stream_time_ms)) for part in parts
            }
            for topic, parts in entry.offsets.topics.items()
        }
        self._set(replace(entry, stream_times=times), {})

    def replace(self, entry: Entry, metadata_keys: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        """Replace the entry of a stopped query."""
        self._set(entry, metadata_keys)

    def end_epoch(self, metadata_keys: Mapping[str, bytes | None]) -> None:
        """End the epoch. It is clean unless a batch was started, whose cells do not count."""
        self._set(replace(self.entry, clean=self.entry.intended is None), metadata_keys)

    def commit(
        self,
        entry: Entry,
        staged: Sequence[Staged],
        metadata_keys: Mapping[str, bytes | None],
        metadata_after: MetadataAfter | None = None,
        output: TaskOutput | None = None,
    ) -> None:
        """Commit a batch: its output, its metadata keys and the ledger in one transaction."""
        failpoint("ledger.before")
        batch = PublishedBatch(self.query, entry.batch, entry.offsets.topics, entry.epoch)
        try:
            keys = {**metadata_keys, **self.after(entry)}
            self._broker.publish(staged, keys, self.before, batch, metadata_after, output)
        except MetadataConflict:
            self.check_owner()
            if not self.holds(entry):
                raise
            # An earlier attempt was committed, and its response was lost.
        failpoint("ledger.committed")
        self.note(entry)

    @property
    def before(self) -> dict[str, bytes | None]:
        """Return the metadata key as it was read, which a writer expects to find."""
        return {self._key: self._data}

    def after(self, entry: Entry) -> dict[str, bytes | None]:
        """Return the metadata key as it will be."""
        return {self._key: entry.to_bytes()}

    def holds(self, entry: Entry) -> bool:
        """Whether an entry is the one that was committed last."""
        return self._broker.get_metadata(self._key) == entry.to_bytes()

    def note(self, entry: Entry) -> None:
        """Adopt an entry that was committed here or together with other ledgers."""
        self._data, self.entry = entry.to_bytes(), entry

    def _set(self, entry: Entry, metadata_keys: Mapping[str, bytes | None]) -> None:
        data = entry.to_bytes()
        try:
            self._broker.set_metadata({**metadata_keys, self._key: data}, {self._key: self._data})
        except MetadataConflict:
            self.check_owner()
            raise
        self._data, self.entry = data, entry
