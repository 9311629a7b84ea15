from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from potok.cli.top import screen
from potok.dsl.builder import StreamsBuilder
from potok.testing import TestDriver

ROW: dict[str, Any] = {
    "query": "orders", "state": "running", "health": "ok", "error": "", "rate_in": 1402.4, "rate_out": 946.0,
    "lag": 1_695, "lag_ms": 75_000, "watermark_lag_ms": 1_200, "state_bytes": 1_500_000,
    "dead_letters": 4_420, "restarts": 2,
}  # fmt: skip


def shown(rows: list[dict[str, Any]], width: int) -> list[str]:
    out = Console(width=width, height=24, record=True, file=open("/dev/null", "w"), highlight=False)  # noqa: SIM115
    out.print(screen(rows, width))
    return out.export_text().splitlines()


def test_eighty_columns_show_state_pace_lag_dead_letters_and_restarts() -> None:
    worst = {
        **ROW,
        "query": "a-query-with-a-name-that-is-far-too-long-for-it",
        "state": "failed",
        "health": "failing",
        "error": "the disk is full\nand more",
    }
    lines = shown([worst, ROW], 80)
    assert max(map(len, lines)) <= 80
    assert lines[0].split("   ")[0] == "queries: 1 failing, 1 ok"
    assert lines[1].split() == ["query", "state", "in", "lag", "oldest", "dead", "restarts"]
    assert lines[2].startswith("a-query-with-a-name-that") and "failed" in lines[2]
    assert lines[3].split() == ["orders", "running", "1,402/s", "1,695", "1m15s", "4,420", "2"]
    assert lines[4].endswith("the disk is full")


def test_a_wide_terminal_shows_more() -> None:
    lines = shown([ROW], 120)
    assert lines[1].split() == [
        "query", "state", "in", "out", "lag", "oldest", "watermark", "state", "size", "dead", "restarts",
    ]  # fmt: skip


def test_a_name_is_not_taken_for_markup() -> None:
    assert "[red]x[/]" in "\n".join(shown([{**ROW, "query": "[red]x[/]"}], 80))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    builder = StreamsBuilder("shop")
    builder.stream("orders", value="user string").group_by("user").count(name="counts")
    with TestDriver(builder, directory=tmp_path) as driver:
        driver.send("orders", {"user": "ann"}, timestamp=1)
        driver.run()
    return tmp_path


def test_the_queries_of_a_log_are_printed_once(potok, data: Path) -> None:
    result = potok("--broker", str(data), "top", "--once")
    assert "shop" in result.out and "queries:" in result.out
    (row,) = map(json.loads, potok("--broker", str(data), "top", "--json").out.splitlines())
    assert (row["query"], row["total_in"], row["lag"]) == ("shop", 1, 0)
