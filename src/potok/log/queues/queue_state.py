"""The state of one partition of a queue: which records are done, in processing, or waiting, as runs of offsets.

All records before `low` are done, and none from `next` on was ever delivered. The offsets in between are covered by
runs of neighbours with the same status, so that the size grows with the exceptions, not with the records.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from potok.errors import LogError
from potok.log.ranges import ranges_of

_FORMAT = 1
_HEAD = struct.Struct("<Bqq")
_RUN = struct.Struct("<qBIq")

MOST_RUNS = 10_000
"""With this many exceptions in a partition, no new records are delivered before some of them are settled."""


class Kind(IntEnum):
    DONE = 0
    OUT = 1
    WAITING = 2


class Run(NamedTuple):
    """Offsets `first` to `end` (exclusive). Records in processing or waiting are redelivered from `due_ms` on."""

    first: int
    end: int
    kind: Kind
    deliveries: int = 0
    due_ms: int = 0

    def status(self) -> tuple[Kind, int, int]:
        return self.kind, self.deliveries, self.due_ms

    def is_due(self, now_ms: int) -> bool:
        return self.kind is not Kind.DONE and self.due_ms <= now_ms


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Records of a queue: ready, in processing, and waiting for another attempt."""

    ready: int = 0
    out: int = 0
    waiting: int = 0

    def __add__(self, other: QueueCounts) -> QueueCounts:
        return QueueCounts(self.ready + other.ready, self.out + other.out, self.waiting + other.waiting)


class QueueState:
    """One partition of one queue. `touched` says that it differs from the stored state."""

    def __init__(self, start: int, runs: Iterable[Run] = ()) -> None:
        self.next = start
        self.runs = list(runs)
        self.touched = False

    @property
    def low(self) -> int:
        return self.runs[0].first if self.runs else self.next

    def copy(self) -> QueueState:
        return QueueState(self.next, self.runs)

    def claim(self, now_ms: int, limit: int, ahead: int, end: int, due_ms: int) -> list[Run]:
        """Claim records until `due_ms`: those due for redelivery, then new ones before `end`.

        Of the new ones, `ahead` more are claimed, which count as delivered only when they are settled: their worker
        may die before it processes them. Redeliveries are never prefetched, so a record that kills its workers is
        counted.
        """
        claimed = []
        for run in self.runs:
            if limit > 0 and run.is_due(now_ms):
                stop = min(run.end, run.first + limit)
                claimed.append(Run(run.first, stop, Kind.OUT, run.deliveries + 1, due_ms))
                limit -= stop - run.first
        for run in claimed:
            self._change(run)
        for count, deliveries in ((limit, 1), (ahead, 0)):
            stop = min(end, self.next + count)
            if stop > self.next and len(self.runs) < MOST_RUNS:
                claimed.append(Run(self.next, stop, Kind.OUT, deliveries, due_ms))
                self.runs[-1:] = _merged([*self.runs[-1:], claimed[-1]])
                self.next = stop
                self.touched = True
        return claimed

    def finish(self, offsets: Iterable[int]) -> None:
        """Mark offsets as done, whichever worker has them: a late acknowledgement still counts."""
        for first, end in ranges_of(offsets):
            self._change(Run(first, end, Kind.DONE))
        while self.runs and self.runs[0].kind is Kind.DONE:
            self.runs.pop(0)

    def holds(self, offset: int, claimed: int) -> bool:
        """Return whether a record is still in processing by the claim with this count."""
        at = bisect_right(self.runs, offset, key=_first) - 1
        run = self.runs[at] if at >= 0 else None
        return run is not None and offset < run.end and run.kind is Kind.OUT and run.deliveries == claimed

    def put_back(self, offset: int, claimed: int, deliveries: int, due_ms: int) -> None:
        """Put back a record until `due_ms`, with its number of deliveries."""
        if self.holds(offset, claimed):
            self._change(Run(offset, offset + 1, Kind.WAITING, deliveries, due_ms))

    def extend(self, offset: int, claimed: int, due_ms: int) -> None:
        if self.holds(offset, claimed):
            self._change(Run(offset, offset + 1, Kind.OUT, claimed, due_ms))

    def truncate(self, first: int) -> None:
        """Drop what is before the log start offset `first`."""
        if self.low < first:
            self.runs = [run._replace(first=max(run.first, first)) for run in self.runs if run.end > first]
            self.next = max(self.next, first)
            self.touched = True
            self.finish(())

    def counts(self, now_ms: int, end: int) -> QueueCounts:
        found = QueueCounts(ready=max(end - self.next, 0))
        for run in self.runs:
            size = run.end - run.first
            if run.is_due(now_ms):
                found += QueueCounts(ready=size)
            elif run.kind is Kind.OUT:
                found += QueueCounts(out=size)
            elif run.kind is Kind.WAITING:
                found += QueueCounts(waiting=size)
        return found

    def to_bytes(self) -> bytes:
        """Encode the runs, which have no gaps, by their lengths."""
        runs = [_RUN.pack(run.end - run.first, run.kind, run.deliveries, run.due_ms) for run in self.runs]
        return b"".join((_HEAD.pack(_FORMAT, self.low, self.next), *runs))

    @classmethod
    def of_bytes(cls, data: bytes) -> QueueState:
        version, at, next_offset = _HEAD.unpack_from(data)
        if version != _FORMAT:
            raise LogError(
                f"the state of a queue has the unknown format {version}", hint="use the version of potok that wrote it"
            )
        runs = []
        for length, kind, deliveries, due_ms in _RUN.iter_unpack(data[_HEAD.size :]):
            runs.append(Run(at, at + length, _KINDS[kind], deliveries, due_ms))
            at += length
        return cls(next_offset, runs)

    def _change(self, to: Run) -> None:
        """Replace the status of the offsets of a run; offsets outside all runs are unchanged."""
        begin = max(bisect_right(self.runs, to.first, key=_first) - 1, 0)
        stop = bisect_left(self.runs, to.end, key=_first)
        pieces = []
        for run in self.runs[begin:stop]:
            first, end = max(to.first, run.first), min(to.end, run.end)
            if first >= end:
                pieces.append(run)
                continue
            if run.first < first:
                pieces.append(run._replace(end=first))
            pieces.append(to._replace(first=first, end=end))
            if end < run.end:
                pieces.append(run._replace(first=end))
        before, after = max(begin - 1, 0), stop + 1
        self.runs[before:after] = _merged([*self.runs[before:begin], *pieces, *self.runs[stop:after]])
        self.touched = True


_KINDS = tuple(Kind)


def _first(run: Run) -> int:
    return run.first


def _merged(runs: Iterable[Run]) -> list[Run]:
    found: list[Run] = []
    for run in runs:
        if found and found[-1].end == run.first and found[-1].status() == run.status():
            found[-1] = found[-1]._replace(end=run.end)
        else:
            found.append(run)
    return found
