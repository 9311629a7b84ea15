"""The open matches of a key are read as they were written."""

from __future__ import annotations

from collections import deque

import pytest

from potok.operators.patterns.runs import Link, Row, Run, Runs
from potok.topology.patterns.output import NO_VARIABLE

ONE = Row(0, 1_000, {"amount": 5}, "payments", 0, 17)
TWO = Row(1, 2_000, {"amount": None, "tags": ["a", b"b"]}, "refunds", 3, 4)
THREE = Row(4, 2_000, None, "payments", 1, 0)
SHARED = Link(None, 0, ONE)
LONGER = Link(SHARED, 1, TWO)

CASES: dict[str, Runs] = {
    "one run": Runs(11_000, 1, deque([Run(ONE, [(3, SHARED)])])),
    "threads with a common past": Runs(
        None, 5, deque([Run(ONE, [(3, LONGER), (4, Link(LONGER, 0, THREE)), (3, SHARED)]), Run(TWO, [])])
    ),
    "a match and what was over": Runs(
        12_000,
        5,
        deque([Run(ONE, [(2, SHARED)], LONGER, 2_500), Run(TWO, [], None, None, Link(None, 2, TWO), 12_000)]),
        matched=3,
        covered=2,
    ),
    "an empty match": Runs(None, 1, deque([Run(ONE, [], Link(None, NO_VARIABLE, ONE))]), matched=1),
    "only a count": Runs(None, 0, deque(), matched=7, covered=2),
}


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES)
def test_open_matches_are_read_as_they_were_written(runs: Runs) -> None:
    data = runs.dump()
    found = Runs.load(data)
    assert shown(found) == shown(runs)
    assert found.dump() == data


def test_nothing_is_written_without_an_open_match() -> None:
    assert Runs(5, 9).dump() is None
    assert shown(Runs.load(None)) == shown(Runs())


def shown(runs: Runs) -> object:
    parts = [(run.start, run.threads, run.found, run.found_at, run.over, run.over_at) for run in runs.runs]
    return runs.due, runs.count, runs.matched, runs.covered, parts


def test_what_threads_have_in_common_is_read_once() -> None:
    (first, _), (second, _) = [
        (link, state) for state, link in Runs.load(CASES["threads with a common past"].dump()).runs[0].threads[:2]
    ]
    assert second.before is first
