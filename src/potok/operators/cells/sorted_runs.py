"""Waiting rows in runs: a batch adds one run, sorted by the hash of the key, and several runs are merged into one.

A cell for each row would cost more than the rest of a join. So rows are stored in pages of thousands, with hashes and
times apart from the rest: a search for partners reads the pages of hashes that contain its own, and of the rest only
the pages with a partner. A catalog, which is an ordinary cell, lists the runs; runs it no longer lists are deleted in
the next batch, when nothing can read them any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from potok.operators.core.chunk import Ints
from potok.operators.joins.join_rows import Hashes, Numbers, Probe, Rows, concat_rows, rows_of_payload
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

PAGE = 4096
"""Rows in a page."""

SEVERAL = 4
"""How many runs of about one size are merged."""

LARGE = 262_144
"""The size above which a run is not merged: rewriting it would cost more than reading it next to others."""

FOREVER = 1 << 62

_CATALOG = b"catalog"


@dataclass(frozen=True, slots=True)
class Run:
    """The catalog's entry for a run: times are those of its rows. `least_time` is that of the rows that are emitted
    when due."""

    number: int
    rows: int
    first_hashes: bytes
    median_time: int
    greatest_time: int
    least_time: int

    @property
    def pages(self) -> int:
        return -(-self.rows // PAGE)

    def page_keys(self, pages: Sequence[int], part: bytes) -> list[bytes]:
        head = self.number.to_bytes(8, "big")
        return [part + head + page.to_bytes(4, "big") for page in pages]

    @property
    def bits_key(self) -> bytes:
        return b"m" + self.number.to_bytes(8, "big")

    def all_keys(self) -> list[bytes]:
        pages = range(self.pages)
        return [*self.page_keys(pages, b"h"), *self.page_keys(pages, b"p"), self.bits_key]


@dataclass(slots=True)
class Found:
    """Rows of one run, with their numbers in it, and the numbers of those that searched for them."""

    run: Run
    numbers: Numbers
    seekers: Numbers
    rows: Rows

    def where(self, mask: npt.NDArray[np.bool_]) -> Found:
        if mask.all():
            return self
        return Found(self.run, self.numbers[mask], self.seekers[mask], self.rows.where(mask))


class Runs:
    """The runs under one name on one shard. A row is due `keep_ms` after its time; then it may be deleted.

    With `marked`, rows can be flagged, and unflagged ones are emitted when they are due.
    """

    def __init__(self, table: str, session: StateSession, keep_ms: int, *, marked: bool) -> None:
        self.table = table
        self._session, self._keep_ms, self._marked = session, keep_ms, marked
        self._before: bytes | None = session.read(table, [_CATALOG])[0]
        self._next, self._garbage, self._runs = _loaded(self._before)
        self._first_new = self._next
        self._gone: list[Run] = []
        self._bits: dict[int, tuple[npt.NDArray[np.bool_], bytes | None]] = {}

    def __len__(self) -> int:
        return sum(run.rows for run in self._runs)

    def next_due(self) -> int | None:
        """Return the watermark at which rows are emitted, or a whole run can be dropped."""
        times = [min(run.least_time, run.greatest_time) for run in self._runs]
        return min(times) + self._keep_ms if times else None

    def find(self, probe: Probe) -> Iterator[Found]:
        """Return the rows with the same hashes in reach; the caller compares the keys."""
        for run in self._runs:
            pages = _pages_with(run, probe.hashes)
            hashes, times = self._heads(run, pages)
            seekers, indexes = probe.match(hashes, times)
            if len(indexes):
                page_of = np.repeat(pages, _sizes(run, pages))
                starts = np.cumsum(_sizes(run, pages)) - _sizes(run, pages)
                numbers = indexes - np.repeat(starts, _sizes(run, pages))[indexes] + page_of[indexes] * PAGE
                yield Found(run, numbers, seekers, self._rows(run, numbers))

    def mark(self, run: Run, numbers: Numbers) -> None:
        self._marks(run)[0][numbers] = True

    def everything(self) -> Iterator[tuple[Rows, npt.NDArray[np.bool_]]]:
        """Return the rows of each run, and which of them are flagged."""
        for run in self._runs:
            yield self._whole(run, -FOREVER)

    def close(self, watermark_ms: int) -> list[Rows]:
        """Delete what is due; return the rows that were never flagged and were not due before."""
        due: list[Rows] = []
        kept: list[Run] = []
        for run in self._runs:
            if run.least_time + self._keep_ms <= watermark_ms:
                rows, run = self._let_out(run, watermark_ms)
                due.append(rows)
            if run.greatest_time + self._keep_ms <= watermark_ms:
                self._gone.append(run)
            elif run.pages > 1 and run.median_time + self._keep_ms <= watermark_ms:
                self._gone.append(run)
                rows, marks = self._whole(run, watermark_ms)
                kept.append(self._written(rows, marks))
            else:
                kept.append(run)
        self._runs = kept
        return due

    def add(self, rows: Rows, marks: npt.NDArray[np.bool_], watermark_ms: int) -> None:
        """Add rows in hash order that are not due yet; runs of about their size are merged with them."""
        parts = [(rows, marks)]
        total = len(rows)
        while len(same := self._like(total)) + 1 >= SEVERAL and total + sum(run.rows for run in same) <= LARGE:
            parts = [self._whole(run, watermark_ms) for run in same] + parts
            self._gone += same
            self._runs = [run for run in self._runs if run not in same]
            total = sum(len(part) for part, _ in parts)
        if total:
            whole = concat_rows([part for part, _ in parts])
            marked = np.concatenate([part for _, part in parts])
            if len(parts) > 1:
                order = np.argsort(whole.hashes, kind="stable")
                whole, marked = whole.take(order), marked[order]
            self._runs.append(self._written(whole, marked))

    def _like(self, count: int) -> list[Run]:
        """Return the runs of about this size from earlier batches; those of this batch cannot be read yet."""
        wanted = _size_class(count)
        return [run for run in self._runs if run.number < self._first_new and _size_class(run.rows) == wanted]

    def finish(self) -> None:
        """Write the flags and the catalog, and delete the runs that the previous catalog had dropped."""
        numbers = {run.number: run for run in self._runs}
        for number, (marks, before) in self._bits.items():
            data = np.packbits(marks).tobytes()
            if number in numbers and data != before:
                self._session.write(self.table, [(numbers[number].bits_key, data, before)])
        garbage = [key for run in self._gone for key in run.all_keys()]
        self._session.discard(self.table, self._garbage)
        catalog = dump_state((self._next, garbage, [_entry(run) for run in self._runs]))
        if catalog != (self._before or dump_state((0, [], []))):
            self._session.write(self.table, [(_CATALOG, catalog, self._before)])

    def _let_out(self, run: Run, watermark_ms: int) -> tuple[Rows, Run]:
        """Return the unflagged rows of a run that are due, and the run with the time of the next."""
        _, times = self._heads(run, np.arange(run.pages))
        unmarked, due = ~self._marks(run)[0], times + self._keep_ms <= watermark_ms
        out = np.flatnonzero(unmarked & due)
        rows = self._rows(run, out)
        self.mark(run, out)
        later = times[unmarked & ~due]
        return rows, replace(run, least_time=int(later.min()) if len(later) else FOREVER)

    def _whole(self, run: Run, watermark_ms: int) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Return the rows of a run that are not due, and their flags."""
        rows = self._rows(run, np.arange(run.rows))
        marks = self._marks(run)[0] if self._marked else np.zeros(run.rows, np.bool_)
        open_ = rows.times + self._keep_ms > watermark_ms
        return rows.where(open_), marks[open_]

    def _written(self, rows: Rows, marks: npt.NDArray[np.bool_]) -> Run:
        unmarked = rows.times[~marks] if self._marked else rows.times[:0]
        run = Run(
            self._next,
            len(rows),
            rows.hashes[::PAGE].tobytes(),
            int(np.partition(rows.times, len(rows) // 2)[len(rows) // 2]),
            int(rows.times.max()),
            int(unmarked.min()) if len(unmarked) else FOREVER,
        )
        self._next += 1
        parts = [rows.slice(start, min(PAGE, len(rows) - start)) for start in range(0, len(rows), PAGE)]
        heads = [part.hashes.tobytes() + part.times.tobytes() for part in parts]
        rest = [part.payload() for part in parts]
        pages = range(len(parts))
        cells = zip([*run.page_keys(pages, b"h"), *run.page_keys(pages, b"p")], [*heads, *rest], strict=True)
        self._session.write(self.table, [(key, data, None) for key, data in cells])
        if marks.any():
            self._bits[run.number] = marks, None
        return run

    def _marks(self, run: Run) -> tuple[npt.NDArray[np.bool_], bytes | None]:
        if run.number not in self._bits:
            data = self._session.read(self.table, [run.bits_key])[0]
            if data is None:
                self._bits[run.number] = np.zeros(run.rows, np.bool_), None
            else:
                bits = np.unpackbits(np.frombuffer(data, np.uint8), count=run.rows)
                self._bits[run.number] = bits.astype(np.bool_), data
        return self._bits[run.number]

    def _heads(self, run: Run, pages: Numbers) -> tuple[Hashes, Ints]:
        cells = self._session.read(self.table, run.page_keys(pages.tolist(), b"h"))
        hashes = [np.frombuffer(cell, np.uint32, len(cell) // 12) for cell in cells if cell is not None]
        times = [np.frombuffer(cell, np.int64, offset=len(cell) // 3) for cell in cells if cell is not None]
        return np.concatenate(hashes), np.concatenate(times)

    def _rows(self, run: Run, numbers: Numbers) -> Rows:
        """Return some rows of a run, in the requested order."""
        pages, which = np.unique(numbers // PAGE, return_inverse=True)
        if not len(pages):
            pages = np.zeros(1, np.intp)
        hashes, times = self._heads(run, pages)
        cells = self._session.read(self.table, run.page_keys(pages.tolist(), b"p"))
        sizes = _sizes(run, pages)
        starts = np.cumsum(sizes) - sizes
        parts = [
            rows_of_payload(hashes[start : start + size], times[start : start + size], cell)
            for start, size, cell in zip(starts.tolist(), sizes.tolist(), cells, strict=True)
            if cell is not None
        ]
        indexes = starts[which] + numbers % PAGE if len(numbers) else np.empty(0, np.intp)
        return concat_rows(parts).take(indexes)


def _loaded(data: bytes | None) -> tuple[int, list[bytes], list[Run]]:
    if data is None:
        return 0, [], []
    number, garbage, runs = load_state(data)
    return number, garbage, [Run(*entry) for entry in runs]


def _entry(run: Run) -> list[object]:
    return [run.number, run.rows, run.first_hashes, run.median_time, run.greatest_time, run.least_time]


def _size_class(rows: int) -> int:
    """Return the size class: runs of one class differ in size by less than a factor of four; small ones are all in
    one."""
    return max(rows // 256, 1).bit_length() // 2


def _sizes(run: Run, pages: Numbers) -> Numbers:
    return np.minimum(run.rows - pages * PAGE, PAGE)


def _pages_with(run: Run, hashes: Hashes) -> Numbers:
    """Return the pages that may contain any of these hashes."""
    first = np.frombuffer(run.first_hashes, np.uint32)
    if len(hashes) > 8 * len(first):
        return np.arange(len(first))
    # Equal hashes may be on both sides of a page boundary.
    low = np.maximum(np.searchsorted(first, hashes) - 1, 0)
    high = np.maximum(np.searchsorted(first, hashes, "right") - 1, 0)
    wanted = np.zeros(len(first), np.bool_)
    for start, stop in {*zip(low.tolist(), high.tolist(), strict=True)}:
        wanted[start : stop + 1] = True
    return np.flatnonzero(wanted)
