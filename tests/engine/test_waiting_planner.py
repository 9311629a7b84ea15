"""A planner whose log does not answer for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok.engine.source import OffsetReader
from potok.engine.trouble import read_trouble
from potok.errors import LogError
from potok.state.offsets import Offsets


class Away(LogError):
    passing = True


class Tries:
    """A stand-in for the policy that allows some tries and waits for nothing."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def __call__(self, for_ms: int) -> Tries:
        return self

    def wait(self) -> bool:
        self.left -= 1
        return self.left >= 0


class Planned:
    """Gives offsets, or raises."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)

    def next(self) -> Offsets:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Offsets({"t": {0: answer}})

    def wait_for_records(self, seconds: float) -> None:
        """New records come at once."""


def reach(data: dict[str, Any]) -> int:
    return int(data["topics"]["t"]["0"])


def test_nothing_new_is_there_while_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.engine.source.Retry", Tries(5))
    file = tmp_path / "planner"
    reader = OffsetReader(Planned(1, Away("gone"), Away("gone"), 2), file, 1_000)
    assert reach(reader.latestOffset()) == 1
    assert read_trouble(file) is None
    assert reach(reader.latestOffset()) == 1
    trouble = read_trouble(file)
    assert trouble is not None and trouble.message == "gone" and trouble.passing
    assert reach(reader.latestOffset()) == 1
    assert reach(reader.latestOffset()) == 2
    assert read_trouble(file) is None


def test_the_first_decision_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.engine.source.Retry", Tries(5))
    reader = OffsetReader(Planned(Away("gone"), Away("gone"), 7), tmp_path / "planner", 1_000)
    assert reach(reader.latestOffset()) == 7


def test_when_the_time_is_over_it_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.engine.source.Retry", Tries(1))
    reader = OffsetReader(Planned(1, Away("one"), Away("two")), tmp_path / "planner", 1_000)
    reader.latestOffset()
    reader.latestOffset()
    with pytest.raises(Away, match="two"):
        reader.latestOffset()
    assert read_trouble(tmp_path / "planner") is None


def test_what_will_not_pass_is_raised_at_once(tmp_path: Path) -> None:
    reader = OffsetReader(Planned(1, LogError("deleted")), tmp_path / "planner", 1_000)
    reader.latestOffset()
    with pytest.raises(LogError, match="deleted"):
        reader.latestOffset()
