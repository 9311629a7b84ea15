"""Panels of the web page for the tables of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

OTHERS = "others"
"""The part of a bar for all keys that have no colour."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A table on the page: its greatest rows (`top`), or the totals of its latest windows (`series`).

    Args:
        kind: `top` ranks the rows of a table by value; `series` draws one bar per window of a windowed table.
        table: The table's name.
        title: The heading.
        unit: Written before each value, such as "$".
        beside: For `top`: a second table with the same keys, shown next to the value, and what to call it.
        limit: How many rows, or how many windows.
        parts: For `series`: how many keys get a colour; the rest of a window is one part.
    """

    kind: Literal["top", "series"]
    table: str
    title: str
    unit: str = ""
    beside: tuple[str, str] | None = None
    limit: int = 10
    parts: int = 6

    def describe(self) -> dict[str, Any]:
        beside = self.beside[1] if self.beside else ""
        return {
            "kind": self.kind,
            "table": self.table,
            "title": self.title,
            "unit": self.unit,
            "beside": beside,
            "limit": self.limit,
        }


def top(rows: Mapping[Any, Any], beside: Mapping[Any, Any], limit: int) -> list[dict[str, Any]]:
    """Return the rows with the greatest values in descending order, then by key."""
    numbers = [(value, str(key), key) for key, value in rows.items() if _is_number(value)]
    numbers.sort(key=lambda row: (-row[0], row[1]))
    return [{"key": text, "value": value, "beside": beside.get(key)} for value, text, key in numbers[:limit]]


def series(rows: Mapping[tuple[Any, int, int], Any], limit: int, parts: int) -> dict[str, Any]:
    """Return one bar per window for the latest windows, divided by key; the largest keys come first."""
    windows: dict[tuple[int, int], dict[str, float]] = {}
    for (key, start, end), value in rows.items():
        if _is_number(value):
            bar = windows.setdefault((start, end), {})
            bar[str(key)] = bar.get(str(key), 0) + value
    latest = sorted(windows.items())[-limit:]
    weights: dict[str, float] = {}
    for _, bar in latest:
        for key, value in bar.items():
            weights[key] = weights.get(key, 0) + value
    keys = sorted(weights, key=lambda key: (-weights[key], key))[:parts]
    bars = [_bar(start, end, bar, keys) for (start, end), bar in latest]
    return {"keys": keys + ([OTHERS] if len(weights) > len(keys) else []), "windows": bars}


def _bar(start: int, end: int, bar: Mapping[str, float], keys: list[str]) -> dict[str, Any]:
    named = {key: bar[key] for key in keys if key in bar}
    rest = [value for key, value in bar.items() if key not in named]
    if rest:
        named[OTHERS] = sum(rest)
    return {"start": start, "end": end, "total": sum(bar.values()), "parts": named}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
