"""Whose writes count."""

from __future__ import annotations

import pickle

import pytest

from potok.state.cell import Cell
from potok.state.fence import Attempt, Fence, StaleAttempt


@pytest.mark.parametrize(
    ("epoch", "batch", "counts"),
    [
        (3, 9, True),
        (3, 10, False),
        (3, 11, False),
        (2, 4, True),
        (2, 5, False),
        (1, 99, True),
        (4, 1, False),
    ],
)
def test_an_attempt_sees_what_was_committed_before_it(epoch: int, batch: int, counts: bool) -> None:
    """Epoch 3 is running batch 10; epoch 2 ended uncleanly after batch 4; epoch 1 ended cleanly."""
    assert Fence(Attempt(3, 10), {2: 4}).counts(epoch, batch) is counts


def test_a_cell_of_a_void_attempt_has_its_old_value() -> None:
    cell = Cell(2, 5, b"phantom", b"true")
    assert cell.before(Fence(Attempt(3, 5), {2: 4})) == b"true"


def test_a_cell_of_the_same_attempt_has_its_old_value() -> None:
    assert Cell(2, 5, b"first try", b"before").before(Fence(Attempt(2, 5))) == b"before"


def test_an_epoch_that_ended_cleanly_counts_completely() -> None:
    assert Cell(1, 7, b"new", b"old").before(Fence(Attempt(2, 8))) == b"new"


def test_attempts_are_ordered_by_epoch_first() -> None:
    assert Attempt(1, 99) < Attempt(2, 1) < Attempt(2, 2)


def test_a_stale_attempt_error_can_be_pickled() -> None:
    error = StaleAttempt(Attempt(1, 5), Attempt(2, 5), "state/0")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
