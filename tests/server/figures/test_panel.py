from __future__ import annotations

from potok.server.figures.panel import OTHERS, Panel, series, top


def test_top_ranks_rows_by_value_and_adds_the_second_table() -> None:
    rows = top({"ann": 5.0, "bob": 9.5, "cy": 7}, {"bob": 2, "cy": 1}, limit=2)

    assert rows == [{"key": "bob", "value": 9.5, "beside": 2}, {"key": "cy", "value": 7, "beside": 1}]


def test_top_breaks_ties_by_key_so_that_rows_do_not_dance() -> None:
    assert [row["key"] for row in top({"b": 1, "c": 1, "a": 1}, {}, limit=3)] == ["a", "b", "c"]


def test_top_leaves_out_what_is_not_a_number() -> None:
    assert top({"a": None, "b": True, "c": "9", "d": 1}, {}, limit=9) == [{"key": "d", "value": 1, "beside": None}]


def test_series_has_one_bar_per_window_cut_by_key() -> None:
    rows = {("Oslo", 0, 10): 1.0, ("Rome", 0, 10): 2.0, ("Oslo", 10, 20): 4.0}

    drawn = series(rows, limit=5, parts=3)

    assert drawn["keys"] == ["Oslo", "Rome"]
    assert drawn["windows"] == [
        {"start": 0, "end": 10, "total": 3.0, "parts": {"Oslo": 1.0, "Rome": 2.0}},
        {"start": 10, "end": 20, "total": 4.0, "parts": {"Oslo": 4.0}},
    ]


def test_series_keeps_the_latest_windows_only() -> None:
    rows = {("k", start, start + 10): 1 for start in range(0, 100, 10)}

    assert [bar["start"] for bar in series(rows, limit=3, parts=1)["windows"]] == [70, 80, 90]


def test_series_puts_the_smaller_keys_together() -> None:
    rows = {("big", 0, 10): 9, ("small", 0, 10): 2, ("tiny", 0, 10): 1}

    drawn = series(rows, limit=5, parts=1)

    assert drawn["keys"] == ["big", OTHERS]
    assert drawn["windows"][0]["parts"] == {"big": 9, OTHERS: 3}
    assert drawn["windows"][0]["total"] == 12


def test_an_empty_table_draws_nothing() -> None:
    assert series({}, limit=5, parts=3) == {"keys": [], "windows": []}
    assert top({}, {}, limit=5) == []


def test_a_panel_describes_itself_in_plain_data() -> None:
    panel = Panel("top", "totals", "Top users", unit="$", beside=("counts", "orders"))

    assert panel.describe() == {
        "kind": "top", "table": "totals", "title": "Top users", "unit": "$", "beside": "orders", "limit": 10,
    }  # fmt: skip
