"""The matrix itself: a row that goes wrong is seen, and none can end well without a proof."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.faults import __main__ as matrix
from tests.faults.proxy import PRODUCE, Requests
from tests.faults.row import ROWS, VERDICT, NotHere, Proof, Row
from tests.faults.servers import Servers
from tests.faults.test_faults import SHORT


def outcome(play: Any) -> matrix.Outcome:
    return matrix.play(Row("r", "something breaks", play), 1, Servers())


def test_there_are_rows_enough_and_the_short_ones_are_among_them() -> None:
    assert len(ROWS) >= 25
    assert set(SHORT) <= set(ROWS)
    assert not any(ROWS[name].servers for name in SHORT)


def test_a_row_with_a_proof_is_held() -> None:
    found = outcome(lambda scene: Proof("broken and mended"))
    assert (found.verdict, found.said) == (matrix.HELD, f"broken and mended; {VERDICT}")


def wrong(_: Any) -> Proof:
    raise AssertionError("table counts: 1 of 2 differ")


def test_a_row_that_differs_from_the_oracle_is_missed_and_fails_the_run() -> None:
    held, missed = outcome(lambda scene: Proof("")), outcome(wrong)
    assert missed.verdict == matrix.MISSED
    assert "1 of 2 differ" in missed.said
    assert matrix.verdict_of([held, missed]) == 1
    assert matrix.verdict_of([held]) == 0


def test_a_row_that_this_machine_cannot_play_is_neither() -> None:
    def play(_: Any) -> Proof:
        raise NotHere("no Kafka")

    found = outcome(play)
    assert (found.verdict, found.said) == (matrix.NOT_RUN, "no Kafka")
    assert matrix.verdict_of([found]) == 1, "nothing was shown at all"


def test_rows_are_chosen_by_name_and_pattern() -> None:
    assert [row.name for row in matrix.chosen(["kill-epoch.*"])] == ["kill-epoch.before", "kill-epoch.started"]
    with pytest.raises(SystemExit, match="no row is called nonsense"):
        matrix.chosen(["nonsense"])


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_requests_are_separated_however_their_bytes_arrive(size: int) -> None:
    asked = [3, PRODUCE, 22, PRODUCE, 26]
    data = b"".join(struct.pack(">ih", 2 + 10 * api, api) + bytes(10 * api) for api in asked)
    requests = Requests()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [api for piece in pieces for api in requests.of(piece)] == asked
