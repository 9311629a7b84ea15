"""Records that cannot go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.chunks import chunk_of, letters, task_of
from potok.kernels.chunk import NO_LANE
from potok.kernels.dead_letters import Reason


def test_a_dead_letter_has_the_original_bytes_the_position_the_step_and_the_reason() -> None:
    task = task_of()
    task.dead_letters.add(chunk_of(["a", "b"], [1, 2]), {1: "boom"}, "filter", Reason.ERROR)
    assert letters(task) == [
        {
            "topic": "a",
            "partition": "0",
            "offset": "1",
            "step": "filter",
            "reason": "error",
            "error": "boom",
            "key": b"b",
            "value": b"2",
        }
    ]
    assert task.dead_letters.reasons == {"error": 1}


def test_bytes_that_were_left_behind_at_a_shuffle_are_read_again() -> None:
    task = task_of()
    chunk = replace(chunk_of(["a"], [1], first_offset=9, lane=1), raw_key=None, raw_value=None)
    task.dead_letters.add(chunk, {0: "boom"}, "s", Reason.ERROR)
    assert letters(task)[0]["value"] == b"b/9"


@pytest.mark.parametrize("value", [{"a": 1}, "text", b"bytes", None, 2**70, float("nan"), "\ud800", {1: (2,)}])
def test_a_value_that_exists_only_inside_the_query_is_written_readably(value: Any) -> None:
    task = task_of()
    chunk = chunk_of(["k"], [value])
    chunk.lane = np.array([NO_LANE], np.int64)
    task.dead_letters.add(chunk, {0: "boom"}, "s", Reason.ERROR)
    (letter,) = letters(task)
    assert (letter["key"], letter["topic"], letter["offset"]) == (b"k", "", "-1")


def test_a_long_error_is_cut_and_odd_characters_do_not_matter() -> None:
    task = task_of()
    task.dead_letters.add(chunk_of(["k"], [1]), {0: "\ud800" + "x" * 10_000}, "s", Reason.ERROR)
    assert len(letters(task)[0]["error"]) == 2_000
