from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.log.open import open_broker
from potok.server.figures.overview import overview_row, totals, worst_first
from potok.statements.queries.runner import QueryInfo
from potok.testing import TestDriver

FIGURES: dict[str, Any] = {
    "at": 100_000,
    "state": "running",
    "batch": 3,
    "lag": 5,
    "lag_ms": 10,
    "watermark_ms": 70_000,
}


def info(state: str, error: str = "") -> QueryInfo:
    return QueryInfo("Q", "CREATE TABLE ...;", "CTAS", "T", state, error, (), ())


def row(tmp_path: Path, figures: dict[str, Any], of: QueryInfo | None = None, *, is_own: bool = True) -> dict[str, Any]:
    return overview_row(open_broker(tmp_path), "Q", {**FIGURES, **figures}, of, is_own=is_own)


def test_a_row_has_the_lag_of_the_watermark(tmp_path: Path) -> None:
    found = row(tmp_path, {})
    assert (found["state"], found["health"], found["watermark_lag_ms"], found["lag"]) == ("running", "ok", 30_000, 5)
    assert row(tmp_path, {"watermark_ms": None})["watermark_lag_ms"] is None


@pytest.mark.parametrize(
    ("figures", "health"),
    [
        ({"state": "failed"}, "failing"),
        ({"state": "waiting"}, "failing"),
        ({"state": "unreadable"}, "failing"),
        ({"lag_ms": 60_001}, "behind"),
        ({"state": "stopped", "lag_ms": 90_000}, "off"),
        ({"lag_ms": None}, "ok"),
    ],
)
def test_health_follows_from_state_and_lag(tmp_path: Path, figures: dict[str, Any], health: str) -> None:
    assert row(tmp_path, figures)["health"] == health


def test_the_catalog_knows_the_state_of_its_queries(tmp_path: Path) -> None:
    failed = row(tmp_path, {}, info("ERROR", "no such topic"))
    assert (failed["state"], failed["error"], failed["kind"]) == ("failed", "no such topic", "sql")
    assert row(tmp_path, {}, info("PAUSED"))["state"] == "paused"


def test_a_query_whose_process_is_gone_has_died(tmp_path: Path) -> None:
    assert row(tmp_path, {}, is_own=False)["state"] == "died"
    assert row(tmp_path, {"state": "stopped"}, is_own=False)["state"] == "stopped"

    builder = StreamsBuilder("Q")
    builder.stream("orders").to("copies")
    with TestDriver(builder, directory=tmp_path):  # it holds the lock of the query
        assert row(tmp_path, {}, is_own=False)["state"] == "running"


def test_a_shadow_names_its_query(tmp_path: Path) -> None:
    found = overview_row(open_broker(tmp_path), "shadow-shop", FIGURES, None, is_own=True)
    assert (found["shadow_of"], row(tmp_path, {})["shadow_of"]) == ("shop", None)


def test_the_worst_come_first_and_totals_count_them(tmp_path: Path) -> None:
    given = {
        "fine": {}, "late": {"lag_ms": 70_000}, "later": {"lag_ms": 80_000}, "off": {"state": "stopped"},
        "bad": {"state": "failed"},
    }  # fmt: skip
    rows = [{**row(tmp_path, figures), "query": name} for name, figures in given.items()]

    assert [each["query"] for each in worst_first(rows)] == ["bad", "later", "late", "fine", "off"]
    found = totals(rows)
    assert [found[name] for name in ("queries", "failing", "behind", "ok", "off")] == [5, 1, 2, 1, 1]
    assert (found["lag"], found["lag_ms"]) == (25, 80_000)
