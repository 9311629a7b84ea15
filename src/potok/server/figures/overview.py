"""One row for each query of a log: its state, its pace, how far it is behind, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from potok.log.broker import Broker
from potok.runtime.operations.replay import SHADOW
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.lock import is_held
from potok.statements.queries.runner import QueryInfo

BEHIND_MS = 60_000
"""A running query whose oldest unread record is older than this is behind."""

_OF_SQL = {"RUNNING": "running", "PAUSED": "paused", "WAITING": "waiting", "ERROR": "failed", "STOPPED": "stopped"}
_TIERS = ("failing", "behind", "ok", "off")
_FAILING = ("failed", "died", "unreadable", "waiting")
_OFF = ("stopped", "paused")

_SHOWN = (
    "at", "idle", "uptime_ms", "restarts", "committed_at_ms", "batch", "batch_ms", "rate_in", "rate_out", "lag",
    "lag_ms", "watermark_ms", "total_in", "total_out", "dead_letters", "state_bytes", "state_keys",
)  # fmt: skip


def overview_row(
    broker: Broker, query: str, figures: Mapping[str, Any], info: QueryInfo | None, *, is_own: bool = False
) -> dict[str, Any]:
    """Return the row of a query: `health` is failing, behind, ok or off. `is_own` says that this process runs it."""
    state, error = _state(broker, query, figures, info, is_own=is_own)
    watermark, at = figures.get("watermark_ms"), figures.get("at", 0)
    row = {
        "query": query,
        "kind": "sql" if info is not None and info.kind != "PROGRAM" else "program",
        "state": state,
        "error": error,
        "shadow_of": query.removeprefix(SHADOW) if query.startswith(SHADOW) else None,
        "statement": info.text if info is not None and info.kind != "PROGRAM" else None,
        "watermark_lag_ms": None if watermark is None else max(0, at - watermark),
        **{name: figures.get(name) for name in _SHOWN},
    }
    return {**row, "health": _health(row)}


def worst_first(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows: failing queries, those that are behind, those that run, those that are stopped or paused."""
    return sorted(
        rows,
        key=lambda row: (
            _TIERS.index(row["health"]),
            -(row["lag_ms"] or 0),
            -(row["lag"] or 0),
            -(row["dead_letters"] or 0),
            row["query"],
        ),
    )


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums over all rows."""

    def total(name: str) -> float:
        return sum(row[name] or 0 for row in rows)

    return {
        "queries": len(rows),
        **{health: sum(row["health"] == health for row in rows) for health in _TIERS},
        "rate_in": total("rate_in"),
        "rate_out": total("rate_out"),
        "lag": total("lag"),
        "lag_ms": max((row["lag_ms"] or 0 for row in rows), default=0),
        "dead_letters": total("dead_letters"),
        "state_bytes": total("state_bytes"),
        "restarts": total("restarts"),
    }


def _state(
    broker: Broker, query: str, figures: Mapping[str, Any], info: QueryInfo | None, *, is_own: bool
) -> tuple[str, str]:
    state, error = str(figures.get("state", "starting")), str(figures.get("error") or "")
    if state == "unreadable":
        return state, error
    if info is not None and info.kind != "PROGRAM":
        return _OF_SQL.get(info.state, state), info.error
    # If the ledger is on a server, the process may be on any machine: the recorded state counts.
    if is_own or state not in ("starting", "running") or broker.home_url is not None:
        return state, error
    if is_held(query_directory(broker, query)):
        return state, error
    if figures.get("batch") is not None:
        return "died", "its process has ended without stopping the query"
    return ("starting" if info is not None else "stopped"), ""


def _health(row: Mapping[str, Any]) -> str:
    if row["state"] in _FAILING:
        return "failing"
    if row["state"] in _OFF:
        return "off"
    return "behind" if (row["lag_ms"] or 0) > BEHIND_MS else "ok"
