"""A feed that plays a script instead of a query: its view can be looked at without Spark."""

from __future__ import annotations

import math
import random
from typing import Any

USERS = ["maria.silva", "jonas.weber", "aiko.tanaka", "emma.dubois", "omar.haddad", "lucia.rossi", "noah.larsen"]
USERS += ["priya.nair", "pavel.novak", "chloe.martin", "diego.torres", "hanna.virtanen", "liam.oconnor"]
CITIES = ["Berlin", "Lisbon", "Tokyo", "Paris", "Oslo", "Mumbai", "Prague", "Madrid"]
QUERY = "shop-orders"
WINDOW_MS = 10_000
EPOCH_MS = 1_767_225_600_000


def _node(
    name: str, kind: str, family: str, label: str, detail: str, upstreams: list[str], mode: str = ""
) -> dict[str, Any]:
    why = "the function calls str.upper" if mode == "python" else ""
    place = "shop/orders.py:14"
    return {
        "name": name, "kind": kind, "family": family, "label": label, "detail": detail,
        "upstreams": upstreams, "mode": mode, "why": why, "at": place,
    }  # fmt: skip


NODES = [
    _node("orders", "stream_source", "source", "orders", "topic", [], ""),
    _node("high", "filter", "stateless", "filter", 'v["amount"] > 100', ["orders"], "native"),
    _node("mark", "map_values", "stateless", "map_values", '{**v, "status": "HIGH_VALUE"}', ["high"], "python"),
    _node("mark.to", "sink", "sink", "high-value-orders", "topic", ["mark"], ""),
    _node("by_user", "select_key", "stateless", "group_by", 'v["user_id"]', ["orders"], "native"),
    _node("order_counts", "aggregate", "stateful", "order_counts", "count", ["by_user"], "native"),
    _node("order_counts.to_stream", "to_stream", "stateless", "to_stream", "", ["order_counts"], "native"),
    _node("counts.to", "sink", "sink", "order-counts", "topic", ["order_counts.to_stream"], ""),
    _node("user_totals", "aggregate", "stateful", "user_totals", "sum", ["by_user"], "native"),
    _node("by_city", "select_key", "stateless", "group_by", 'v["city"]', ["orders"], "native"),
    _node(
        "window_totals", "aggregate", "stateful", "window_totals", "sum · tumbling 10s, grace 5s", ["by_city"], "native"
    ),
]
LETTERS = [
    ("late", "window_totals", "window [1767225610000, 1767225620000) was closed", '{"order_id":"o-118","amount":12.5}'),
    ("decode", "orders", 'field "amount": expected double, got string', '{"order_id":"o-77","amount":"a lot"}'),
    ("error", "mark", "AttributeError: 'NoneType' object has no attribute 'upper'", '{"order_id":"o-9","city":null}'),
    ("decode", "orders", "not valid JSON: expected a value at column 14", '{"order_id": <b>"o-3"'),
]


class ScriptedFeed:
    """Each snapshot is one batch further. `phase` is what a test steers: starting, running, stopped, failed, empty."""

    def __init__(self, phase: str = "running", batch: int = 0) -> None:
        self.phase = phase
        self.batch = batch
        self.letters_kept: list[dict[str, Any]] = []
        self._random = random.Random(7)

    def topology(self) -> dict[str, Any]:
        tables = [
            {"name": node["name"], "kind": node["detail"], "windowed": "tumbling" in node["detail"]}
            for node in NODES
            if node["family"] == "stateful"
        ]
        top = {
            "kind": "top",
            "table": "user_totals",
            "title": "Top users",
            "unit": "$",
            "beside": "orders",
            "limit": 10,
        }
        series = {
            "kind": "series", "table": "window_totals", "title": "Sales per 10 seconds", "unit": "$", "limit": 30,
        }  # fmt: skip
        return {"query": QUERY, "nodes": NODES, "tables": tables, "panels": [top, series]}

    def snapshot(self) -> dict[str, Any]:
        if self.phase == "starting":
            return {"at": EPOCH_MS, "query": QUERY, "state": "starting", "error": ""}
        if self.phase == "running":
            self.batch += 1
            self._add_letters()
        b = self.batch
        rate = 3000 + 400 * math.sin(b / 9) + self._random.uniform(-120, 120)
        dead = {"decode": 6 * b, "late": 12 * b, "error": b // 4}
        return {
            "at": EPOCH_MS + b * 400, "query": QUERY, "state": self.phase,
            "error": "QueryError: the disk is full" if self.phase == "failed" else "",
            "uptime_ms": 8_000 + b * 400, "batch": b, "batch_ms": round(420 + 60 * math.sin(b / 4)),
            "rate_in": rate, "rate_out": rate * 0.62, "lag": round(abs(900 * math.sin(b / 6))),
            "total_in": 1200 * b, "total_out": 744 * b, "dead_letters": sum(dead.values()),
            "dead_letters_by_reason": dead, "recent_dead_letters": self.letters_kept, "open_dead_letters": 12 * b,
            "state_bytes": 2_400_000 + b * 900, "state_keys": 2_000 + b,
            "tables": {"order_counts": 1_000 + b, "user_totals": 1_000, "window_totals": 240},
            "steps": self._steps(rate), "panels": [self._top(), self._series()],
        }  # fmt: skip

    def figures(self) -> dict[str, Any]:
        return self.snapshot()

    def _add_letters(self) -> None:
        for reason, step, error, value in self._random.choices(LETTERS, k=self.batch % 3):
            letter = {
                "at": EPOCH_MS + self.batch * 400, "reason": reason, "step": step, "error": error, "key": "",
                "value": value, "topic": "orders", "partition": self.batch % 4, "offset": 5_000 + self.batch * 7,
            }  # fmt: skip
            self.letters_kept = [letter, *self.letters_kept][:30]

    def _steps(self, rate: float) -> dict[str, dict[str, float]]:
        share = {"high": 0.18, "mark": 0.18, "mark.to": 0.18, "order_counts.to_stream": 0.44, "counts.to": 0.44}
        steps = {}
        for node in NODES:
            part = share.get(node["name"], 1.0)
            steps[node["name"]] = {"in": round(1200 * self.batch * part), "out": round(1200 * self.batch * part)}
            steps[node["name"]]["rate"] = rate * part
        return steps

    def _top(self) -> dict[str, Any]:
        scores = [(900 * (1 + math.sin(i * 3 + self.batch / (20 + i))) + 4000 / (i + 1), i) for i in range(len(USERS))]
        scores = [(score + 110.25 * self.batch / (i + 2), i) for score, i in scores]
        rows = [
            {"key": USERS[i], "value": score, "beside": round(score / 41)} for score, i in sorted(scores, reverse=True)
        ]
        return {"rows": rows[:10]}

    def _series(self) -> dict[str, Any]:
        now = EPOCH_MS + self.batch * 400 + 300_000
        windows = []
        for n in range(29, -1, -1):
            start = (now // WINDOW_MS - n) * WINDOW_MS
            full = min(1.0, (now - start) / WINDOW_MS)
            parts = {
                city: full * (3000 / (i + 1.4) + 380 * math.sin(start / 47_000 + i))
                for i, city in enumerate(CITIES[:6])
            }
            parts["others"] = full * 900
            windows.append({"start": start, "end": start + WINDOW_MS, "total": sum(parts.values()), "parts": parts})
        return {"keys": [*CITIES[:6], "others"], "windows": windows}
