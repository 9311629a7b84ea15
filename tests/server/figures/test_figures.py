from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.errors import LogError
from potok.log.open import open_broker
from potok.server.figures import figures as figures_module
from potok.server.figures.figures import Figures
from potok.settings import Settings
from potok.snapshots.tables import NoSuchQuery
from potok.statements.queries.query_tables import QueryTables

RUN = Figures._run


class Counting:
    """A feed that counts the looks at it."""

    def __init__(self) -> None:
        self.looks = 0
        self.broken = False

    def topology(self) -> dict[str, Any]:
        return {"query": "q", "nodes": [], "tables": [], "panels": []}

    def figures(self) -> dict[str, Any]:
        if self.broken:
            raise OSError("no such directory")
        self.looks += 1
        return {"at": self.looks, "query": "q", "state": "running", "rate_in": self.looks * 10.0}

    def snapshot(self) -> dict[str, Any]:
        return self.figures()


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Figures]:
    """Figures that are never too fresh, and that no thread samples."""
    monkeypatch.setattr(figures_module, "SAMPLE_S", -1.0)
    monkeypatch.setattr(figures_module, "FRESH_S", -1.0)
    monkeypatch.setattr(Figures, "_run", lambda _: None)
    with QueryTables(open_broker(tmp_path), Settings(), []) as database:
        found = Figures(database)
        yield found
        found.close()


def test_each_look_adds_a_point_to_the_history(figures: Figures) -> None:
    figures.add("q", Counting())
    for _ in range(3):
        figures.overview()
    points = [point["rate_in"] for point in figures.snapshot("q", history=True)["history"]]
    assert points == sorted(points) and len(points) >= 3
    assert "history" not in figures.snapshot("q")
    assert len(figures.totals_history()) == 3


def test_the_history_is_bounded(figures: Figures) -> None:
    figures.add("q", Counting())
    for _ in range(figures_module.HISTORY + 20):
        figures.overview()
    assert len(figures.snapshot("q", history=True)["history"]) == figures_module.HISTORY


def test_a_feed_that_fails_is_shown_and_asked_again(figures: Figures) -> None:
    feed = Counting()
    figures.add("q", feed)
    figures.overview()
    feed.broken = True
    (row,) = figures.overview()
    assert (row["state"], row["error"], row["health"]) == ("unreadable", "no such directory", "failing")
    assert row["rate_in"] == 10.0

    feed.broken = False
    (row,) = figures.overview()
    assert row["state"] == "running"


def test_a_query_that_does_not_exist_is_an_error_with_those_that_do(figures: Figures) -> None:
    figures.add("shop", Counting())
    with pytest.raises(NoSuchQuery) as raised:
        figures.snapshot("shp")
    assert raised.value.hint == "there are: shop"


def test_a_log_that_does_not_answer_does_not_end_the_sampling(
    figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_rows() -> list[dict[str, Any]]:
        raise LogError("the log does not answer")

    figures.add("q", Counting())
    monkeypatch.setattr(figures, "_rows", no_rows)
    figures._sample_if_due()
    assert figures.totals_history() == []


@pytest.mark.parametrize("event", ["look", "close"])
def test_a_look_or_the_end_just_before_sampling_pauses_is_noticed(figures: Figures, event: str) -> None:
    class Wake(threading.Event):
        def clear(self) -> None:
            if event == "look":
                figures._looked_at = time.monotonic()
            else:
                figures._closed.set()
            self.set()
            super().clear()

        def wait(self, timeout: float | None = None) -> bool:
            pytest.fail("the event was lost")

    figures._wake = Wake()
    figures._sample_if_due = figures._closed.set  # type: ignore[method-assign]
    RUN(figures)


def test_queries_of_push_clients_are_left_out(figures: Figures) -> None:
    figures.add("_potok_push_select_1_abc", Counting())
    assert figures.names() == []


def test_clients_share_figures_that_are_fresh(figures: Figures, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Counting()
    figures.add("q", feed)
    figures.snapshot("q")
    monkeypatch.setattr(figures_module, "FRESH_S", 3_600.0)
    before = feed.looks
    for _ in range(5):
        figures.snapshot("q")
    assert feed.looks == before
