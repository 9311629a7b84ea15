from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from potok.cli.output import requests_text
from potok.cli.queries.panel import Lines, Objects, Screen, as_line, panel, show_rate, show_time, summary_text
from potok.topology.compare import Change

WAITING = {"at": 1, "query": "shop", "state": "starting", "error": ""}

RUNNING = {
    "at": 10_000,
    "query": "shop",
    "state": "running",
    "error": "",
    "uptime_ms": 62_000,
    "batch": 12,
    "batch_ms": 210,
    "rate_in": 3012.4,
    "rate_out": 12.0,
    "lag": 1500,
    "total_in": 1_234_567,
    "total_out": 89,
    "dead_letters": 3,
    "dead_letters_by_reason": {"late": 2, "decode": 1},
    "recent_dead_letters": [],
    "state_bytes": 1536,
    "state_keys": 7,
    "tables": {"order_counts": 5, "sizes": 2},
    "steps": {},
    "panels": [],
}

SUMMARY = {
    "query": "shop",
    "state": "stopped",
    "uptime_ms": 3_723_000,
    "batches": 1,
    "records_in": 1200,
    "records_out": 7,
    "dead_letters_by_reason": {"late": 2},
}


def drawn(snapshot: dict) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(panel(snapshot))
    return console.file.getvalue()


def test_the_panel_shows_every_number() -> None:
    lines = [" ".join(line.strip("│╭╮╰╯─ \n").split()) for line in drawn(RUNNING).splitlines()]
    assert lines[0].startswith("shop running 0:01:02")
    assert lines[1:7] == [
        "in 3,012/s 1,234,567 in all",
        "out 12/s 89 in all",
        "lag 1,500 records not yet read",
        "batch 210 ms number 12",
        "state 1.5 KB 7 keys (order_counts 5, sizes 2)",
        "dead letters 3 decode 1, late 2",
    ]
    assert lines[7].startswith("Ctrl-C stops")


@pytest.mark.parametrize(
    ("snapshot", "text"),
    [
        (WAITING, "waiting for the first batch"),
        (RUNNING | {"batch": 0}, "waiting for records"),
        (RUNNING | {"batch": 0, "idle": True}, "shop running, idle 0:01:02"),
        (RUNNING | {"idle": True}, "shop running, idle 0:01:02"),
        (RUNNING | {"idle": False}, "shop running 0:01:02"),
        (RUNNING | {"batch": 0, "state": "stopped"}, "no batch ran"),
        (RUNNING | {"state": "stopping"}, "stopping at the end of the batch"),
    ],
)
def test_the_panel_says_what_it_waits_for(snapshot: dict, text: str) -> None:
    assert text in drawn(snapshot)


def test_brackets_in_a_name_are_not_markup() -> None:
    assert "[red]" in drawn(RUNNING | {"query": "[red]"})


def test_on_a_screen_the_panel_stays_when_the_query_has_ended() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    screen = Screen(console)
    with screen.starting():
        pass
    with screen.running():
        screen.update(RUNNING)
        screen.update(RUNNING | {"state": "stopped", "batch": 13})
    rendered = console.file.getvalue()
    assert "starting Spark" in rendered
    assert "number 13" in rendered.split("number 12")[-1]


def test_lines_come_every_few_seconds_and_only_after_a_batch(capsys) -> None:
    lines = Lines()
    lines.update(WAITING)
    for at, batch in ((10_000, 12), (11_000, 13), (16_000, 14), (30_000, 14)):
        lines.update(RUNNING | {"at": at, "batch": batch})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["batch 12", "batch 14"]


def test_a_line_holds_the_numbers() -> None:
    assert as_line(RUNNING) == (
        "batch 12: in 1,234,567 (3,012/s), out 89 (12/s), lag 1,500, 210 ms, state 1.5 KB, "
        "3 dead letters (decode 1, late 2)"
    )


@pytest.mark.parametrize(
    ("rate", "rendered"), [(0.0, "0/s"), (0.02, "<0.1/s"), (0.42, "0.4/s"), (9.96, "10/s"), (3012.4, "3,012/s")]
)
def test_few_records_a_second_are_not_shown_as_none(rate: float, rendered: str) -> None:
    assert show_rate(rate) == rendered
    assert f"({rendered})" in as_line(RUNNING | {"rate_in": rate})


def test_objects_name_their_event(capsys) -> None:
    objects = Objects()
    objects.changes("shop", [Change("sizes", "is new", True)])
    with objects.starting(), objects.running():
        objects.update(RUNNING)
        objects.update(RUNNING)
    objects.end(SUMMARY)
    changed, progress, ended = map(json.loads, capsys.readouterr().out.splitlines())
    assert changed == {"event": "changed", "query": "shop", "step": "sizes", "what": "is new", "fits": True}
    assert (progress["event"], progress["batch"], progress["lag"]) == ("progress", 12, 1500)
    assert "panels" not in progress
    assert ended == {"event": "ended", **SUMMARY}


def test_changes_are_printed_before_the_start(capsys) -> None:
    Lines().changes("shop", [Change("sizes", "is new", True)])
    Lines().changes("shop", [])
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ['query "shop" has changed since its last run:']
    assert [line.split() for line in captured.out.splitlines()][1:] == [["fits", "sizes", "is", "new"]]


def test_the_summary_is_one_sentence() -> None:
    assert summary_text(SUMMARY) == (
        'query "shop" stopped after 1:02:03: 1,200 records in, 7 out, 1 batch, 2 dead letters (late 2)'
    )


@pytest.mark.parametrize(("ms", "rendered"), [(0, "0:00:00"), (61_999, "0:01:01"), (3_723_000, "1:02:03")])
def test_a_time_is_hours_minutes_and_seconds(ms: int, rendered: str) -> None:
    assert show_time(ms) == rendered


def test_requests_to_object_storage_are_shown_with_their_price() -> None:
    requests = {"puts": 1_000_000, "gets": 10_000, "lists": 0, "deletes": 3, "bytes_out": 5 << 30, "bytes_in": 0}
    text = drawn(RUNNING | {"object_requests": requests})
    assert "1,000,000 puts" in text
    assert "requests" not in drawn(RUNNING)
    assert requests_text(requests).endswith("5.0 GB out, 0 B in, about $5.00 at the prices of Amazon S3")
