"""Records that cannot go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import INPUT_PARTITIONS, chunk_of, letters, task_of
from potok.log.broker import HEADERS, LOG_SCHEMA
from potok.operators.core import dead_letters
from potok.operators.core.chunk import NO_INPUT_PARTITION
from potok.operators.core.dead_letters import DeadLetters, Original, Reason
from potok.operators.core.operator import Task


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
            "at": "7",
            "key": b"b",
            "value": b"2",
        }
    ]
    assert task.dead_letters.reasons == {"error": 1}


def test_bytes_that_were_left_behind_at_a_shuffle_are_read_again() -> None:
    task = task_of()
    chunk = replace(chunk_of(["a"], [1], first_offset=9, input_partition=1), raw_key=None, raw_value=None)
    task.dead_letters.add(chunk, {0: "boom"}, "s", Reason.ERROR)
    assert letters(task)[0]["value"] == b"b/9"


@pytest.mark.parametrize("value", [{"a": 1}, "text", b"bytes", None, 2**70, float("nan"), "\ud800", {1: (2,)}])
def test_a_value_that_exists_only_inside_the_query_is_written_readably(value: Any) -> None:
    task = task_of()
    chunk = chunk_of(["k"], [value])
    chunk.input_partition = np.array([NO_INPUT_PARTITION], np.int64)
    task.dead_letters.add(chunk, {0: "boom"}, "s", Reason.ERROR)
    (letter,) = letters(task)
    assert (letter["key"], letter["topic"], letter["offset"]) == (b"k", "", "-1")


def test_an_object_that_cannot_be_shown_is_set_aside_all_the_same() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    task = task_of()
    chunk = chunk_of(["k"], [0])
    chunk.value = [Silent()]
    chunk.input_partition = np.array([NO_INPUT_PARTITION], np.int64)
    task.dead_letters.add(chunk, {0: "boom"}, "s", Reason.ERROR)
    assert b"Silent object" in letters(task)[0]["value"]


def test_a_long_error_is_cut_and_odd_characters_do_not_matter() -> None:
    task = task_of()
    task.dead_letters.add(chunk_of(["k"], [1]), {0: "\ud800" + "x" * 10_000}, "s", Reason.ERROR)
    assert len(letters(task)[0]["error"]) == 2_000


def test_a_dead_letter_keeps_the_headers_of_its_record_before_the_notes() -> None:
    task = task_of()
    headers = pa.array([None, [{"name": "trace", "value": b"t"}]], HEADERS)
    chunk = replace(chunk_of(["a", "b"], [1, 2]), headers=headers)
    task.dead_letters.add(chunk, {0: "boom", 1: "boom"}, "s", Reason.ERROR)
    (batch,) = task.dead_letters.batches(LOG_SCHEMA)
    bare, traced = ([header["name"] for header in row] for row in batch.column("headers").to_pylist())
    assert traced == ["trace", *bare]
    assert bare[0] == "potok.topic"


def test_all_that_was_left_behind_is_read_again_at_once_and_once() -> None:
    reads: list[tuple[str, int, list[int]]] = []

    def fetch(topic: str, partition: int, offsets: Any) -> dict[int, Original]:
        reads.append((topic, partition, list(offsets)))
        return {offset: Original(b"k", b"%d" % offset, [{"name": "h", "value": b"v"}]) for offset in offsets}

    task = Task(DeadLetters(INPUT_PARTITIONS, fetch, 7))
    for input_partition in (0, 1):
        chunk = replace(
            chunk_of(["x"] * 4, [0] * 4, input_partition=input_partition, first_offset=10), raw_key=None, raw_value=None
        )
        task.dead_letters.add(chunk, {3: "boom", 0: "boom"}, "one", Reason.ERROR)
        task.dead_letters.add(chunk, {3: "boom"}, "two", Reason.ERROR)
    assert reads == [], "as long as nobody asks for the letters"
    found = letters(task)
    assert reads == [("a", 0, [10, 13]), ("b", 0, [10, 13])]
    assert [letter["value"] for letter in found] == [b"10", b"13", b"13"] * 2
    assert all(letter["h"] == "v" and "bytes" not in letter for letter in found)
    assert letters(task) == found
    assert len(reads) == 2


def test_a_dead_letter_states_that_its_bytes_are_the_input_of_the_step() -> None:
    task = Task(DeadLetters(INPUT_PARTITIONS, lambda topic, partition, offsets: {}, 7))
    chunk = replace(chunk_of(["a"], [{"n": 1}]), raw_key=None, raw_value=None)
    task.dead_letters.add(chunk, {0: "no"}, "step", Reason.ERROR)
    assert [(letter["value"], letter["bytes"]) for letter in letters(task)] == [(b'{"n":1}', "seen")]


def test_many_dead_letters_are_read_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "BATCH_BYTES", 10)
    task = task_of()
    task.dead_letters.add(
        chunk_of(["k"] * 5, ["x", "xxxxxxxxxxxxxxx", "x", "x", "x"]), dict.fromkeys(range(5), "no"), "s", Reason.ERROR
    )
    assert [len(batch) for batch in task.dead_letters.batches(LOG_SCHEMA)] == [1, 1, 2, 1]


def test_nothing_set_aside_leaves_no_trace() -> None:
    task = task_of()
    task.dead_letters.add(chunk_of(["k"], [1]), {}, "s", Reason.LATE)
    assert (task.dead_letters.reasons, task.dead_letters.late, letters(task)) == ({}, {}, [])
