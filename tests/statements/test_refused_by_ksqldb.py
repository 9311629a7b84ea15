"""Measure how many of the statements that ksqlDB refuses are refused, on a sample of all areas of the language."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from potok.sql.errors import SqlError
from statements.playing import Play

SAMPLE = tomllib.loads(Path(__file__).with_name("refused_by_ksqldb.toml").read_text())
DIFFERENCES = (Path(__file__).parents[2] / "docs" / "sql.md").read_text().partition("## Differences from ksqlDB")[2]


def _statements(text: str) -> list[str]:
    return text.strip().splitlines()


def _refused(play: Play, line: str) -> bool:
    *setup, last = line.split(";;")
    for statement in setup:
        play.do(f"{statement};")
    try:
        play.do(f"{last};")
    except SqlError as error:
        return error.location is not None
    return False


@pytest.mark.parametrize("area", SAMPLE["refused"])
def test_what_ksqldb_refuses_is_refused_with_a_position(play: Play, area: str) -> None:
    play.do(SAMPLE["sources"])
    assert [line for line in _statements(SAMPLE["refused"][area]) if not _refused(play, line)] == []


@pytest.mark.parametrize(
    ("row", "line"), [(row, line) for row, text in SAMPLE["lifted"].items() for line in _statements(text)]
)
def test_what_is_accepted_nevertheless_is_a_documented_difference(play: Play, row: str, line: str) -> None:
    play.do(SAMPLE["sources"])
    assert not _refused(play, line)
    assert f"\n| {row}" in DIFFERENCES


def test_at_least_95_percent_of_the_sample_is_refused() -> None:
    refused, lifted = (sum(len(_statements(text)) for text in SAMPLE[kind].values()) for kind in ("refused", "lifted"))
    assert refused + lifted >= 150
    assert refused / (refused + lifted) >= 0.95
