"""The Grafana dashboard.

python -m potok.monitoring.dashboard > deploy/grafana/potok.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from potok.monitoring import families as f

RATE = "$__rate_interval"
QUERY = '{query=~"$query"}'
COLUMNS, HEIGHT = 24, 8


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: expressions by legend, and the unit of their values as Grafana names it."""

    title: str
    exprs: dict[str, str]
    unit: str = "short"
    description: str = ""
    kind: str = "timeseries"
    width: int = 8


def _quantile(quantile: float, name: str, by: str, selector: str) -> str:
    return f"histogram_quantile({quantile}, sum by ({by}, le) (rate({name}_bucket{selector}[{RATE}])))"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Overview": (
        Panel(
            "Queries that do not run",
            {"{{query}}: {{state}}": f'{f.QUERY_STATE.name}{{query=~"$query",state!~"running|paused"}} == 1'},
            description="Empty if all is well.",
            kind="stat",
        ),
        Panel("Lag in seconds", {"{{query}} {{topic}}": f"{f.SOURCE_LAG_SECONDS.name}{QUERY}"}, "s"),
        Panel("Lag in records", {"{{query}} {{topic}}": f"{f.SOURCE_LAG.name}{QUERY}"}),
        Panel(
            "Records per second",
            {"{{query}} {{direction}}": f"sum by (query, direction) (rate({f.RECORDS.name}{QUERY}[{RATE}]))"},
            "ops",
        ),
        Panel("Table freshness", {"{{query}} {{table}}": f"{f.FRESHNESS.name}{QUERY}"}, "s"),
        Panel("Watermark lag", {"{{query}} {{step}}": f"{f.WATERMARK_LAG.name}{QUERY}"}, "s"),
    ),
    "Batches": (
        Panel(
            "Duration (p50, p95)",
            {
                "{{query}} p50": _quantile(0.5, f.BATCH_DURATION.name, "query", '{query=~"$query",phase="total"}'),
                "{{query}} p95": _quantile(0.95, f.BATCH_DURATION.name, "query", '{query=~"$query",phase="total"}'),
            },
            "s",
        ),
        Panel(
            "Time per phase",
            {
                "{{query}} {{phase}}": f"sum by (query, phase) "
                f'(rate({f.BATCH_DURATION.name}_sum{{query=~"$query",phase!="total"}}[{RATE}]))'
            },
            "percentunit",
            "Seconds of each phase per second.",
        ),
        Panel("Batches per second", {"{{query}}": f"rate({f.BATCHES.name}{QUERY}[{RATE}])"}, "ops"),
        Panel(
            "Records per step",
            {"{{step}}": f'sum by (step) (rate({f.STEP_RECORDS.name}{{query=~"$query",direction="out"}}[{RATE}]))'},
            "ops",
            width=16,
        ),
        Panel("Seconds since the last commit", {"{{query}}": f"time() - {f.LAST_COMMIT.name}{QUERY}"}, "s"),
    ),
    "Trouble": (
        Panel(
            "Dead letters",
            {"{{query}} {{reason}}": f"sum by (query, reason) (increase({f.DEAD_LETTERS.name}{QUERY}[{RATE}]))"},
        ),
        Panel("Late records", {"{{query}} {{step}}": f"increase({f.LATE_RECORDS.name}{QUERY}[{RATE}])"}),
        Panel(
            "Restarts and waits",
            {
                "{{query}} restarts: {{cause}}": f"increase({f.RESTARTS.name}{QUERY}[{RATE}])",
                "{{query}} waits: {{cause}}": f"increase({f.WAITS.name}{QUERY}[{RATE}])",
                "{{query}} sink retries": f"increase({f.SINK_RETRIES.name}{QUERY}[{RATE}])",
            },
        ),
        Panel("Expressions that failed", {"{{query}}": f"increase({f.EXPRESSION_FAILURES.name}{QUERY}[{RATE}])"}),
    ),
    "State": (
        Panel("Size", {"{{query}}": f"{f.STATE_BYTES.name}{QUERY}"}, "bytes", width=12),
        Panel("Keys", {"{{query}} {{table}}": f"{f.STATE_KEYS.name}{QUERY}"}, width=12),
    ),
    "Serving": (
        Panel("Reads per second", {"{{kind}}": f"sum by (kind) (rate({f.PULL_SECONDS.name}_count[{RATE}]))"}, "ops"),
        Panel("Duration of reads (p99)", {"{{kind}}": _quantile(0.99, f.PULL_SECONDS.name, "kind", "")}, "s"),
        Panel("Open push queries", {"{{instance}}": f.PUSH_QUERIES.name}),
    ),
    "Gateway and captures": (
        Panel(
            "Received and landed",
            {
                "{{listener}} received": f"rate({f.GATEWAY_RECEIVED.name}[{RATE}])",
                "{{listener}} landed": f"rate({f.GATEWAY_LANDED.name}[{RATE}])",
            },
            "ops",
        ),
        Panel(
            "Lost and refused",
            {
                "{{listener}} lost: {{reason}}": f"increase({f.GATEWAY_LOST.name}[{RATE}])",
                "{{listener}} refused: {{reason}}": f"increase({f.GATEWAY_REFUSED.name}[{RATE}])",
            },
        ),
        Panel("Buffered", {"{{listener}}": f.GATEWAY_BUFFERED.name}),
        Panel("Changes per second", {"{{capture}}": f"rate({f.CDC_CHANGES.name}[{RATE}])"}, "ops"),
        Panel("Capture lag", {"{{capture}}": f.CDC_LAG_SECONDS.name}, "s"),
        Panel("Retained by slots", {"{{capture}}": f.CDC_SLOT_BYTES.name}, "bytes"),
    ),
    "Process": (
        Panel("CPU", {"{{instance}}": f"rate({f.CPU_SECONDS.name}[{RATE}])"}, "percentunit"),
        Panel("Memory", {"{{instance}}": f.RESIDENT_BYTES.name}, "bytes"),
        Panel("Open files", {"{{instance}}": f.OPEN_FDS.name}),
    ),
}


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {
            "name": "query",
            "type": "query",
            "label": "Query",
            "datasource": _source(),
            "definition": f"label_values({f.QUERY_STATE.name}, query)",
            "query": {"query": f"label_values({f.QUERY_STATE.name}, query)", "refId": "query"},
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "refresh": 2,
        },
    ]
    return {
        "title": "Potok",
        "uid": "potok",
        "tags": ["potok"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": _panels(),
    }


def expressions() -> list[str]:
    """Return all expressions of the dashboard."""
    return [expr for row in ROWS.values() for panel in row for expr in panel.exprs.values()]


def _panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    top = 0
    for title, panels in ROWS.items():
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        found.append({"id": len(found) + 1, "type": "row", "title": title, "gridPos": place, "panels": []})
        top, left = top + 1, 0
        for panel in panels:
            if left + panel.width > COLUMNS:
                top, left = top + HEIGHT, 0
            place = {"x": left, "y": top, "w": panel.width, "h": HEIGHT}
            found.append({"id": len(found) + 1, "gridPos": place, **_panel(panel)})
            left += panel.width
        top += HEIGHT
    return found


def _panel(panel: Panel) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + row), "expr": expr, "legendFormat": legend, "datasource": _source()}
        for row, (legend, expr) in enumerate(panel.exprs.items())
    ]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _source(),
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }


def _source() -> dict[str, str]:
    return {"type": "prometheus", "uid": "${datasource}"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dashboard(), indent=1) + "\n")
