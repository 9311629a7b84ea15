"""The open matches of a key, and the cells that they are kept in.

The head cell of a key holds its last runs. With more of them, the older ones are moved to segments: cells that are
written once, and read when a record concerns one of their runs or the time of the first one is over. So a batch costs
what its records change, however many matches are open.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count, islice

from potok.operators.patterns.run_columns import DueOf, describe_segment, described_segment, pack, unpack
from potok.operators.patterns.runs import Run, Segment, States
from potok.state.codec import dump_state, load_state

SIZE = 256
"""The runs of a segment. The head holds less than twice as many."""

SMALL = SIZE // 4
"""A segment that changed and has fewer runs is merged with the one before it."""

FEW = 8
"""So many runs of a key are advanced one by one."""

_HEAD = -1
_COLUMNS = 5

Quiet = Callable[[States], bool]
"""Whether nothing changes for runs that wait in these states."""

Fetch = Callable[["Runs", list[Segment]], None]
"""Read segments of the key, and supply their cells."""

SegmentCell = tuple[int, bytes | None, bytes | None]
"""The number of a segment, its cell, and the cell before."""


_NO_NUMBERS: Iterator[int] = iter(())


def segment_numbers(head: bytes) -> list[int]:
    """Return the numbers of the segments of a head cell."""
    _, _, _, _, *rest = load_state(head)
    return [segment[0] for segment in rest[_COLUMNS][1]] if len(rest) > _COLUMNS else []


class Runs:
    """When to visit a key next, how many records it has seen since its cell exists, its runs by start, how many
    matches were counted, and the number of the first record that no match contains.

    `due_of` is needed if threads of one run end at different times.
    """

    __slots__ = (
        "_cold",
        "_counter",
        "_due_of",
        "_dues",
        "_ended",
        "_fetch",
        "_first",
        "_groups",
        "_next",
        "_read",
        "_segments",
        "_tail",
        "count",
        "covered",
        "due",
        "matched",
        "plain",
        "size",
    )

    def __init__(self, *, fetch: Fetch | None = None, due_of: DueOf | None = None) -> None:
        self.due: int | None = None
        self.count = 0
        self.matched = 0
        self.covered = 0
        self.size = 0
        self.plain = True
        """Whether there are no more than a few runs, so that nothing is known of them but their order."""
        self._fetch, self._due_of = fetch, due_of
        self._first: Run | None = None
        self._tail = Segment(_HEAD, {})
        self._segments: deque[Segment] = deque()
        self._next = 0
        self._ended: list[Segment] = []
        self._read: dict[int, Segment] = {}
        # The runs by the states of their threads, then by the number of their first record, once there are many; and
        # the segments that were not read by the states of their runs.
        self._groups: dict[States, dict[int, Run]] | None = None
        self._cold: dict[States, dict[int, Segment]] = {}
        self._dues: list[tuple[int, int, int, Run | Segment]] | None = None
        self._counter: Iterator[int] = _NO_NUMBERS
        if due_of is not None:
            self._counter = count()
            self._expect_many()

    @classmethod
    def load(cls, data: bytes | None, *, fetch: Fetch | None = None, due_of: DueOf | None = None) -> Runs:
        runs = cls(fetch=fetch, due_of=due_of)
        if data is None:
            return runs
        runs.due, runs.count, runs.matched, runs.covered, *rest = load_state(data)
        for run in unpack(rest[:_COLUMNS]):
            runs._put(run, runs._tail)
        runs.size = len(_held(runs._tail))
        if runs.size > FEW or len(rest) > _COLUMNS:
            runs._expect_many()
        if len(rest) > _COLUMNS:
            runs._next, segments = rest[_COLUMNS]
            for segment in map(described_segment, segments):
                runs._segments.append(segment)
                runs.size += segment.size
                runs._cold.setdefault(segment.states, {})[segment.number] = segment
        return runs

    # ---- The runs, in the order of their starts.

    @property
    def in_segments(self) -> bool:
        return bool(self._segments)

    def first(self) -> Run:
        """Return the run that began first."""
        if self._first is None:
            segment = self._front() if self._segments else self._tail
            if segment.runs is None:
                self._need([segment])
            self._first = next(iter(_held(segment).values()))
        return self._first

    def first_time(self) -> int:
        """Return the time of the record that began the first run."""
        if self._first is not None:
            return self._first.start.time
        segment = self._front()
        return segment.first_time if segment.runs is None else self.first().start.time

    def first_number(self) -> int:
        segment = self._front()
        return segment.first if segment.runs is None else self.first().start.number

    def first_waits(self) -> bool:
        """Whether the first run has a thread."""
        if self._first is None and self._segments:
            segment = self._front()
            if segment.runs is None and not segment.idle:
                return True
        return bool(self.first().threads)

    def all(self) -> list[Run]:
        self._need(self._segments)
        return [run for segment in (*self._segments, self._tail) for run in _held(segment).values()]

    def _front(self) -> Segment:
        while self._segments:
            segment = self._segments[0]
            if segment.runs is None or segment.runs:
                return segment
            self._ended.append(self._segments.popleft())
        return self._tail

    def add(self, run: Run) -> None:
        """Add a run that began behind all others."""
        self._put(run, self._tail)
        self.size += 1
        if self.plain and self.size > FEW:
            self._expect_many()
        if not self.plain:
            self.changed(run)

    def remove(self, run: Run) -> None:
        if run.home is None:
            return
        if self.plain:
            del _held(self._tail)[run.start.number]
            run.home = None
            self.size -= 1
            if run is self._first:
                self._first = None
            return
        segment = self._home(run.home)
        runs, number = _held(segment), run.start.number
        if not segment.changed and next(iter(runs)) != number:
            segment.changed = True
        del runs[number]
        if run is self._first:
            self._first = None
        run.home = run.due = None
        self.size -= 1
        self._ungroup(run)

    def changed(self, run: Run) -> None:
        """Take note of other threads, or of another result, of a run."""
        if run.home is None or self.plain:
            return
        self._home(run.home).changed = True
        if self._groups is not None:
            self._ungroup(run)
            self._group(run)
        self._order(run)

    def _expect_many(self) -> None:
        """Keep track of more than the order; runs are removed at the front, which takes long in a large dict."""
        if self.plain:
            self.plain = False
            self._tail.runs = OrderedDict(_held(self._tail))

    def _put(self, run: Run, segment: Segment) -> None:
        _held(segment)[run.start.number] = run
        run.home = segment.number

    def _home(self, number: int) -> Segment:
        return self._tail if number == _HEAD else self._read[number]

    # ---- What a record can change.

    def few(self) -> list[Run]:
        """Return all runs, if they are `plain`."""
        return list(_held(self._tail).values())

    def concerned(self, quiet: Quiet) -> list[Run]:
        """Return the runs that are not quiet, by start. Of many, those that wait in the same states are asked about
        once."""
        if self._groups is None:
            if not self._segments and self.size <= FEW:
                return list(_held(self._tail).values())
            self._groups = {}
            for segment in (*self._segments, self._tail):
                for run in () if segment.runs is None else segment.runs.values():
                    self._group(run)
        self._need(self._loud(quiet))
        groups = self._groups
        found = [run for states in list(groups) if not quiet(states) for run in groups[states].values()]
        found.sort(key=lambda run: run.start.number)
        return found

    def _loud(self, quiet: Quiet) -> list[Segment]:
        return [
            segment for states, segments in self._cold.items() if not quiet(states) for segment in segments.values()
        ]

    def wanted(self, quiet: Quiet, within_ms: int | None, until_ms: int) -> list[Segment]:
        """Return the segments to read, as far as that is known: for what is not quiet, or over by `until_ms`."""
        if not self._segments:
            return []
        found = {segment.number: segment for segment in self._loud(quiet)}
        for segment in self._segments:
            due = segment.due
            if self._due_of is None and within_ms is not None:
                due = segment.first_time + within_ms
            if due is not None and due <= until_ms:
                found[segment.number] = segment
        return list(found.values())

    def _group(self, run: Run) -> None:
        assert self._groups is not None
        run.states = tuple([state for state, _ in run.threads])
        if run.states:
            self._groups.setdefault(run.states, {})[run.start.number] = run

    def _ungroup(self, run: Run) -> None:
        if self._groups is not None and run.states:
            members = self._groups[run.states]
            del members[run.start.number]
            if not members:
                del self._groups[run.states]
            run.states = ()

    # ---- When threads are over, if those of one run end at different times.

    def next_due(self) -> int | None:
        if self._dues is None:
            self._dues = []
            for segment in (*self._segments, self._tail):
                if segment.runs is None:
                    self._order_segment(segment)
                else:
                    for run in segment.runs.values():
                        self._order(run)
        while self._dues:
            due, _, _, item = self._dues[0]
            if item.due == due and (isinstance(item, Run) or item.runs is None):
                return due
            heappop(self._dues)
        return None

    def first_due(self) -> Run:
        """Return the run for which `next_due` is; of several, the one that began first."""
        while True:
            assert self._dues
            item = self._dues[0][3]
            if isinstance(item, Run):
                return item
            self._need([item])
            self.next_due()

    def _order(self, run: Run) -> None:
        if self._dues is None or self._due_of is None:
            return
        due = self._due_of(run)
        if due is not None and due != run.due:
            heappush(self._dues, (due, run.start.number, next(self._counter), run))
        run.due = due

    def _order_segment(self, segment: Segment) -> None:
        assert self._dues is not None
        if segment.due is not None:
            heappush(self._dues, (segment.due, segment.first, next(self._counter), segment))

    # ---- Cells.

    def _need(self, segments: Iterable[Segment]) -> None:
        cold = [segment for segment in segments if segment.runs is None]
        if cold:
            assert self._fetch is not None
            self._fetch(self, cold)

    def supply(self, segment: Segment, data: bytes | None) -> None:
        """Put the runs of a segment in place that was read."""
        if segment.runs is not None:
            return
        found = [] if data is None else [run for run in unpack(load_state(data)) if run.start.number >= segment.first]
        if len(found) != segment.size:
            raise ValueError(f"segment {segment.number} has {len(found)} open matches, not {segment.size}")
        segment.runs, segment.stored = {}, data
        self._read[segment.number] = segment
        waiting = self._cold[segment.states]
        del waiting[segment.number]
        if not waiting:
            del self._cold[segment.states]
        for run in found:
            self._put(run, segment)
            if self._groups is not None:
                self._group(run)
            self._order(run)

    def dump(self) -> bytes | None:
        """Return the head cell; None without an open match, if none were counted."""
        if not self.plain:
            self._arrange()
        if not self.size and not self.matched:
            return None
        state = (self.due, self.count, self.matched, self.covered, *pack(list(_held(self._tail).values())))
        if not self._segments:
            return dump_state(state)
        return dump_state(
            (*state, [self._next, [describe_segment(segment, self._due_of) for segment in self._segments]])
        )

    def segment_cells(self) -> list[SegmentCell]:
        """Return the cells of segments to write besides the head, after `dump`."""
        if self.plain:
            return []
        gone: list[SegmentCell] = [(one.number, None, one.stored) for one in self._ended if one.stored is not None]
        return gone + [
            (one.number, dump_state(pack(list(_held(one).values()))), one.stored)
            for one in self._segments
            if one.changed
        ]

    def _arrange(self) -> None:
        """Move the oldest runs of a long head to segments, merge what became small, and drop what has ended."""
        tail = _held(self._tail)
        while len(tail) >= 2 * SIZE:
            segment = self._read[self._next] = Segment(self._next, {}, changed=True)
            for run in list(islice(tail.values(), SIZE)):
                self._move(run, segment)
            self._segments.append(segment)
            self._next += 1
        kept: deque[Segment] = deque()
        for segment in self._segments:
            if segment.changed and kept and len(_held(segment)) < SMALL:
                previous = kept[-1]
                size = previous.size if previous.runs is None else len(previous.runs)
                if size + len(_held(segment)) <= SIZE:
                    self._need([previous])
                    previous.changed = True
                    for run in list(_held(segment).values()):
                        self._move(run, previous)
            if segment.runs is not None and not segment.runs:
                self._ended.append(segment)
            else:
                kept.append(segment)
        self._segments = kept

    def _move(self, run: Run, segment: Segment) -> None:
        assert run.home is not None
        del _held(self._home(run.home))[run.start.number]
        self._put(run, segment)


def _held(segment: Segment) -> dict[int, Run]:
    assert segment.runs is not None
    return segment.runs
