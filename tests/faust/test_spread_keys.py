"""Rows of spread agents are found by their keys, whatever the type of the topic and the way the key is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess

WORDS = ["a", "bb", "a", "ccc", "dddd", "bb", "a"]
COUNTS = {"a": 3, "bb": 2, "ccc": 1, "dddd": 1}


class Word(faust.Record):
    text: str


def _itself(value: Any) -> Any:
    return value


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize(
    ("value_type", "key", "sent"),
    [
        (str, _itself, lambda word: word.encode()),
        (str, lambda value: value, lambda word: word.encode()),
        (Word, "text", lambda word: {"text": word}),
        (Word, Word.text, lambda word: {"text": word}),
        (Word, lambda value: value.text, lambda word: {"text": word}),
        (None, "text", lambda word: {"text": word}),
    ],
)
def test_rows_are_found_by_key(value_type: Any, key: Any, sent: Callable[[str], Any], shards: int) -> None:
    app = faust.App("words")
    words = app.topic("words", value_type=value_type)
    counts = app.Table("counts", default=int)

    @app.agent(words, key=key)
    async def count(stream: Any) -> None:
        async for word, _ in stream.items():
            counts[word] += 1

    with InProcess(app, shards=shards) as driver:
        for word in WORDS:
            driver.send("words", sent(word))
        driver.run()
        assert driver.table("counts").all() == COUNTS
        assert {word: driver.table("counts").get(word) for word in COUNTS} == COUNTS
        assert driver.dead_letters() == []
