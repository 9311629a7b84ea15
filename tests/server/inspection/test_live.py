from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from potok.server.inspection import live as live_module
from potok.server.inspection.live import LiveFigures


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look is due."""
    monkeypatch.setattr(live_module, "LOOK_S", -1.0)


def counted() -> Callable[[], dict[str, Any]]:
    numbers = iter(range(1, 100))
    return lambda: {"n": next(numbers)}


def taken(live: LiveFigures) -> list[dict[str, Any]] | None:
    events = live.take()
    return None if events is None else [orjson.loads(event.data) for event in events]


def test_the_first_event_has_more_than_the_others() -> None:
    live = LiveFigures(counted(), lambda: {"n": 0, "history": []})
    assert [taken(live), taken(live)] == [[{"n": 0, "history": []}], [{"n": 1}]]


def test_the_last_event_is_the_state_at_the_end() -> None:
    live = LiveFigures(counted())
    taken(live)
    woken: list[bool] = []
    live.wake = lambda: woken.append(True)
    live.close()
    assert woken == [True]
    assert [taken(live), taken(live)] == [[{"n": 2}], None]


def test_figures_that_are_not_due_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveFigures(counted())
    taken(live)
    monkeypatch.setattr(live_module, "LOOK_S", 3_600.0)
    assert taken(live) == []
