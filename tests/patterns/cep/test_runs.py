"""The open matches of a key are read as they were written, and segments are written once."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest

from potok.operators.patterns import open_runs
from potok.operators.patterns.open_runs import Runs
from potok.operators.patterns.run_columns import pack, unpack
from potok.operators.patterns.runs import Link, Row, Run, Segment
from potok.topology.patterns.output import NO_VARIABLE

ONE = Row(0, 1_000, {"amount": 5}, "payments", 0, 17)
TWO = Row(1, 2_000, {"amount": None, "tags": ["a", b"b"]}, "refunds", 3, 4)
THREE = Row(4, 2_000, None, "payments", 1, 0)
SHARED = Link(None, 0, ONE)
LONGER = Link(SHARED, 1, TWO)

CASES: dict[str, list[Run]] = {
    "one run": [Run(ONE, [(3, SHARED)])],
    "threads with a common past": [Run(ONE, [(3, LONGER), (4, Link(LONGER, 0, THREE)), (3, SHARED)]), Run(TWO, [])],
    "a match and what was over": [
        Run(ONE, [(2, SHARED)], LONGER, 2_500),
        Run(TWO, [], None, None, Link(None, 2, TWO), 12_000),
    ],
    "an empty match": [Run(ONE, [], Link(None, NO_VARIABLE, ONE))],
}


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES)
def test_open_matches_are_read_as_they_were_written(runs: list[Run]) -> None:
    assert list(map(shown, unpack(pack(runs)))) == list(map(shown, runs))


def test_nothing_is_written_without_an_open_match() -> None:
    runs = Runs()
    runs.due, runs.count = 5, 9
    assert runs.dump() is None
    runs.matched, runs.covered = 7, 2
    again = Runs.load(runs.dump())
    assert (again.due, again.count, again.matched, again.covered, again.size) == (5, 9, 7, 2, 0)


def test_what_threads_have_in_common_is_read_once() -> None:
    (_, first), (_, second) = unpack(pack(CASES["threads with a common past"]))[0].threads[:2]
    assert first is not None and second is not None and second.before is first


def shown(run: Run) -> object:
    return run.start, run.threads, run.found, run.found_at, run.over, run.over_at


class Cells:
    """The cells of one key, and which segments a batch reads and writes."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.segments: dict[int, bytes] = {}
        self.read: list[int] = []
        self.written: list[int] = []

    def load(self, *, gapped: bool = False) -> Runs:
        self.read, self.written = [], []
        return Runs.load(self.head, fetch=self._fetch, due_of=due_of if gapped else None)

    def _fetch(self, runs: Runs, segments: list[Segment]) -> None:
        self.read += [segment.number for segment in segments]
        for segment in segments:
            runs.supply(segment, self.segments[segment.number])

    def save(self, runs: Runs) -> None:
        self.head = runs.dump()
        for number, data, before in runs.segment_cells():
            assert self.segments.get(number) == before
            self.written.append(number)
            if data is None:
                del self.segments[number]
            else:
                self.segments[number] = data


def started(number: int, state: int = 1) -> Run:
    row = Row(number, number * 10, {"n": number}, "in", 0, number)
    return Run(row, [(state, Link(None, 0, row))])


def due_of(run: Run) -> int | None:
    """When a run of these tests is over: runs in even states end later than those in odd ones."""
    return run.start.time + (100 if run.threads[0][0] % 2 else 1_000) if run.threads else None


def fill(cells: Cells, count: int) -> None:
    for number in range(count):
        runs = cells.load()
        runs.add(started(number))
        cells.save(runs)


def test_a_batch_touches_no_segment_that_its_records_do_not_concern() -> None:
    cells = Cells()
    with patch.multiple(open_runs, SIZE=4, FEW=2):
        fill(cells, 40)
        assert list(cells.segments) == list(range(9))
        runs = cells.load()
        other = started(40, state=2)
        runs.add(other)
        assert runs.concerned(lambda states: states == (1,)) == [other] and runs.size == 41
        cells.save(runs)
        assert not cells.read and not cells.written


def test_runs_that_end_at_the_front_do_not_rewrite_their_segment() -> None:
    cells = Cells()
    with patch.multiple(open_runs, SIZE=4, FEW=2):
        fill(cells, 40)
        for number in range(40):
            runs = cells.load()
            assert (runs.first_number(), runs.first_time(), runs.first_waits()) == (number, number * 10, True)
            assert not cells.read
            runs.remove(runs.first())
            cells.save(runs)
            assert len(cells.read) <= 1 and runs.size == 39 - number
            assert all(segment not in cells.segments for segment in cells.written)
    assert cells.head is None and not cells.segments


def test_a_segment_that_is_missing_is_an_error() -> None:
    cells = Cells()
    with patch.multiple(open_runs, SIZE=2, FEW=0):
        fill(cells, 9)
        runs = cells.load()
        with pytest.raises(ValueError, match="segment 0 has 0 open matches, not 2"):
            runs.supply(next(iter(runs.wanted(lambda states: False, None, 0))), None)


@pytest.mark.parametrize("seed", range(40))
def test_runs_in_segments_are_the_runs(seed: int) -> None:
    """Any changes, in batches of any size, against a plain list."""
    chance = random.Random(seed)
    cells, model, number = Cells(), dict[int, Run](), 0
    size, few, gapped = chance.choice([1, 2, 3, 8]), chance.choice([0, 2, 8]), chance.random() < 0.5
    with patch.multiple(open_runs, SIZE=size, SMALL=max(size // 2, 1), FEW=few):
        for _ in range(40):
            runs = cells.load(gapped=gapped)
            for _ in range(chance.randrange(8)):
                number += 1
                _change(chance, runs, model, number, gapped=gapped)
                _compare(runs, model, gapped=gapped)
            cells.save(runs)
            if chance.random() < 0.2:
                assert list(map(shown, cells.load().all())) == list(map(shown, model.values()))
        assert (cells.head is None) == (not model)


def _change(chance: random.Random, runs: Runs, model: dict[int, Run], number: int, *, gapped: bool) -> None:
    kind = chance.choice(["add", "add", "add", "first", "some", "some", "due"])
    if kind == "add":
        state = chance.randrange(4)
        runs.add(started(number, state))
        model[number] = started(number, state)
    elif not model:
        return
    elif kind == "first":
        assert runs.first_number() == runs.first().start.number == next(iter(model))
        runs.remove(runs.first())
        del model[next(iter(model))]
    elif kind == "due" and gapped:
        run = runs.first_due() if runs.next_due() is not None else runs.first()
        runs.remove(run)
        del model[run.start.number]
    else:
        state = chance.randrange(4)
        found = runs.concerned(lambda states: state not in states)
        wanted = [run for run in model.values() if run.threads and run.threads[0][0] == state]
        # Of few runs, those that are quiet are returned too.
        assert {run.start.number for run in wanted} <= {run.start.number for run in found}
        for run in found[: chance.randrange(4)]:
            same = model[run.start.number]
            if chance.random() < 0.3:
                runs.remove(run)
                del model[run.start.number]
            else:
                threads: list[Any] = [(chance.randrange(4), run.threads[0][1])] if run.threads else []
                run.threads, same.threads = threads, threads
                runs.changed(run)


def _compare(runs: Runs, model: dict[int, Run], *, gapped: bool) -> None:
    assert runs.size == len(model)
    if model:
        first = next(iter(model.values()))
        assert (runs.first_number(), runs.first_time()) == (first.start.number, first.start.time)
        assert runs.first_waits() == bool(first.threads)
    if gapped:
        dues = {due for run in model.values() if (due := due_of(run)) is not None}
        assert runs.next_due() == min(dues, default=None)
