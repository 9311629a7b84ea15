"""Failures of expressions, counted for a task."""

from __future__ import annotations

from potok.expressions.failures import LONGEST, MOST, Failure, FailureLog, first_of_each


def test_the_first_failures_of_an_expression_have_positions_and_the_others_are_counted() -> None:
    log = FailureLog()
    log.add({"x": dict.fromkeys(range(MOST - 1), "bad")}, lambda row: (0, 100 + row))
    log.add({"x": {7: "worse", 5: "bad"}, "y": {0: "no" * LONGEST}}, lambda row: (1, row))
    assert dict(log.counts) == {"x": MOST + 1, "y": 1}
    assert log.first[0] == Failure("x", "bad", 0, 100)
    assert log.first[-2:] == [Failure("x", "bad", 1, 5), Failure("y", ("no" * LONGEST)[:LONGEST], 1, 0)]


def test_of_several_tasks_no_more_failures_are_kept_than_of_one() -> None:
    failures = [Failure("x", "bad", task, row) for task in range(2) for row in range(MOST)]
    assert first_of_each(failures) == failures[:MOST]
